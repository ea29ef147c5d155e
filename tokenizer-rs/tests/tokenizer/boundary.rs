// SPDX-License-Identifier: Apache-2.0
//! The C boundary, called as C would. Every buffer is memory of its own and exactly as large as the call says, so that
//! a sanitizer, Valgrind or Miri sees whatever goes beyond. What the calls mean is for the contract tests of the
//! project.

use crate::refusals::ranks_of;
use crate::twin::tokenizer_json;
use pybench_tokenizer::Model;
use pybench_tokenizer::ffi::training::*;
use pybench_tokenizer::ffi::*;
use std::ptr::{null, null_mut};

const OK: i32 = 0;
const CAPACITY: i32 = 6;

/// Memory of exactly that many values.
fn exactly<T: Copy + Default>(count: usize) -> Box<[T]> {
    vec![T::default(); count].into()
}

/// A model whose ids take 2 bytes, or 4 because of a special token's.
fn model(end_id: u32) -> *mut ModelHandle {
    let ranks: Box<[u8]> = ranks_of(&["ab", "abc", "cab", "cabc"]).into();
    let specials: Box<[u8]> = Box::from(*b"<|a|><|end|>");
    let (ends, ids): (Box<[u64]>, Box<[u32]>) = (Box::from([5, 12]), Box::from([260, end_id]));
    let (mut model, mut message, mut message_bytes) = (null_mut(), exactly::<u8>(64), 0);
    // SAFETY: pointers to memory of the lengths beside them.
    let status = unsafe {
        pbt_model_load_ranks(
            ranks.as_ptr(),
            ranks.len(),
            b"gpt2".as_ptr(),
            4,
            specials.as_ptr(),
            ends.as_ptr(),
            ids.as_ptr(),
            ids.len(),
            &mut model,
            message.as_mut_ptr().cast(),
            message.len(),
            &mut message_bytes,
        )
    };
    assert_eq!((status, message_bytes), (OK, 0));
    model
}

/// Encodes two documents into room for `capacity` ids; returns the status, the count and the ids.
fn encoded<I: Copy + Default>(
    worker: *mut WorkerHandle,
    text: &str,
    cut: usize,
    capacity: usize,
) -> (i32, usize, Box<[I]>) {
    let text: Box<[u8]> = text.as_bytes().into();
    let offsets: Box<[u64]> = Box::from([0, cut as u64, text.len() as u64]);
    let (mut ids, mut id_offsets) = (exactly::<I>(capacity), exactly::<u64>(offsets.len()));
    let (mut count, mut position) = (0, 0);
    // SAFETY: pointers to memory of the lengths beside them; one thread.
    let status = unsafe {
        pbt_encode_batch(
            worker,
            text.as_ptr(),
            offsets.as_ptr(),
            2,
            ids.as_mut_ptr().cast(),
            capacity,
            id_offsets.as_mut_ptr(),
            &mut count,
            &mut position,
        )
    };
    if status == OK {
        assert_eq!((id_offsets[0], id_offsets[2]), (0, count as u64));
    }
    (status, count, ids)
}

/// Decodes into room for `capacity` bytes.
fn decoded<I>(model: *const ModelHandle, ids: &[I], capacity: usize) -> (i32, usize, Box<[u8]>) {
    let (mut bytes, mut count, mut position) = (exactly::<u8>(capacity), 0, 0);
    // SAFETY: pointers to memory of the lengths beside them.
    let status = unsafe {
        let ids = (ids.as_ptr().cast(), ids.len());
        pbt_decode(
            model,
            ids.0,
            ids.1,
            bytes.as_mut_ptr(),
            capacity,
            &mut count,
            &mut position,
        )
    };
    (status, count, bytes)
}

/// There and back again with every capacity, and with caches of several sizes.
fn round_trip<I: Copy + Default>(end_id: u32, id_bytes: u32) {
    let model = model(end_id);
    // SAFETY: a live model.
    assert_eq!(unsafe { pbt_model_id_bytes(model) }, id_bytes);
    // Words for the cache of short ones, for the two of long ones and for none; one that is new and one that is known.
    let (line, longest) = ("=".repeat(70), "x".repeat(300));
    let text = format!(
        "cab abc cab, it's 12<|a|>; {} {line} {longest}<|end|>été 漢字 {line}",
        "cabc".repeat(9)
    );
    for &cache_entries in if cfg!(miri) { &[2][..] } else { &[0, 2, 1 << 8] } {
        let mut worker = null_mut();
        // SAFETY: a live model.
        assert_eq!(unsafe { pbt_worker_new(model, cache_entries, &mut worker) }, OK);
        let (status, count, ids) = encoded::<I>(worker, &text, 9, text.len());
        assert_eq!(status, OK);
        for capacity in if cfg!(miri) {
            count - 1..count + 2
        } else {
            0..count + 20
        } {
            let (status, needed, _) = encoded::<I>(worker, &text, 9, capacity);
            assert_eq!(
                (status, needed),
                if capacity < count {
                    (CAPACITY, text.len())
                } else {
                    (OK, count)
                }
            );
        }
        for capacity in [0, 1, text.len() - 1, text.len(), text.len() + 1] {
            let (status, needed, bytes) = decoded(model, &ids[..count], capacity);
            assert_eq!(
                (status, needed),
                (if capacity < text.len() { CAPACITY } else { OK }, text.len())
            );
            assert!(status != OK || bytes[..needed] == *text.as_bytes());
        }
        // SAFETY: freed once.
        unsafe { pbt_worker_free(worker) };
    }
    // SAFETY: freed once.
    unsafe { pbt_model_free(model) };
}

#[test]
fn narrow_ids_cross_within_their_buffers() {
    round_trip::<u16>(261, 2);
}

#[test]
fn wide_ids_cross_within_their_buffers() {
    round_trip::<u32>(70_000, 4);
}

#[test]
fn a_refusal_is_written_within_the_room_for_it() {
    let json: Box<[u8]> = tokenizer_json(&[])
        .to_string()
        .replace("BPE", "WordPiece")
        .into_bytes()
        .into();
    for length in [json.len(), json.len() / 2, 1, 0] {
        for room in [0, 1, 7, 200] {
            let (mut model, mut message, mut message_bytes) = (null_mut(), exactly::<u8>(room), usize::MAX);
            let json: Box<[u8]> = json[..length].into();
            let at = if length == 0 { null() } else { json.as_ptr() };
            let (place, written) = (message.as_mut_ptr().cast(), &mut message_bytes);
            // SAFETY: pointers to memory of the lengths beside them; null for nothing.
            let status = unsafe { pbt_model_load(at, length, &mut model, place, room, written) };
            assert!(status != OK && model.is_null() && message_bytes <= room, "{status}");
        }
    }
}

#[test]
fn a_trained_vocabulary_crosses_within_its_buffer() {
    let (mut trainer, mut message, mut message_bytes) = (null_mut(), exactly::<u8>(100), 0);
    let message = (message.as_mut_ptr().cast(), message.len());
    let text: Box<[u8]> = "abab abab ba ".repeat(30).into_bytes().into();
    let (offsets, end): (Box<[u64]>, Box<[u64]>) = (Box::from([0, 13, text.len() as u64]), Box::from([5]));
    let (mut position, mut json_bytes, mut count) = (0, 0, 0);
    // SAFETY: pointers to memory of the lengths beside them; one thread, freed once.
    unsafe {
        let made = pbt_trainer_new(
            b"gpt2".as_ptr(),
            4,
            1 << 20,
            &mut trainer,
            message.0,
            message.1,
            &mut message_bytes,
        );
        assert_eq!(made, OK);
        assert_eq!(
            pbt_trainer_feed(trainer, text.as_ptr(), offsets.as_ptr(), 2, &mut position),
            OK
        );
        assert_eq!(pbt_trainer_words(trainer), 4);
        let special = b"<|a|>".as_ptr();
        let (place, written) = (message, &mut message_bytes);
        let trained = pbt_trainer_train(
            trainer,
            260,
            2,
            special,
            end.as_ptr(),
            1,
            &mut json_bytes,
            place.0,
            place.1,
            written,
        );
        assert_eq!(trained, OK);
        let mut json = exactly::<u8>(json_bytes);
        assert_eq!(
            pbt_trainer_json(trainer, json.as_mut_ptr(), json_bytes - 1, &mut count),
            CAPACITY
        );
        assert_eq!(
            (
                pbt_trainer_json(trainer, json.as_mut_ptr(), json_bytes, &mut count),
                count
            ),
            (OK, json_bytes)
        );
        pbt_trainer_free(trainer);
        assert_eq!(Model::from_json(&json).unwrap().vocabulary_size(), 260);
    }
}
