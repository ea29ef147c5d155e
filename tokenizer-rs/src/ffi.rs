// SPDX-License-Identifier: Apache-2.0
//! The C boundary, described by `include/pybench_tokenizer.h`: check the arguments, call, translate the result.
//!
//! No logic of the tokenizer lives here. Panics are caught; every buffer belongs to the caller. The caller promises
//! what C cannot check: a pointer with a length points to that much memory, and output buffers overlap nothing else.
//! Handles come from here and are freed once, and no two threads use one worker at a time.

#![allow(
    clippy::missing_safety_doc,
    reason = "the header states what callers owe; the module comment sums it up"
)]

mod crossing;
pub mod training;

use self::crossing::{Failure, Outcome, explained, family_of, input, output, shared, single, special_texts, status_of};
use crate::cache::ENTRIES_MAX;
use crate::encode::{EncodeError, Encoder};
use crate::model::{LoadError, Model};
use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;
use std::sync::Arc;

/// `PBT_ABI_VERSION` of the header.
pub const ABI_VERSION: u32 = 2;

const BUILD_ID: &str = concat!("pybench-tokenizer ", env!("CARGO_PKG_VERSION"), "\0");

/// `pbt_model`
pub struct ModelHandle {
    model: Arc<Model>,
}

/// `pbt_worker`
pub struct WorkerHandle {
    encoder: AnyEncoder,
}

enum AnyEncoder {
    Narrow(Encoder<u16>),
    Wide(Encoder<u32>),
}

/// The ABI version that this object implements.
#[unsafe(no_mangle)]
pub extern "C" fn pbt_abi_version() -> u32 {
    ABI_VERSION
}

/// Name and version, NUL-terminated, static.
#[unsafe(no_mangle)]
pub extern "C" fn pbt_build_id() -> *const c_char {
    BUILD_ID.as_ptr().cast()
}

/// Loads a `tokenizer.json` from memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbt_model_load(
    json: *const u8,
    json_bytes: usize,
    model: *mut *mut ModelHandle,
    message: *mut c_char,
    message_capacity: usize,
    message_bytes: *mut usize,
) -> i32 {
    status_of(|| {
        // SAFETY: the caller passes valid pointers with their lengths; null and misaligned ones are refused.
        let (json, message) = unsafe {
            (
                input(json, json_bytes)?,
                output::<u8>(message.cast(), message_capacity)?,
            )
        };
        // SAFETY: as above.
        let (model, message_bytes) = unsafe { (single(model)?, single(message_bytes)?) };
        hand_over(Model::from_json(json), model, message, message_bytes)
    })
}

/// Loads a tiktoken rank file from memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbt_model_load_ranks(
    ranks: *const u8,
    ranks_bytes: usize,
    family: *const u8,
    family_bytes: usize,
    specials: *const u8,
    special_ends: *const u64,
    special_ids: *const u32,
    special_count: usize,
    model: *mut *mut ModelHandle,
    message: *mut c_char,
    message_capacity: usize,
    message_bytes: *mut usize,
) -> i32 {
    status_of(|| {
        // SAFETY: pointers with their lengths; null and misaligned ones are refused.
        let (ranks, family, message) = unsafe {
            (
                input(ranks, ranks_bytes)?,
                input(family, family_bytes)?,
                output::<u8>(message.cast(), message_capacity)?,
            )
        };
        // SAFETY: as above.
        let (model, message_bytes) = unsafe { (single(model)?, single(message_bytes)?) };
        // SAFETY: as above; the texts are as long as the last end says.
        let (texts, ids) = unsafe {
            (
                special_texts(specials, special_ends, special_count)?,
                input(special_ids, special_count)?,
            )
        };
        let specials: Vec<_> = texts.into_iter().zip(ids.iter().copied()).collect();
        let loaded = family_of(family).and_then(|family| Model::from_ranks(ranks, family, &specials));
        hand_over(loaded, model, message, message_bytes)
    })
}

/// Gives a loaded model to the caller, or the reason why there is none.
fn hand_over(
    loaded: Result<Model, LoadError>,
    model: &mut MaybeUninit<*mut ModelHandle>,
    message: &mut [MaybeUninit<u8>],
    message_bytes: &mut MaybeUninit<usize>,
) -> Outcome {
    model.write(std::ptr::null_mut());
    let loaded = explained(loaded, message, message_bytes)?;
    model.write(Box::into_raw(Box::new(ModelHandle {
        model: Arc::new(loaded),
    })));
    Ok(())
}

/// Frees a model; null is nothing to free. Its workers keep working.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbt_model_free(model: *mut ModelHandle) {
    status_of(|| {
        if !model.is_null() {
            // SAFETY: the pointer came from `hand_over` and is freed once.
            drop(unsafe { Box::from_raw(model) });
        }
        Ok(())
    });
}

/// Number of ids, special tokens included; 0 for a null model.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbt_model_vocab_size(model: *const ModelHandle) -> u32 {
    // SAFETY: null, or a live model.
    unsafe { model.as_ref() }.map_or(0, |handle| handle.model.vocabulary_size() as u32)
}

/// Bytes an id; 0 for a null model.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbt_model_id_bytes(model: *const ModelHandle) -> u32 {
    // SAFETY: null, or a live model.
    unsafe { model.as_ref() }.map_or(0, |handle| if handle.model.has_narrow_ids() { 2 } else { 4 })
}

/// Bytes that a model holds; 0 for a null model.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbt_model_bytes(model: *const ModelHandle) -> usize {
    // SAFETY: null, or a live model.
    unsafe { model.as_ref() }.map_or(0, |handle| handle.model.bytes())
}

/// The id of a token given by its text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbt_model_token_to_id(
    model: *const ModelHandle,
    token: *const u8,
    token_bytes: usize,
    id: *mut u32,
) -> i32 {
    status_of(|| {
        // SAFETY: null, or a live model; pointers with their lengths.
        let (model, token, id) = unsafe { (shared(model)?, input(token, token_bytes)?, single(id)?) };
        id.write(model.model.token_to_id(token).ok_or(Failure::Id)?);
        Ok(())
    })
}

/// Makes the worker of one thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbt_worker_new(
    model: *const ModelHandle,
    cache_entries: usize,
    worker: *mut *mut WorkerHandle,
) -> i32 {
    status_of(|| {
        // SAFETY: null, or a live model; a place for the result.
        let (model, worker) = unsafe { (shared(model)?, single(worker)?) };
        worker.write(std::ptr::null_mut());
        if cache_entries != 0 && !cache_entries.is_power_of_two() || cache_entries > ENTRIES_MAX {
            return Err(Failure::Argument);
        }
        let encoder = match model.model.has_narrow_ids() {
            true => AnyEncoder::Narrow(Encoder::new(&model.model, cache_entries)),
            false => AnyEncoder::Wide(Encoder::new(&model.model, cache_entries)),
        };
        worker.write(Box::into_raw(Box::new(WorkerHandle { encoder })));
        Ok(())
    })
}

/// Frees a worker; null is nothing to free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbt_worker_free(worker: *mut WorkerHandle) {
    status_of(|| {
        if !worker.is_null() {
            // SAFETY: the pointer came from `pbt_worker_new` and is freed once.
            drop(unsafe { Box::from_raw(worker) });
        }
        Ok(())
    });
}

/// Bytes that a worker holds between calls, at most; 0 for a null worker.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbt_worker_bytes(worker: *const WorkerHandle) -> usize {
    // SAFETY: null, or a live worker.
    unsafe { worker.as_ref() }.map_or(0, |worker| match &worker.encoder {
        AnyEncoder::Narrow(encoder) => encoder.bytes(),
        AnyEncoder::Wide(encoder) => encoder.bytes(),
    })
}

/// Encodes a batch of documents.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbt_encode_batch(
    worker: *mut WorkerHandle,
    text: *const u8,
    offsets: *const u64,
    document_count: usize,
    ids: *mut c_void,
    ids_capacity: usize,
    id_offsets: *mut u64,
    count: *mut usize,
    position: *mut usize,
) -> i32 {
    status_of(|| {
        // SAFETY: null, or a live worker that no other thread uses now.
        let worker = unsafe { worker.as_mut() }.ok_or(Failure::Argument)?;
        let entries = document_count.checked_add(1).ok_or(Failure::Argument)?;
        // SAFETY: pointers with their lengths; the last offset is the length of the text.
        let (offsets, id_offsets, count, position) = unsafe {
            (
                input(offsets, entries)?,
                output(id_offsets, entries)?,
                single(count)?,
                single(position)?,
            )
        };
        count.write(0);
        position.write(0);
        let text_bytes = usize::try_from(offsets[document_count]).map_err(|_| Failure::Argument)?;
        // SAFETY: as above.
        let text = unsafe { input(text, text_bytes)? };
        let result = match &mut worker.encoder {
            AnyEncoder::Narrow(encoder) => {
                // SAFETY: the header promises room for `ids_capacity` ids of the model's width.
                let ids = unsafe { output(ids.cast(), ids_capacity)? };
                encoder.encode_batch(text, offsets, ids, id_offsets)
            }
            AnyEncoder::Wide(encoder) => {
                // SAFETY: as above.
                let ids = unsafe { output(ids.cast(), ids_capacity)? };
                encoder.encode_batch(text, offsets, ids, id_offsets)
            }
        };
        match result {
            Ok(written) => count.write(written),
            Err(EncodeError::Offsets) => return Err(Failure::Argument),
            Err(EncodeError::Utf8 { position: at }) => {
                position.write(at);
                return Err(Failure::Utf8);
            }
            Err(EncodeError::Capacity { needed }) => {
                count.write(needed);
                return Err(Failure::Capacity);
            }
        };
        Ok(())
    })
}

/// Decodes ids to bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbt_decode(
    model: *const ModelHandle,
    ids: *const c_void,
    id_count: usize,
    bytes: *mut u8,
    bytes_capacity: usize,
    count: *mut usize,
    position: *mut usize,
) -> i32 {
    status_of(|| {
        // SAFETY: null, or a live model; pointers with their lengths.
        let (model, bytes) = unsafe { (shared(model)?, output(bytes, bytes_capacity)?) };
        // SAFETY: as above.
        let (count, position) = unsafe { (single(count)?, single(position)?) };
        count.write(0);
        position.write(0);
        let decoded = if model.model.has_narrow_ids() {
            // SAFETY: the header promises `id_count` ids of the model's width.
            let ids = unsafe { input::<u16>(ids.cast(), id_count)? };
            model.model.decode(ids.iter().map(|&id| u32::from(id)), bytes)
        } else {
            // SAFETY: as above.
            let ids = unsafe { input::<u32>(ids.cast(), id_count)? };
            model.model.decode(ids.iter().copied(), bytes)
        };
        match decoded {
            Ok(needed) => {
                count.write(needed);
                if needed > bytes_capacity {
                    Err(Failure::Capacity)
                } else {
                    Ok(())
                }
            }
            Err(index) => {
                position.write(index);
                Err(Failure::Id)
            }
        }
    })
}
