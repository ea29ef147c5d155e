// SPDX-License-Identifier: Apache-2.0
//! The part of the C boundary that trains vocabularies.

use super::crossing::{Failure, explained, family_of, input, output, shared, single, special_texts, status_of};
use crate::training::{FeedError, Recipe, Trainer};
use std::ffi::c_char;

/// `pbt_trainer`
pub struct TrainerHandle {
    trainer: Trainer,
    /// What was trained last.
    json: Vec<u8>,
}

/// Makes a trainer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbt_trainer_new(
    family: *const u8,
    family_bytes: usize,
    table_bytes_max: usize,
    trainer: *mut *mut TrainerHandle,
    message: *mut c_char,
    message_capacity: usize,
    message_bytes: *mut usize,
) -> i32 {
    status_of(|| {
        // SAFETY: pointers with their lengths; null and misaligned ones are refused.
        let (family, message) = unsafe {
            (
                input(family, family_bytes)?,
                output::<u8>(message.cast(), message_capacity)?,
            )
        };
        // SAFETY: as above.
        let (place, message_bytes) = unsafe { (single(trainer)?, single(message_bytes)?) };
        place.write(std::ptr::null_mut());
        let made = family_of(family).and_then(|family| Trainer::new(family, table_bytes_max));
        let trainer = explained(made, message, message_bytes)?;
        place.write(Box::into_raw(Box::new(TrainerHandle {
            trainer,
            json: Vec::new(),
        })));
        Ok(())
    })
}

/// Frees a trainer; null is nothing to free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbt_trainer_free(trainer: *mut TrainerHandle) {
    status_of(|| {
        if !trainer.is_null() {
            // SAFETY: the pointer came from `pbt_trainer_new` and is freed once.
            drop(unsafe { Box::from_raw(trainer) });
        }
        Ok(())
    });
}

/// Distinct words so far; 0 for a null trainer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbt_trainer_words(trainer: *const TrainerHandle) -> usize {
    // SAFETY: null, or a live trainer.
    unsafe { trainer.as_ref() }.map_or(0, |handle| handle.trainer.counts().len())
}

/// Counts the words of a batch of documents.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbt_trainer_feed(
    trainer: *mut TrainerHandle,
    text: *const u8,
    offsets: *const u64,
    document_count: usize,
    position: *mut usize,
) -> i32 {
    status_of(|| {
        // SAFETY: null, or a live trainer that no other thread uses now; a place for the result.
        let (handle, position) = unsafe { (trainer.as_mut().ok_or(Failure::Argument)?, single(position)?) };
        position.write(0);
        let entries = document_count.checked_add(1).ok_or(Failure::Argument)?;
        // SAFETY: pointers with their lengths; the last offset is the length of the text.
        let offsets = unsafe { input(offsets, entries)? };
        let text_bytes = usize::try_from(offsets[document_count]).map_err(|_| Failure::Argument)?;
        // SAFETY: as above.
        let text = unsafe { input(text, text_bytes)? };
        match handle.trainer.feed(text, offsets) {
            Ok(()) => Ok(()),
            Err(FeedError::Offsets) => Err(Failure::Argument),
            Err(FeedError::Memory) => Err(Failure::Memory),
            Err(FeedError::Utf8 { position: at }) => {
                position.write(at);
                Err(Failure::Utf8)
            }
        }
    })
}

/// Learns the merges of a vocabulary.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbt_trainer_train(
    trainer: *mut TrainerHandle,
    vocab_size: u32,
    frequency_min: u64,
    specials: *const u8,
    special_ends: *const u64,
    special_count: usize,
    json_bytes: *mut usize,
    message: *mut c_char,
    message_capacity: usize,
    message_bytes: *mut usize,
) -> i32 {
    status_of(|| {
        // SAFETY: null, or a live trainer that no other thread uses now; a place for the result.
        let (handle, json_bytes) = unsafe { (trainer.as_mut().ok_or(Failure::Argument)?, single(json_bytes)?) };
        json_bytes.write(0);
        // SAFETY: pointers with their lengths; the texts are as long as the last end says.
        let (message, message_bytes, specials) = unsafe {
            (
                output::<u8>(message.cast(), message_capacity)?,
                single(message_bytes)?,
                special_texts(specials, special_ends, special_count)?,
            )
        };
        let recipe = Recipe {
            vocabulary_size: vocab_size as usize,
            frequency_min,
            specials,
        };
        handle.json = explained(handle.trainer.train(&recipe), message, message_bytes)?;
        json_bytes.write(handle.json.len());
        Ok(())
    })
}

/// Copies the `tokenizer.json` of what was trained last.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbt_trainer_json(
    trainer: *const TrainerHandle,
    json: *mut u8,
    json_capacity: usize,
    count: *mut usize,
) -> i32 {
    status_of(|| {
        // SAFETY: null, or a live trainer; pointers with their lengths.
        let (handle, json, count) = unsafe { (shared(trainer)?, output(json, json_capacity)?, single(count)?) };
        count.write(handle.json.len());
        let places = json.get_mut(..handle.json.len()).ok_or(Failure::Capacity)?;
        for (place, &byte) in places.iter_mut().zip(&handle.json) {
            place.write(byte);
        }
        Ok(())
    })
}
