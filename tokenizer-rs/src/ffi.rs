// SPDX-License-Identifier: Apache-2.0
//! The C boundary, described by `include/pybench_tokenizer.h`: check the arguments, call, translate the result.
//!
//! No logic of the tokenizer lives here. Panics are caught; every buffer belongs to the caller. What the caller
//! promises (and C cannot check) is that a pointer with a length points to that much memory, that output buffers
//! overlap nothing else, that handles come from here and are freed once, and that no two threads use one worker at a
//! time.

#![allow(
    clippy::missing_safety_doc,
    reason = "the header states what callers owe; the module comment sums it up"
)]

mod training;

use crate::cache::ENTRIES_MAX;
use crate::encode::{EncodeError, Encoder};
use crate::family::Family;
use crate::model::{LoadError, Model};
use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// `PBT_ABI_VERSION` of the header.
pub const ABI_VERSION: u32 = 2;

const BUILD_ID: &str = concat!("pybench-tokenizer ", env!("CARGO_PKG_VERSION"), "\0");

/// `pbt_status`, but for `PBT_OK`.
#[derive(Clone, Copy)]
#[repr(i32)]
enum Failure {
    Argument = 1,
    Format = 3,
    Unsupported = 4,
    Utf8 = 5,
    Capacity = 6,
    Id = 7,
    Internal = 8,
    Memory = 9,
}

type Outcome = Result<(), Failure>;

/// `pbt_model`
pub struct ModelHandle {
    model: Arc<Model>,
}

/// `pbt_worker`
pub struct WorkerHandle {
    model: Arc<Model>,
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

fn family_of(name: &[u8]) -> Result<Family, LoadError> {
    let family = std::str::from_utf8(name).ok().and_then(Family::of_name);
    family.ok_or_else(|| {
        let names = "only gpt2, llama3, cl100k and o200k are supported";
        LoadError::Unsupported(format!("splitting rule {:?}; {names}", String::from_utf8_lossy(name)))
    })
}

/// Cuts the texts of special tokens apart.
///
/// # Safety
/// There are `count` ends, and as many bytes of text as the last of them says.
unsafe fn special_texts<'call>(text: *const u8, ends: *const u64, count: usize) -> Result<Vec<&'call str>, Failure> {
    // SAFETY: by the contract of this function.
    let ends = unsafe { input(ends, count)? };
    let text_bytes = usize::try_from(ends.last().copied().unwrap_or(0)).map_err(|_| Failure::Argument)?;
    // SAFETY: as above.
    let text = unsafe { input(text, text_bytes)? };
    let mut start = 0;
    let cut = |&end: &u64| {
        let end = usize::try_from(end).ok();
        let one = end.and_then(|end| text.get(std::mem::replace(&mut start, end)..end));
        one.and_then(|one| std::str::from_utf8(one).ok())
            .ok_or(Failure::Argument)
    };
    ends.iter().map(cut).collect()
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

/// What there is, or the reason why not as a message.
fn explained<T>(
    result: Result<T, LoadError>,
    message: &mut [MaybeUninit<u8>],
    message_bytes: &mut MaybeUninit<usize>,
) -> Result<T, Failure> {
    message_bytes.write(0);
    let (failure, text) = match result {
        Ok(value) => return Ok(value),
        Err(LoadError::Format(text)) => (Failure::Format, text),
        Err(LoadError::Unsupported(text)) => (Failure::Unsupported, text),
    };
    message_bytes.write(write_message(message, &text));
    Err(failure)
}

/// Frees a model; null is nothing to free. Its workers keep working.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbt_model_free(model: *mut ModelHandle) {
    status_of(|| {
        if !model.is_null() {
            // SAFETY: the pointer came from `pbt_model_load` and is freed once.
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
            true => AnyEncoder::Narrow(Encoder::new(cache_entries)),
            false => AnyEncoder::Wide(Encoder::new(cache_entries)),
        };
        worker.write(Box::into_raw(Box::new(WorkerHandle {
            model: Arc::clone(&model.model),
            encoder,
        })));
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
                encoder.encode_batch(&worker.model, text, offsets, ids, id_offsets)
            }
            AnyEncoder::Wide(encoder) => {
                // SAFETY: as above.
                let ids = unsafe { output(ids.cast(), ids_capacity)? };
                encoder.encode_batch(&worker.model, text, offsets, ids, id_offsets)
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
            decode(&model.model, ids.iter().map(|&id| u32::from(id)), bytes)
        } else {
            // SAFETY: as above.
            let ids = unsafe { input::<u32>(ids.cast(), id_count)? };
            decode(&model.model, ids.iter().copied(), bytes)
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

/// Writes what fits; returns the bytes needed, or the index of an id outside the vocabulary.
fn decode(model: &Model, ids: impl Iterator<Item = u32>, output: &mut [MaybeUninit<u8>]) -> Result<usize, usize> {
    let mut needed = 0;
    for (index, id) in ids.enumerate() {
        let token = model.bytes_of(id).ok_or(index)?;
        if let Some(places) = output.get_mut(needed..needed + token.len()) {
            for (place, &byte) in places.iter_mut().zip(token) {
                place.write(byte);
            }
        }
        needed += token.len();
    }
    Ok(needed)
}

/// Runs the body of a boundary function; a panic becomes a status.
fn status_of(body: impl FnOnce() -> Outcome) -> i32 {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => 0,
        Ok(Err(failure)) => failure as i32,
        Err(_) => Failure::Internal as i32,
    }
}

/// Copies as much of the message as fits, without NUL and without half a character; returns its length.
fn write_message(place: &mut [MaybeUninit<u8>], text: &str) -> usize {
    let mut end = text.len().min(place.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    for (byte_place, byte) in place.iter_mut().zip(text[..end].bytes()) {
        byte_place.write(if byte == 0 { b'?' } else { byte });
    }
    end
}

/// # Safety
/// `pointer` is null or points to a live handle.
unsafe fn shared<'call, T>(pointer: *const T) -> Result<&'call T, Failure> {
    // SAFETY: by the contract of this function.
    unsafe { pointer.as_ref() }.ok_or(Failure::Argument)
}

/// # Safety
/// `pointer` is null, or points to room for one `T` that nothing else uses during the call.
unsafe fn single<'call, T>(pointer: *mut T) -> Result<&'call mut MaybeUninit<T>, Failure> {
    if pointer.is_null() || !pointer.is_aligned() {
        return Err(Failure::Argument);
    }
    // SAFETY: not null, aligned, and by the contract of this function exclusive; MaybeUninit needs no value there.
    Ok(unsafe { &mut *pointer.cast() })
}

fn is_sound<T>(pointer: *const T, length: usize) -> bool {
    let fits = length
        .checked_mul(size_of::<T>())
        .is_some_and(|bytes| isize::try_from(bytes).is_ok());
    !pointer.is_null() && pointer.is_aligned() && fits
}

/// # Safety `pointer` points to `length` initialized values that nothing writes during the call; it may be null if
/// `length` is 0.
unsafe fn input<'call, T>(pointer: *const T, length: usize) -> Result<&'call [T], Failure> {
    if length == 0 {
        return Ok(&[]);
    }
    if !is_sound(pointer, length) {
        return Err(Failure::Argument);
    }
    // SAFETY: checked above, and by the contract of this function.
    Ok(unsafe { std::slice::from_raw_parts(pointer, length) })
}

/// # Safety `pointer` points to room for `length` values that nothing else uses during the call; it may be null if
/// `length` is 0.
unsafe fn output<'call, T>(pointer: *mut T, length: usize) -> Result<&'call mut [MaybeUninit<T>], Failure> {
    if length == 0 {
        return Ok(&mut []);
    }
    if !is_sound(pointer, length) {
        return Err(Failure::Argument);
    }
    // SAFETY: checked above, and by the contract of this function; MaybeUninit needs no values there.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer.cast(), length) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_status() {
        assert_eq!(status_of(|| panic!("expected by this test")), Failure::Internal as i32);
        assert_eq!(status_of(|| Ok(())), 0);
    }

    #[test]
    fn a_message_is_cut_between_characters_and_holds_no_nul() {
        let mut place = [MaybeUninit::new(0); 4];
        assert_eq!(write_message(&mut place, "a\0bé"), 3);
        // SAFETY: every place was initialized above.
        assert_eq!(place.map(|byte| unsafe { byte.assume_init() }), *b"a?b\0");
    }
}
