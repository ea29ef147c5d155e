// SPDX-License-Identifier: Apache-2.0
//! Words that the cache lacks, merged in step a group at a time ([`crate::simd::lanes`]) and remembered.

use crate::cache::{Cache, Key, Place};
use crate::merge_table::MergeTable;
use crate::simd::PLACES_WRITTEN;
use crate::simd::instructions::instructions;
use crate::simd::lanes::{self, Narrow8, Narrow16, Wide8, Wide16};
use crate::token_id::TokenId;
use crate::word_ends::BATCH_WORDS;

/// Keys and places of a batch.
pub type Words<'batch> = (
    &'batch [Key; BATCH_WORDS + PLACES_WRITTEN],
    &'batch [Place; BATCH_WORDS + PLACES_WRITTEN],
);

instructions! {
    avx2 compiled

    /// Merges the words with these indices, all of them of at most 8 bytes if they are short.
    ///
    /// # Safety
    /// The machine has the instructions.
    pub unsafe fn learn_groups<I: TokenId>(
        merges: &MergeTable,
        cache: &mut Cache,
        words: Words,
        indices: &[u16],
        are_short: bool,
    ) {
        let mut rest = indices;
        while !rest.is_empty() {
            // SAFETY: by the contract of this function; the lanes of 16 bits are used only with byte pairs.
            let merged = unsafe {
                match (merges.byte_pairs().is_some(), are_short) {
                    (true, true) => learn_group::<I, Narrow8>(merges, cache, words, rest),
                    (true, false) => learn_group::<I, Narrow16>(merges, cache, words, rest),
                    (false, true) => learn_group::<I, Wide8>(merges, cache, words, rest),
                    (false, false) => learn_group::<I, Wide16>(merges, cache, words, rest),
                }
            };
            rest = &rest[merged..];
        }
    }
}

/// # Safety
/// As for [`lanes::merge_group`].
#[inline(always)]
unsafe fn learn_group<I: TokenId, L: lanes::Lanes>(
    merges: &MergeTable,
    cache: &mut Cache,
    words: Words,
    indices: &[u16],
) -> usize {
    // SAFETY: by the contract of this function.
    unsafe {
        match indices.len() {
            1 => learn_some::<I, L, 1>(merges, cache, words, indices),
            2 => learn_some::<I, L, 2>(merges, cache, words, indices),
            _ => learn_some::<I, L, { lanes::GROUP }>(merges, cache, words, indices),
        }
    }
}

/// Merges the first `GROUP` of the words; returns how many those are. A group that is not full repeats its first word.
///
/// # Safety
/// As for [`lanes::merge_group`].
#[inline(always)]
unsafe fn learn_some<I: TokenId, L: lanes::Lanes, const GROUP: usize>(
    merges: &MergeTable,
    cache: &mut Cache,
    (keys, places): Words,
    indices: &[u16],
) -> usize {
    let mut words = [keys[usize::from(indices[0])]; GROUP];
    for (word, &index) in words.iter_mut().zip(indices) {
        *word = keys[usize::from(index)];
    }
    // SAFETY: by the contract of this function.
    let merged = unsafe { lanes::merge_group::<L, GROUP>(merges, &words) };
    for (&index, symbols) in indices.iter().zip(&merged) {
        let (ids, count) = symbols.first_ids();
        cache.insert(
            places[usize::from(index)],
            keys[usize::from(index)],
            I::pack(&ids, count),
        );
    }
    indices.len().min(GROUP)
}
