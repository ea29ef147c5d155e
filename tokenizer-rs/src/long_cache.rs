// SPDX-License-Identifier: Apache-2.0
//! The cache's sister for longer words, in two widths. One is of 16 to 63 bytes, and shorter ones of many ids (rare in
//! English, every third word where letters take two bytes). The other is of up to 255 (the lines that people draw of
//! `=` and `-`).

use crate::cache::Key;
use crate::growth::GrowingTable;
use crate::memory::{Zeroed, prefetch};
use crate::token_id::TokenId;

/// Entries of the cache for short words on one of up to 63 bytes; each is four times as large.
pub const SHORT_PER_LONG: usize = 32;

/// Entries of the cache for short words on one of up to 255 bytes; each is ten times as large.
pub const SHORT_PER_LONGEST: usize = 512;

/// A word of up to `8 * NUMBERS - 1` bytes: its bytes, zeros, its length.
#[derive(Clone, Copy)]
pub struct LongKey<const NUMBERS: usize>([u64; NUMBERS]);

impl<const NUMBERS: usize> LongKey<NUMBERS> {
    /// The longest word, in bytes; its length has to fit the last one.
    pub const WORD_BYTES: usize = 8 * NUMBERS - 1;
    const NONE: Self = Self([0; NUMBERS]);

    /// The key of a word of 1 to `WORD_BYTES` bytes.
    #[inline(always)]
    pub fn of(word: &[u8]) -> Self {
        let mut bytes = [[0; 8]; NUMBERS];
        bytes.as_flattened_mut()[..word.len()].copy_from_slice(word);
        bytes[NUMBERS - 1][7] = word.len() as u8;
        Self(bytes.map(u64::from_le_bytes))
    }

    /// The key of a short word that has too many ids for the cache of its kind. Its last number has no length.
    #[inline(always)]
    pub fn of_short(key: Key) -> Self {
        let mut numbers = [0; NUMBERS];
        numbers[..2].copy_from_slice(&key.numbers());
        Self(numbers)
    }

    #[inline(always)]
    fn hash(self) -> u64 {
        const MULTIPLIERS: [u64; 2] = [0x9E37_79B9_7F4A_7C15, 0xC2B2_AE3D_27D4_EB4F];
        let mut mixed: u64 = 0;
        for pair in self.0.chunks_exact(2) {
            // The whole product, whose high bits are folded into the low ones.
            let product = u128::from(pair[0] ^ MULTIPLIERS[0]) * u128::from(pair[1] ^ MULTIPLIERS[1]);
            mixed = mixed.rotate_left(23) ^ product as u64 ^ (product >> 64) as u64;
        }
        mixed.wrapping_mul(MULTIPLIERS[0])
    }
}

impl<const NUMBERS: usize> PartialEq for LongKey<NUMBERS> {
    /// Without a branch before the end, so that registers do it.
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        let pairs = self.0.iter().zip(&other.0);
        pairs.fold(0, |different, (one, another)| different | one ^ another) == 0
    }
}

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Entry<I: TokenId, const NUMBERS: usize> {
    key: LongKey<NUMBERS>,
    /// The last is the count.
    ids: I::Block,
}

type Set<I, const NUMBERS: usize> = [Entry<I, NUMBERS>; 2];

/// The cache of one thread. It grows as its sister does.
pub struct LongCache<I: TokenId, const NUMBERS: usize> {
    sets: GrowingTable<Set<I, NUMBERS>>,
    mask: usize,
}

// SAFETY: numbers, and a block of ids, which says the same of itself.
unsafe impl<I: TokenId, const NUMBERS: usize> Zeroed for Set<I, NUMBERS> {}

impl<I: TokenId, const NUMBERS: usize> LongCache<I, NUMBERS> {
    const SET_BYTES: usize = size_of::<Set<I, NUMBERS>>();

    /// Sets of a new cache, at most: a power of two, and 64 KiB.
    const SETS_FIRST: usize = 1 << ((64 << 10) / Self::SET_BYTES).ilog2();

    /// `entries`: at most, 0 or a power of two (1 counts as 2).
    pub fn new(entries: usize) -> Self {
        let sets = GrowingTable::new(entries.div_ceil(2), Self::SETS_FIRST);
        Self {
            mask: sets.len().max(1) - 1,
            sets,
        }
    }

    /// Bytes of memory that the cache holds at most, those included that are held only while it grows.
    pub fn bytes_max(&self) -> usize {
        self.sets.bytes_max()
    }

    /// Whether it is time to grow.
    #[inline(always)]
    pub fn is_crowded(&self) -> bool {
        self.sets.is_crowded()
    }

    /// Moves to a larger table, within the bound.
    #[cold]
    pub fn grow(&mut self) {
        let old = self.sets.grow();
        self.mask = self.sets.len() - 1;
        for set in old.iter() {
            for entry in set.iter().rev().filter(|entry| entry.key != LongKey::NONE) {
                self.push(*entry);
            }
        }
    }

    /// The ids of a word, behind which the count stands.
    #[inline(always)]
    pub fn find(&mut self, key: LongKey<NUMBERS>) -> Option<&I::Block> {
        let set = self.set(key)?;
        if set[0].key != key {
            if set[1].key != key {
                return None;
            }
            set.swap(0, 1);
        }
        Some(&set[0].ids)
    }

    /// Remembers a word that the cache does not hold, when its ids fit.
    pub fn insert(&mut self, key: LongKey<NUMBERS>, ids: &[u32]) {
        let mut block = I::Block::default();
        let (last, places) = match block.as_mut().split_last_mut() {
            Some((last, places)) if ids.len() <= places.len() => (last, places),
            _ => return,
        };
        for (place, &id) in places.iter_mut().zip(ids) {
            *place = I::narrow(id);
        }
        *last = I::narrow(ids.len() as u32);
        self.push(Entry { key, ids: block });
    }

    fn push(&mut self, entry: Entry<I, NUMBERS>) {
        if let Some(set) = self.set(entry.key) {
            set[1] = set[0];
            set[0] = entry;
            self.sets.count_word();
        }
    }

    /// Fetches the first entry of a word's set ahead of its use.
    #[inline(always)]
    pub fn prefetch(&self, key: LongKey<NUMBERS>) {
        let set = self.sets.as_ptr().wrapping_add(self.place(key)).cast::<u8>();
        for line in (0..Self::SET_BYTES / 2).step_by(64) {
            prefetch(set.wrapping_add(line));
        }
    }

    #[inline(always)]
    fn place(&self, key: LongKey<NUMBERS>) -> usize {
        (key.hash() >> 32) as usize & self.mask
    }

    #[inline(always)]
    fn set(&mut self, key: LongKey<NUMBERS>) -> Option<&mut Set<I, NUMBERS>> {
        let place = self.place(key);
        self.sets.get_mut(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_every_length_are_told_apart() {
        tell_apart::<8>(&Vec::from_iter(16..=63));
        tell_apart::<32>(&[64, 65, 71, 72, 127, 128, 191, 192, 252, 253, 254, 255]);
    }

    fn tell_apart<const NUMBERS: usize>(lengths: &[usize]) {
        let text: Vec<u8> = (1..=255).collect();
        let mut cache = LongCache::<u16, NUMBERS>::new(1 << 14);
        for &length in lengths {
            assert!(cache.find(LongKey::of(&text[..length])).is_none());
            cache.insert(LongKey::of(&text[..length]), &[length as u32, 7]);
        }
        for &length in lengths {
            let key = LongKey::of(&text[..length]);
            let ids = cache.find(key).unwrap();
            assert_eq!((ids[0], ids[1], ids[31]), (length as u16, 7, 2));
            let mut changed = text[..length].to_vec();
            for at in 0..length {
                changed[at] ^= 0x80;
                assert!(cache.find(LongKey::of(&changed)).is_none(), "{length} {at}");
                changed[at] ^= 0x80;
            }
        }
    }

    #[test]
    fn the_cache_grows_to_its_bound_and_keeps_what_it_knows() {
        let (sets, steps) = grown::<8>(1 << 12);
        assert_eq!((sets, steps), (1 << 11, 2));
        let (sets, steps) = grown::<32>(1 << 11);
        assert_eq!((sets, steps), (1 << 10, 2));
    }

    /// How many sets a cache has behind 2,000 words, and in how many steps it came there.
    fn grown<const NUMBERS: usize>(entries: usize) -> (usize, usize) {
        let mut cache = LongCache::<u16, NUMBERS>::new(entries);
        let word = |number: u32| format!("a word that is long enough {number:08}");
        let mut steps = 0;
        for number in 0..2_000 {
            cache.insert(LongKey::of(word(number).as_bytes()), &[number % 60_000]);
            if cache.is_crowded() {
                cache.grow();
                steps += 1;
                let found = cache.find(LongKey::of(word(number).as_bytes())).map(|ids| ids[0]);
                assert_eq!(found, Some((number % 60_000) as u16));
            }
        }
        assert_eq!(cache.bytes_max(), size_of_val(&*cache.sets) * 5 / 4);
        (cache.sets.len(), steps)
    }
}
