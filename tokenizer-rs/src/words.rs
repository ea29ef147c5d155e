// SPDX-License-Identifier: Apache-2.0
//! Encoding a text without special tokens, a batch of words at a time.
//!
//! Three passes over each batch keep what a word waits for apart from the word itself. The first finds where words end,
//! the second works out where in the cache each one lies and has it fetched. The third copies ids from there. Words
//! that the cache lacks are merged one by one while they are rare; where they are many, all those of a batch at once.
//!
//! Of a hundred words some ninety-nine are short and known. The second and the third pass are each a loop over those
//! with nothing in it for any other word. So it has the registers for itself: that made warm text a sixth faster.

use crate::cache::{Cache, Key, Place, WORD_BYTES};
use crate::family::Rule;
#[cfg(target_arch = "x86_64")]
use crate::learning::learn_groups;
use crate::long_cache::{LongCache, LongKey, SHORT_PER_LONG, SHORT_PER_LONGEST};
use crate::merge::Merger;
use crate::model::Model;
use crate::output::{Full, Output};
use crate::simd::{Level, PLACES_WRITTEN, Scalar, Simd};
#[cfg(target_arch = "x86_64")]
use crate::simd::{instructions::instructions, lanes};
use crate::token_id::TokenId;
use crate::unicode::ClassTable;
use crate::word_ends::{BATCH_WORDS, Ends, find_ends};

/// From how many missing words of two batches on the others are sought out and merged together.
const SOUGHT_FROM: usize = 12;

/// One batch, as the passes leave it.
struct Batch {
    /// Where each word ends, as an offset in the text.
    ends: Ends,
    keys: [Key; BATCH_WORDS + PLACES_WRITTEN],
    places: [Place; BATCH_WORDS + PLACES_WRITTEN],
    /// Words that the cache lacks: of up to 8 bytes, and longer ones.
    short: [u16; BATCH_WORDS + PLACES_WRITTEN],
    longer: [u16; BATCH_WORDS + PLACES_WRITTEN],
}

/// Cache and scratch memory of one thread.
pub struct WordEncoder<I: TokenId> {
    cache: Cache,
    long_cache: LongCache<I, 8>,
    longest_cache: LongCache<I, 32>,
    merger: Merger,
    level: Level,
    /// Words that the cache lacked in the last batch, as far as they were looked for.
    missed: usize,
    /// With those that this batch has shown so far; whether words are still learnt as they come.
    expected: usize,
    is_learning: bool,
    batch: Box<Batch>,
}

impl<I: TokenId> WordEncoder<I> {
    /// `cache_entries`: 0, or a power of two. `level`: one that the machine has.
    pub fn new(cache_entries: usize, level: Level) -> Self {
        Self {
            cache: Cache::new(cache_entries),
            long_cache: LongCache::new(cache_entries.div_ceil(SHORT_PER_LONG)),
            longest_cache: LongCache::new(cache_entries.div_ceil(SHORT_PER_LONGEST)),
            merger: Merger::new(level),
            level,
            missed: 0,
            expected: 0,
            is_learning: false,
            batch: Box::new(Batch {
                ends: [0; BATCH_WORDS + PLACES_WRITTEN],
                keys: [Key::default(); BATCH_WORDS + PLACES_WRITTEN],
                places: [Place::default(); BATCH_WORDS + PLACES_WRITTEN],
                short: [0; BATCH_WORDS + PLACES_WRITTEN],
                longer: [0; BATCH_WORDS + PLACES_WRITTEN],
            }),
        }
    }

    /// Bytes held between documents, at most.
    pub fn bytes(&self) -> usize {
        let caches = self.cache.bytes_max() + self.long_cache.bytes_max() + self.longest_cache.bytes_max();
        caches + Merger::retained_bytes() + size_of::<Batch>()
    }

    /// Bytes of scratch memory held now.
    #[cfg(test)]
    pub(crate) fn scratch_bytes(&self) -> usize {
        self.merger.held_bytes()
    }

    /// Gives back what a very long word made the scratch memory grow to.
    pub fn shrink(&mut self) {
        self.merger.shrink();
    }

    /// Encodes a text.
    pub fn encode<R: Rule>(&mut self, model: &Model, text: &str, output: &mut Output<I>) -> Result<(), Full> {
        let text = text.as_bytes();
        match self.level {
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

    #[cfg(target_arch = "x86_64")]
    instructions! {
        avx2 compiled

        /// # Safety
        /// The machine has the instructions.
        unsafe fn encode_avx2<R: Rule>(&mut self, model: &Model, text: &[u8], output: &mut Output<I>) -> Result<(), Full> {
            // SAFETY: by the contract of this function.
            unsafe { self.encode_with::<R, crate::simd::avx2::Avx2>(model, text, output) }
        }
    }

    #[cfg(all(target_arch = "x86_64", has_avx512))]
    instructions! {
        avx512 compiled

        /// # Safety
        /// The machine has the instructions.
        unsafe fn encode_avx512<R: Rule>(&mut self, model: &Model, text: &[u8], output: &mut Output<I>) -> Result<(), Full> {
            // SAFETY: by the contract of this function.
            unsafe { self.encode_with::<R, crate::simd::avx512::Avx512>(model, text, output) }
        }
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
            if self.cache.is_crowded() || self.long_cache.is_crowded() || self.longest_cache.is_crowded() {
                self.grow_caches();
            }
            // SAFETY: by the contract of this function.
            let count = unsafe { find_ends::<R, S>(classes, text, at, &mut self.batch.ends) };
            self.look_ahead(text, at, count);
            let end = self.batch.ends[count - 1] as usize;
            self.write_ids::<S>(model, text, at, count, output)?;
            at = end;
        }
        Ok(())
    }

    /// Between batches, whose places growing would move.
    #[cold]
    fn grow_caches(&mut self) {
        if self.cache.is_crowded() {
            self.cache.grow();
        }
        if self.long_cache.is_crowded() {
            self.long_cache.grow();
        }
        if self.longest_cache.is_crowded() {
            self.longest_cache.grow();
        }
    }

    /// Works out where each word lies in the cache, and has that fetched.
    #[inline(always)]
    fn look_ahead(&mut self, text: &[u8], mut start: usize, count: usize) {
        let mut index = 0;
        loop {
            (index, start) = self.look_at_short(text, start, index, count);
            if index == count {
                return;
            }
            let end = self.batch.ends[index] as usize;
            self.look_at_other(&text[start..end], index);
            start = end;
            index += 1;
        }
    }

    /// The words from `index` on, the first of which begins at `start`, up to one that is long or close to the end of the
    /// text. Returns which that is, and where it begins.
    #[inline(always)]
    fn look_at_short(&mut self, text: &[u8], mut start: usize, mut index: usize, count: usize) -> (usize, usize) {
        let Batch { ends, keys, places, .. } = &mut *self.batch;
        for ((&end, key), place) in ends[index..count]
            .iter()
            .zip(&mut keys[index..])
            .zip(&mut places[index..])
        {
            let end = end as usize;
            let Some(window) = text[start..].first_chunk() else {
                break;
            };
            if end - start > WORD_BYTES {
                break;
            }
            *key = Key::of_window(window, end - start);
            *place = self.cache.place(*key);
            self.cache.prefetch(*place);
            start = end;
            index += 1;
        }
        (index, start)
    }

    #[inline(never)]
    fn look_at_other(&mut self, word: &[u8], index: usize) {
        let place = &mut self.batch.places[index];
        if word.len() <= WORD_BYTES {
            let key = Key::of(word);
            *place = self.cache.place(key);
            self.batch.keys[index] = key;
            return;
        }
        *place = Place::NOWHERE;
        if word.len() <= LongKey::<8>::WORD_BYTES {
            self.long_cache.prefetch(LongKey::of(word));
        }
    }

    /// Writes the ids of a batch.
    #[inline(always)]
    fn write_ids<S: Simd>(
        &mut self,
        model: &Model,
        text: &[u8],
        start: usize,
        count: usize,
        output: &mut Output<I>,
    ) -> Result<(), Full> {
        self.expected = std::mem::take(&mut self.missed);
        self.is_learning = !self.cache.is_off();
        // An id stands for at least one byte, so that this is room for all of the batch.
        let has_room = output.has_room(self.batch.ends[count - 1] as usize - start);
        let mut index = 0;
        loop {
            if has_room {
                // SAFETY: there is room for as many ids as the batch has bytes and 8 more. Each word before these has
                // brought at most as many ids as it has bytes.
                index = unsafe { self.write_known(index, count, output) };
            }
            if index == count {
                return Ok(());
            }
            let start = if index == 0 {
                start
            } else {
                self.batch.ends[index - 1] as usize
            };
            self.write_one::<S>(model, text, start, index, count, output)?;
            index += 1;
        }
    }

    /// Writes the ids of words from `index` on for as long as the cache for short ones knows them; returns where that
    /// ended.
    ///
    /// # Safety
    /// There is room for as many ids as these words have bytes and 8 more.
    #[inline(always)]
    unsafe fn write_known(&mut self, mut index: usize, count: usize, output: &mut Output<I>) -> usize {
        let Batch { keys, places, .. } = &*self.batch;
        let mut room = output.room();
        for (&key, &place) in keys[index..count].iter().zip(&places[index..count]) {
            let Some(value) = self.cache.find(place, key) else {
                break;
            };
            // SAFETY: by the contract of this function.
            if unsafe { room.push_value(value) } == 0 {
                break;
            }
            index += 1;
        }
        room.close();
        index
    }

    /// Writes the ids of one word, whatever it is.
    #[inline(never)]
    fn write_one<S: Simd>(
        &mut self,
        model: &Model,
        text: &[u8],
        start: usize,
        index: usize,
        count: usize,
        output: &mut Output<I>,
    ) -> Result<(), Full> {
        let word = &text[start..self.batch.ends[index] as usize];
        if word.len() > WORD_BYTES {
            return self.write_long(model, word, output);
        }
        let (key, place) = (self.batch.keys[index], self.batch.places[index]);
        let mut value = self.cache.find(place, key);
        if value.is_none() && self.is_learning {
            self.expected += 1;
            self.is_learning = self.expected < SOUGHT_FROM;
            let last = if self.is_learning { index + 1 } else { count };
            self.learn::<S>(model, start, index, last);
            value = self.cache.find(place, key);
        }
        // A word that is not there now was pushed out by others of the batch, or there is no cache.
        if output.push_value(value.unwrap_or_default())? == 0 {
            let key = LongKey::of_short(key);
            write_cached(&mut self.long_cache, &mut self.merger, model, key, word, output)?;
        }
        Ok(())
    }

    fn write_long(&mut self, model: &Model, word: &[u8], output: &mut Output<I>) -> Result<(), Full> {
        let merger = &mut self.merger;
        if word.len() <= LongKey::<8>::WORD_BYTES {
            write_cached(&mut self.long_cache, merger, model, LongKey::of(word), word, output)
        } else if word.len() <= LongKey::<32>::WORD_BYTES {
            write_cached(&mut self.longest_cache, merger, model, LongKey::of(word), word, output)
        } else {
            output.extend(merger.merge(model.merges(), word))
        }
    }

    /// Merges the words of the batch from `first` on that the cache lacks, and remembers them.
    #[inline(never)]
    fn learn<S: Simd>(&mut self, model: &Model, mut start: usize, first: usize, count: usize) {
        let Batch {
            ends,
            keys,
            places,
            short,
            longer,
        } = &mut *self.batch;
        let (mut shorts, mut longers) = (0, 0);
        for index in first..count {
            let length = ends[index] as usize - start;
            start = ends[index] as usize;
            let is_missing = length <= WORD_BYTES && !self.cache.holds(places[index], keys[index]);
            // Written whether it counts or not: whether a word is missing is hard to predict.
            (short[shorts], longer[longers]) = (index as u16, index as u16);
            shorts += usize::from(is_missing & (length <= 8));
            longers += usize::from(is_missing & (length > 8));
        }
        self.missed += shorts + longers;
        let merges = model.merges();
        #[cfg(target_arch = "x86_64")]
        if S::HAS_BLOCKS {
            if shorts + longers <= lanes::GROUP {
                // One group for all: what it costs depends little on how many words it has.
                longer.copy_within(..longers, shorts);
                longer[..shorts].copy_from_slice(&short[..shorts]);
                (shorts, longers) = (0, shorts + longers);
            }
            // SAFETY: a `Simd` with blocks is used only where the machine has at least what this asks for.
            unsafe {
                learn_groups::<I>(merges, &mut self.cache, (keys, places), &short[..shorts], true);
                learn_groups::<I>(merges, &mut self.cache, (keys, places), &longer[..longers], false);
            }
            return;
        }
        for &index in short[..shorts].iter().chain(&longer[..longers]) {
            let (key, place) = (keys[usize::from(index)], places[usize::from(index)]);
            let (word, length) = key.word();
            let ids = self.merger.merge(merges, &word[..length]);
            let mut first = [0; 8];
            for (place, &id) in first.iter_mut().zip(ids) {
                *place = id;
            }
            self.cache.insert(place, key, I::pack(&first, ids.len()));
        }
    }
}

/// Writes the ids of a word that the cache for short ones has no room for.
fn write_cached<I: TokenId, const NUMBERS: usize>(
    cache: &mut LongCache<I, NUMBERS>,
    merger: &mut Merger,
    model: &Model,
    key: LongKey<NUMBERS>,
    word: &[u8],
    output: &mut Output<I>,
) -> Result<(), Full> {
    if let Some(block) = cache.find(key) {
        return output.push_block(block);
    }
    let ids = merger.merge(model.merges(), word);
    cache.insert(key, ids);
    output.extend(ids)
}
