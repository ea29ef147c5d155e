// SPDX-License-Identifier: Apache-2.0
//! Encoding a text without special tokens, a batch of words at a time.
//!
//! Three passes over each batch keep what a word waits for apart from the word itself: the first finds where words end,
//! the second works out where in the cache each one lies and has it fetched, the third copies ids from there. The first
//! word that the cache lacks has all such words of its batch merged at once.

use crate::blocks::{BLOCK_BYTES, word_starts};
use crate::cache::{Cache, Key, Place, WORD_BYTES};
use crate::family::Rule;
use crate::long_cache::{LONG_WORD_BYTES, LongCache, LongKey};
use crate::merge::Merger;
use crate::model::Model;
use crate::output::{Full, Output};
use crate::scanner::word_end;
use crate::simd::{Level, PLACES_WRITTEN, Scalar, Simd};
use crate::token_id::TokenId;
use crate::unicode::ClassTable;

/// Words of a batch. Enough that memory has answered by the time a word's turn comes, few enough for the first cache.
const BATCH_WORDS: usize = 256;

/// One batch, as the passes leave it.
struct Batch {
    /// Where each word ends, as an offset in the text.
    ends: [u32; BATCH_WORDS + PLACES_WRITTEN],
    keys: [Key; BATCH_WORDS + PLACES_WRITTEN],
    places: [Place; BATCH_WORDS + PLACES_WRITTEN],
}

/// Cache and scratch memory of one thread.
pub struct WordEncoder<I: TokenId> {
    cache: Cache,
    long_cache: LongCache<I>,
    merger: Merger,
    batch: Box<Batch>,
}

impl<I: TokenId> WordEncoder<I> {
    /// `cache_entries`: 0, or a power of two.
    pub fn new(cache_entries: usize) -> Self {
        Self {
            cache: Cache::new(cache_entries),
            long_cache: LongCache::new(cache_entries),
            merger: Merger::default(),
            batch: Box::new(Batch {
                ends: [0; BATCH_WORDS + PLACES_WRITTEN],
                keys: [Key::default(); BATCH_WORDS + PLACES_WRITTEN],
                places: [Place::default(); BATCH_WORDS + PLACES_WRITTEN],
            }),
        }
    }

    /// Bytes held between documents, at most.
    pub fn bytes(&self) -> usize {
        self.cache.bytes() + self.long_cache.bytes() + Merger::retained_bytes() + size_of::<Batch>()
    }

    /// Gives back what a very long word made the scratch memory grow to.
    pub fn shrink(&mut self) {
        self.merger.shrink();
    }

    /// Encodes a text with the instructions of `level`, which the machine has.
    pub fn encode<R: Rule>(
        &mut self,
        level: Level,
        model: &Model,
        text: &str,
        output: &mut Output<I>,
    ) -> Result<(), Full> {
        let text = text.as_bytes();
        match level {
            // SAFETY: needs no instructions.
            Level::Scalar => unsafe { self.encode_with::<R, Scalar>(model, text, output) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: an encoder is made only for a level that the machine has.
            Level::Avx2 => unsafe { self.encode_avx2::<R>(model, text, output) },
            #[cfg(all(target_arch = "x86_64", has_avx512))]
            // SAFETY: as above.
            Level::Avx512 => unsafe { self.encode_avx512::<R>(model, text, output) },
            #[cfg(target_arch = "aarch64")]
            // SAFETY: as above; NEON needs no functions of its own, every 64-bit ARM has it.
            Level::Neon => unsafe { self.encode_with::<R, crate::simd::neon::Neon>(model, text, output) },
        }
    }

    /// # Safety
    /// The machine has the instructions.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn encode_avx2<R: Rule>(&mut self, model: &Model, text: &[u8], output: &mut Output<I>) -> Result<(), Full> {
        // SAFETY: by the contract of this function.
        unsafe { self.encode_with::<R, crate::simd::avx2::Avx2>(model, text, output) }
    }

    /// # Safety
    /// The machine has the instructions.
    #[cfg(all(target_arch = "x86_64", has_avx512))]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512vl,avx512vbmi2")]
    unsafe fn encode_avx512<R: Rule>(
        &mut self,
        model: &Model,
        text: &[u8],
        output: &mut Output<I>,
    ) -> Result<(), Full> {
        // SAFETY: by the contract of this function.
        unsafe { self.encode_with::<R, crate::simd::avx512::Avx512>(model, text, output) }
    }

    /// # Safety
    /// The machine has the instructions of `S`.
    #[inline(always)]
    unsafe fn encode_with<R: Rule, S: Simd>(
        &mut self,
        model: &Model,
        text: &[u8],
        output: &mut Output<I>,
    ) -> Result<(), Full> {
        let classes = ClassTable::shared();
        let mut at = 0;
        while at < text.len() {
            // SAFETY: by the contract of this function.
            let count = unsafe { find_ends::<R, S>(classes, text, at, &mut self.batch.ends) };
            self.look_ahead(text, at, count);
            at = self.write_ids::<S>(model, text, at, count, output)?;
        }
        Ok(())
    }

    /// Works out where each word lies in the cache, and has that fetched.
    #[inline(always)]
    fn look_ahead(&mut self, text: &[u8], mut start: usize, count: usize) {
        let Batch { ends, keys, places } = &mut *self.batch;
        for ((&end, key), place) in ends[..count].iter().zip(keys).zip(places) {
            let end = end as usize;
            if end - start <= WORD_BYTES {
                *key = Key::of(text, start, end);
                *place = self.cache.place(*key);
                self.cache.prefetch(*place);
            }
            start = end;
        }
    }

    /// Writes the ids of a batch; returns where it ends.
    #[inline(always)]
    fn write_ids<S: Simd>(
        &mut self,
        model: &Model,
        text: &[u8],
        mut start: usize,
        count: usize,
        output: &mut Output<I>,
    ) -> Result<usize, Full> {
        let mut has_learned = self.cache.is_off();
        for index in 0..count {
            let end = self.batch.ends[index] as usize;
            if end - start > WORD_BYTES {
                self.write_long(model, &text[start..end], output)?;
                start = end;
                continue;
            }
            let (key, place) = (self.batch.keys[index], self.batch.places[index]);
            let mut value = self.cache.find(place, key);
            if value.is_none() && !has_learned {
                has_learned = true;
                self.learn::<S>(model, start, index, count);
                value = self.cache.find(place, key);
            }
            match value {
                Some(value) => output.push_value(value)?,
                // Without a cache, of too many ids for it, or pushed out by others of the batch.
                None => output.extend(self.merger.merge(model.merges(), &text[start..end]))?,
            }
            start = end;
        }
        Ok(start)
    }

    #[inline(never)]
    fn write_long(&mut self, model: &Model, word: &[u8], output: &mut Output<I>) -> Result<(), Full> {
        if word.len() > LONG_WORD_BYTES {
            return output.extend(self.merger.merge(model.merges(), word));
        }
        let key = LongKey::of(word);
        if let Some(block) = self.long_cache.find(key) {
            return output.push_block(block);
        }
        let ids = self.merger.merge(model.merges(), word);
        self.long_cache.insert(key, ids);
        output.extend(ids)
    }

    /// Merges the words of the batch from `first` on that the cache lacks, and remembers them.
    #[inline(never)]
    fn learn<S: Simd>(&mut self, model: &Model, mut start: usize, first: usize, count: usize) {
        let Batch { ends, keys, places } = &*self.batch;
        let (mut short, mut longer) = (Missing::new(), Missing::new());
        for index in first..count {
            let length = ends[index] as usize - start;
            start = ends[index] as usize;
            if length > WORD_BYTES || self.cache.holds(places[index], keys[index]) {
                continue;
            }
            let missing = if length <= 8 { &mut short } else { &mut longer };
            missing.push(keys[index], places[index]);
        }
        for (missing, is_short) in [(&short, true), (&longer, false)] {
            learn_missing::<I, S>(model, &mut self.cache, &mut self.merger, missing, is_short);
        }
    }
}

/// Words to be merged.
struct Missing {
    words: [(Key, Place); BATCH_WORDS + PLACES_WRITTEN],
    count: usize,
}

impl Missing {
    fn new() -> Self {
        Self {
            words: [Default::default(); BATCH_WORDS + PLACES_WRITTEN],
            count: 0,
        }
    }

    fn push(&mut self, key: Key, place: Place) {
        self.words[self.count] = (key, place);
        self.count += 1;
    }
}

fn learn_missing<I: TokenId, S: Simd>(
    model: &Model,
    cache: &mut Cache,
    merger: &mut Merger,
    missing: &Missing,
    is_short: bool,
) {
    let words = &missing.words[..missing.count];
    #[cfg(target_arch = "x86_64")]
    if S::HAS_BLOCKS {
        use crate::simd::lanes::{Narrow8, Narrow16, Wide8, Wide16};
        let table = model.merges();
        // SAFETY: a `Simd` with blocks is used only where the machine has at least what `learn_groups` asks for; the
        // lanes of 16 bits are used only with byte pairs.
        return unsafe {
            match (table.byte_pairs().is_some(), is_short) {
                (true, true) => learn_groups::<I, Narrow8>(model, cache, words),
                (true, false) => learn_groups::<I, Narrow16>(model, cache, words),
                (false, true) => learn_groups::<I, Wide8>(model, cache, words),
                (false, false) => learn_groups::<I, Wide16>(model, cache, words),
            }
        };
    }
    let _ = is_short;
    for &(key, place) in words {
        let (word, length) = key.word();
        let ids = merger.merge(model.merges(), &word[..length]);
        if ids.len() <= I::PACKED_MAX && !cache.holds(place, key) {
            let mut all = [0; 8];
            all[..ids.len()].copy_from_slice(ids);
            cache.insert(place, key, I::pack(&all, ids.len()));
        }
    }
}

/// # Safety
/// As for [`crate::simd::lanes::merge_group`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn learn_groups<I: TokenId, L: crate::simd::lanes::Lanes>(
    model: &Model,
    cache: &mut Cache,
    words: &[(Key, Place)],
) {
    use crate::simd::lanes::{GROUP, merge_group};
    for group in words.chunks(GROUP) {
        // A group that is not full repeats its last word.
        let at = |index: usize| group[index.min(group.len() - 1)];
        let keys: [Key; GROUP] = std::array::from_fn(|index| at(index).0);
        // SAFETY: by the contract of this function.
        let merged = unsafe { merge_group::<L>(model.merges(), &keys) };
        for (&(key, place), symbols) in group.iter().zip(&merged) {
            let (ids, count) = symbols.first_ids();
            if count <= I::PACKED_MAX && !cache.holds(place, key) {
                cache.insert(place, key, I::pack(&ids, count));
            }
        }
    }
}

/// Finds where words end from `at` on, which is where one begins; returns how many ends it wrote.
///
/// # Safety
/// The machine has the instructions of `S`.
#[inline(always)]
unsafe fn find_ends<R: Rule, S: Simd>(
    classes: &ClassTable,
    text: &[u8],
    mut at: usize,
    ends: &mut [u32; BATCH_WORDS + PLACES_WRITTEN],
) -> usize {
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
