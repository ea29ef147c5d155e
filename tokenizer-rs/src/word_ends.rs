// SPDX-License-Identifier: Apache-2.0
//! Where the words of a text end, a batch at a time: block by block with vector instructions where there are any, else
//! word by word.

use crate::blocks::{BLOCK_BYTES, word_starts};
use crate::family::{Cl100k, Family, Gpt2, Llama3, O200k, Rule};
use crate::scanner::word_end;
#[cfg(target_arch = "x86_64")]
use crate::simd::instructions::instructions;
use crate::simd::{Level, PLACES_WRITTEN, Scalar, Simd};
use crate::unicode::ClassTable;

/// Words of a batch. Enough that memory has answered by the time a word's turn comes, few enough for the first cache.
pub const BATCH_WORDS: usize = 256;

/// Where the words of a batch end, as offsets in the text.
pub type Ends = [u32; BATCH_WORDS + PLACES_WRITTEN];

/// The words of one text after another, for callers that only want to know where they end.
pub struct WordEnds {
    family: Family,
    level: Level,
    ends: Box<Ends>,
}

impl WordEnds {
    /// With the instructions of `level`, which is one of [`Level::available`].
    pub fn new(family: Family, level: Level) -> Self {
        assert!(Level::available().contains(&level));
        Self {
            family,
            level,
            ends: Box::new([0; BATCH_WORDS + PLACES_WRITTEN]),
        }
    }

    /// The ends of the next words from `at` on, where a word of `text` begins; at least one. `at` lies inside.
    pub fn batch(&mut self, text: &str, at: usize) -> &[u32] {
        let text = text.as_bytes();
        let count = match self.family {
            Family::Gpt2 => self.find::<Gpt2>(text, at),
            Family::Llama3 => self.find::<Llama3>(text, at),
            Family::Cl100k => self.find::<Cl100k>(text, at),
            Family::O200k => self.find::<O200k>(text, at),
        };
        &self.ends[..count]
    }

    fn find<R: Rule>(&mut self, text: &[u8], at: usize) -> usize {
        let classes = ClassTable::shared();
        // SAFETY: the machine has the instructions: `new` has checked it.
        unsafe {
            match self.level {
                Level::Scalar => find_ends::<R, Scalar>(classes, text, at, &mut self.ends),
                #[cfg(target_arch = "x86_64")]
                Level::Avx2 => find_ends_avx2::<R>(classes, text, at, &mut self.ends),
                #[cfg(all(target_arch = "x86_64", has_avx512))]
                Level::Avx512 => find_ends_avx512::<R>(classes, text, at, &mut self.ends),
                #[cfg(target_arch = "aarch64")]
                Level::Neon => find_ends::<R, crate::simd::neon::Neon>(classes, text, at, &mut self.ends),
            }
        }
    }
}

/// Where all words of a text end.
pub fn word_ends_of(family: Family, level: Level, text: &str) -> Vec<usize> {
    let (mut all, mut words, mut at) = (Vec::new(), WordEnds::new(family, level), 0);
    while at < text.len() {
        all.extend(words.batch(text, at).iter().map(|&end| end as usize));
        at = all[all.len() - 1];
    }
    all
}

#[cfg(target_arch = "x86_64")]
instructions! {
    avx2 compiled

    /// # Safety
    /// The machine has the instructions.
    unsafe fn find_ends_avx2<R: Rule>(classes: &ClassTable, text: &[u8], at: usize, ends: &mut Ends) -> usize {
        // SAFETY: by the contract of this function.
        unsafe { find_ends::<R, crate::simd::avx2::Avx2>(classes, text, at, ends) }
    }
}

#[cfg(all(target_arch = "x86_64", has_avx512))]
instructions! {
    avx512 compiled

    /// # Safety
    /// The machine has the instructions.
    unsafe fn find_ends_avx512<R: Rule>(classes: &ClassTable, text: &[u8], at: usize, ends: &mut Ends) -> usize {
        // SAFETY: by the contract of this function.
        unsafe { find_ends::<R, crate::simd::avx512::Avx512>(classes, text, at, ends) }
    }
}

/// Finds where words end from `at` on, which is where one begins; returns how many ends it wrote.
///
/// # Safety
/// The machine has the instructions of `S`.
#[inline(always)]
pub unsafe fn find_ends<R: Rule, S: Simd>(classes: &ClassTable, text: &[u8], mut at: usize, ends: &mut Ends) -> usize {
    let mut count = 0;
    while S::HAS_BLOCKS && count < BATCH_WORDS {
        let block = text.get(at..at + BLOCK_BYTES).and_then(|block| block.try_into().ok());
        let Some(block) = block else { break };
        // SAFETY: by the contract of this function.
        let starts = word_starts::<R>(classes, text, at, block, unsafe { S::masks(block) });
        let behind_first = starts & (starts - 1);
        if behind_first == 0 {
            // A word that fills the block, or what the bits cannot express.
            at = word_end::<R>(classes, text, at);
            ends[count] = at as u32;
            count += 1;
            continue;
        }
        // SAFETY: `count` is below `BATCH_WORDS`, and behind that there is room for all that may be written.
        unsafe { S::write_places(behind_first, at as u32, ends.as_mut_ptr().add(count)) };
        count += behind_first.count_ones() as usize;
        at += 63 - behind_first.leading_zeros() as usize;
    }
    if !S::HAS_BLOCKS || at + BLOCK_BYTES > text.len() {
        while count < BATCH_WORDS && at < text.len() {
            at = word_end::<R>(classes, text, at);
            ends[count] = at as u32;
            count += 1;
        }
    }
    count
}
