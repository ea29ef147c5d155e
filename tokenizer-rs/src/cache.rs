// SPDX-License-Identifier: Apache-2.0
//! A cache of bounded size from short words to their ids.
//!
//! Two entries of 32 bytes share a cache line of 64, so a probe costs one memory access. Where it will be is known
//! early enough to fetch it ahead. The whole word is compared: a hash collision costs time, never an id. A new word
//! takes the first place of its line and pushes the old one to the second. A hit in the second place swaps the two,
//! which keeps frequent words from being pushed out by rare ones.
//!
//! The cache begins small and grows with the words that it has been given, up to its bound and not beyond. A short text
//! should not pay for pages that it never needs, and a small table stays closer to the processor. A table without a
//! bound is fast on text that it has seen and slow on all other. Gigatoken, from which the layout of one line a probe
//! is taken (MIT licence), shows both.

use crate::growth::GrowingTable;
use crate::memory::{Zeroed, prefetch};

/// The longest word that an entry takes, in bytes: a key is 16 bytes, of which the last is the length.
pub const WORD_BYTES: usize = 15;

/// The largest number of entries that a cache may have.
pub const ENTRIES_MAX: usize = 1 << 24;

/// A word of 1 to 15 bytes: its bytes, zeros, its length. No word has the key 0.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(C)]
pub struct Key {
    low: u64,
    high: u64,
}

impl Key {
    /// The key of a word of 1 to `WORD_BYTES` bytes.
    pub fn of(word: &[u8]) -> Self {
        let mut window = [0; 16];
        window[..word.len()].copy_from_slice(word);
        Self::of_window(&window, word.len())
    }

    /// The key of the first `length` bytes of a window, 1 to `WORD_BYTES`.
    #[inline(always)]
    pub fn of_window(window: &[u8; 16], length: usize) -> Self {
        debug_assert!((1..=WORD_BYTES).contains(&length));
        let bytes = u128::from_le_bytes(*window);
        let (low, high) = MASKS[length & 15];
        Self {
            low: bytes as u64 & low,
            high: (bytes >> 64) as u64 & high | (length as u64) << 56,
        }
    }

    /// The bytes of the word, and zeros.
    #[inline(always)]
    pub fn word(self) -> ([u8; 16], usize) {
        let mut word = [0; 16];
        word[..8].copy_from_slice(&self.low.to_le_bytes());
        word[8..].copy_from_slice(&self.high.to_le_bytes());
        word[15] = 0;
        (word, (self.high >> 56) as usize)
    }

    /// The same as two numbers.
    #[inline(always)]
    pub fn numbers(self) -> [u64; 2] {
        [self.low, self.high]
    }

    #[inline(always)]
    fn hash(self) -> u64 {
        // Odd constants from the golden ratio and from xxHash; only the highest bits of the product are used.
        (self.low.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ self.high).wrapping_mul(0xC2B2_AE3D_27D4_EB4F)
    }
}

/// What stays of each half of a window for each length.
const MASKS: [(u64, u64); 16] = {
    let mut masks = [(0, 0); 16];
    let mut length = 1;
    while length < 16 {
        let all = (1_u128 << (8 * length)) - 1;
        masks[length] = (all as u64, (all >> 64) as u64);
        length += 1;
    }
    masks
};

/// The ids of one word, packed by [`crate::token_id::TokenId`].
pub type Value = [u64; 2];

#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Entry {
    key: Key,
    value: Value,
}

#[derive(Clone, Copy, Default)]
#[repr(C, align(64))]
struct Line {
    entries: [Entry; 2],
}

const _: () = assert!(size_of::<Line>() == 64);

// SAFETY: numbers all through.
unsafe impl Zeroed for Line {}

impl Line {
    /// Swaps the entries; returns the value of the one that is now the first.
    #[inline(always)]
    fn swap(&mut self) -> Value {
        self.entries.swap(0, 1);
        self.entries[0].value
    }
}

/// Which line a word belongs to.
#[derive(Clone, Copy, Default)]
pub struct Place(u32);

impl Place {
    /// No line: what is looked for here is not found. (A table has at most `ENTRIES_MAX / 2` lines.)
    pub const NOWHERE: Self = Self(u32::MAX);
}

/// Lines of a new cache, at most: 128 KiB, a part of a processor's second cache.
const LINES_FIRST: usize = 1 << 11;

/// The cache of one thread.
pub struct Cache {
    lines: GrowingTable<Line>,
    /// What of the highest 32 bits of a hash is left is the number of a line.
    shift: u32,
}

impl Cache {
    /// `entries`, at most: 0 for none, else a power of two from 2 to `ENTRIES_MAX` (1 counts as 2: a line has two).
    pub fn new(entries: usize) -> Self {
        assert!(entries == 0 || entries.is_power_of_two() && entries <= ENTRIES_MAX);
        let lines = GrowingTable::new(entries.div_ceil(2), LINES_FIRST);
        Self {
            shift: shift_of(&lines),
            lines,
        }
    }

    /// Bytes of memory that the cache holds at most, those included that are held only while it grows.
    pub fn bytes_max(&self) -> usize {
        self.lines.bytes_max()
    }

    /// Whether it is time to grow.
    #[inline(always)]
    pub fn is_crowded(&self) -> bool {
        self.lines.is_crowded()
    }

    /// Moves to a larger table, within the bound. Places that were worked out before do not hold any more.
    #[cold]
    pub fn grow(&mut self) {
        let old = self.lines.grow();
        self.shift = shift_of(&self.lines);
        for line in old.iter() {
            for entry in line.entries.iter().rev().filter(|entry| entry.key != Key::default()) {
                self.insert(self.place(entry.key), entry.key, entry.value);
            }
        }
    }

    /// Whether nothing can ever be found.
    pub fn is_off(&self) -> bool {
        self.lines.is_empty()
    }

    /// The line of a word. Only the highest bits of the hash depend on all of the word.
    #[inline(always)]
    pub fn place(&self, key: Key) -> Place {
        Place(((key.hash() >> 32) >> self.shift) as u32)
    }

    /// Fetches a line ahead of its use.
    #[inline(always)]
    pub fn prefetch(&self, place: Place) {
        prefetch(self.lines.as_ptr().wrapping_add(place.0 as usize));
    }

    /// The ids of a word, given its line.
    #[inline(always)]
    pub fn find(&mut self, place: Place, key: Key) -> Option<Value> {
        let line = self.lines.get_mut(place.0 as usize)?;
        if line.entries[0].key == key {
            return Some(line.entries[0].value);
        }
        line.entries[1].key.eq(&key).then(|| line.swap())
    }

    /// Whether a word is there; moves nothing.
    #[inline(always)]
    pub fn holds(&self, place: Place, key: Key) -> bool {
        let line = self.lines.get(place.0 as usize);
        line.is_some_and(|line| line.entries[0].key == key || line.entries[1].key == key)
    }

    /// Remembers a word.
    #[inline(always)]
    pub fn insert(&mut self, place: Place, key: Key, value: Value) {
        if let Some(line) = self.lines.get_mut(place.0 as usize) {
            if line.entries[0].key == key {
                // A batch may bring a new word twice.
                return;
            }
            line.entries[1] = line.entries[0];
            line.entries[0] = Entry { key, value };
            self.lines.count_word();
        }
    }
}

fn shift_of(lines: &[Line]) -> u32 {
    32 - lines.len().max(1).ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words of eight bytes that differ in the last four.
    fn key(number: u32) -> Key {
        Key::of(&(u64::from(number) << 32 | 0x6161_6161).to_le_bytes())
    }

    #[test]
    fn a_cache_grows_to_its_bound_and_keeps_what_it_knows() {
        // Miri takes a thousand times as long.
        let sizes_and_words = if cfg!(miri) {
            &[(1 << 13, 2_100)][..]
        } else {
            &[(1 << 13, 1_000_000), (1 << 17, 1_000_000)]
        };
        for &(entries, words) in sizes_and_words {
            let mut cache = Cache::new(entries);
            let mut sizes = vec![cache.lines.len()];
            for number in 0..words {
                cache.insert(cache.place(key(number)), key(number), [u64::from(number), 7]);
                if cache.is_crowded() {
                    cache.grow();
                    sizes.push(cache.lines.len());
                    let newest = cache.find(cache.place(key(number)), key(number));
                    assert_eq!(newest, Some([u64::from(number), 7]));
                    let kept = (0..=number).filter(|&one| cache.holds(cache.place(key(one)), key(one)));
                    let kept = kept.count();
                    assert!(kept as f64 > 0.85 * f64::from(number), "{kept} of {number}");
                }
            }
            assert_eq!((sizes[0], sizes.last()), (1 << 10, Some(&(entries / 2))));
            let largest_step = sizes.windows(2).map(|step| step[0] + step[1]).max().unwrap();
            assert!(cache.bytes_max() == size_of::<Line>() * largest_step && !cache.is_crowded());
        }
    }

    #[test]
    fn small_caches_and_none_never_grow() {
        for entries in [0, 2, 1 << 12] {
            let mut cache = Cache::new(entries);
            for number in 0..if cfg!(miri) { 1_000 } else { 100_000 } {
                cache.insert(cache.place(key(number)), key(number), [1, 1]);
                assert!(!cache.is_crowded());
            }
            assert_eq!(cache.bytes_max(), size_of_val(&*cache.lines));
        }
    }
}
