// SPDX-License-Identifier: Apache-2.0
//! The cache's sister for words of 16 to 63 bytes, and for shorter ones of many ids: rare in English, every third word
//! where letters take two bytes.

use crate::cache::Key;
use crate::growth;
use crate::memory::{Table, Zeroed, prefetch};
use crate::token_id::TokenId;

/// The longest word that an entry takes.
pub const LONG_WORD_BYTES: usize = 63;

/// Entries of the cache for short words on one of these; each is four times as large.
pub const SHORT_PER_LONG: usize = 32;

/// A word of up to 63 bytes: its bytes, zeros, its length.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct LongKey([u64; 8]);

impl LongKey {
    /// The key of a word of 1 to 63 bytes.
    #[inline(always)]
    pub fn of(word: &[u8]) -> Self {
        let mut bytes = [0; LONG_WORD_BYTES + 1];
        bytes[..word.len()].copy_from_slice(word);
        bytes[LONG_WORD_BYTES] = word.len() as u8;
        let number = |at: usize| u64::from_le_bytes(bytes[8 * at..8 * at + 8].try_into().unwrap_or_default());
        Self(std::array::from_fn(number))
    }

    /// The key of a short word that has too many ids for the cache of its kind. Its last number has no length.
    #[inline(always)]
    pub fn of_short(key: Key) -> Self {
        let [low, high] = key.numbers();
        Self([low, high, 0, 0, 0, 0, 0, 0])
    }

    #[inline(always)]
    fn hash(self) -> u64 {
        const MULTIPLIERS: [u64; 4] = [
            0x9E37_79B9_7F4A_7C15,
            0xC2B2_AE3D_27D4_EB4F,
            0x1656_67B1_9E37_79F9,
            0x85EB_CA77_C2B2_AE63,
        ];
        // Pairs of numbers by the whole product of both, which folds high bits into low ones.
        let fold = |pair: usize| {
            let (left, right) = (
                self.0[2 * pair] ^ MULTIPLIERS[pair],
                self.0[2 * pair + 1] ^ MULTIPLIERS[3 - pair],
            );
            let product = u128::from(left) * u128::from(right);
            product as u64 ^ (product >> 64) as u64
        };
        let mixed = fold(0) ^ fold(1).rotate_left(17) ^ fold(2).rotate_left(31) ^ fold(3).rotate_left(47);
        mixed.wrapping_mul(MULTIPLIERS[0])
    }
}

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Entry<I: TokenId> {
    key: LongKey,
    /// The last is the count.
    ids: I::Block,
}

/// Sets of a new cache, at most: 64 KiB.
const SETS_FIRST: usize = 1 << 8;

/// The cache of one thread. It grows as its sister does.
pub struct LongCache<I: TokenId> {
    sets: Table<[Entry<I>; 2]>,
    mask: usize,
    sets_max: usize,
    /// Words that may still come before the cache is too crowded for its size.
    room: isize,
}

// SAFETY: numbers, and a block of ids, which says the same of itself.
unsafe impl<I: TokenId> Zeroed for [Entry<I>; 2] {}

impl<I: TokenId> LongCache<I> {
    /// `short_entries`: at most, of the cache for short words.
    pub fn new(short_entries: usize) -> Self {
        let sets_max = short_entries.div_ceil(2 * SHORT_PER_LONG);
        Self::with_sets(growth::first(sets_max, SETS_FIRST), sets_max)
    }

    fn with_sets(sets: usize, sets_max: usize) -> Self {
        Self {
            sets: Table::new(sets),
            mask: sets.max(1) - 1,
            sets_max,
            room: if sets < sets_max { sets as isize } else { isize::MAX },
        }
    }

    /// Bytes of memory that the cache holds at most, those included that are held only while it grows.
    pub fn bytes_max(&self) -> usize {
        size_of::<[Entry<I>; 2]>() * growth::most_at_once(self.sets_max, SETS_FIRST)
    }

    /// Whether it is time to grow.
    #[inline(always)]
    pub fn is_crowded(&self) -> bool {
        self.room < 0
    }

    /// Moves to a larger table, within the bound.
    #[cold]
    pub fn grow(&mut self) {
        let mut grown = Self::with_sets(growth::next(self.sets.len()), self.sets_max);
        for set in self.sets.iter() {
            for entry in set.iter().rev().filter(|entry| entry.key != LongKey([0; 8])) {
                grown.push(*entry);
            }
        }
        *self = grown;
    }

    /// The ids of a word, behind which the count stands.
    #[inline(always)]
    pub fn find(&mut self, key: LongKey) -> Option<&I::Block> {
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
    pub fn insert(&mut self, key: LongKey, ids: &[u32]) {
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

    fn push(&mut self, entry: Entry<I>) {
        if let Some(set) = self.set(entry.key) {
            set[1] = set[0];
            set[0] = entry;
            self.room -= 1;
        }
    }

    /// Fetches the first entry of a word's set ahead of its use.
    #[inline(always)]
    pub fn prefetch(&self, key: LongKey) {
        let set = self.sets.as_ptr().wrapping_add(self.place(key));
        prefetch(set);
        prefetch(set.cast::<u8>().wrapping_add(64));
    }

    #[inline(always)]
    fn place(&self, key: LongKey) -> usize {
        (key.hash() >> 32) as usize & self.mask
    }

    #[inline(always)]
    fn set(&mut self, key: LongKey) -> Option<&mut [Entry<I>; 2]> {
        let place = self.place(key);
        self.sets.get_mut(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_every_length_are_told_apart() {
        let text: Vec<u8> = (1..=64).collect();
        let mut cache = LongCache::<u16>::new(1 << 14);
        for length in 16..=LONG_WORD_BYTES {
            assert!(cache.find(LongKey::of(&text[..length])).is_none());
            cache.insert(LongKey::of(&text[..length]), &[length as u32, 7]);
        }
        for length in 16..=LONG_WORD_BYTES {
            let ids = cache.find(LongKey::of(&text[..length])).unwrap();
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
        let mut cache = LongCache::<u16>::new(1 << 17);
        let word = |number: u32| format!("a word that is long enough {number:08}");
        let mut grown = 0;
        for number in 0..2_000 {
            cache.insert(LongKey::of(word(number).as_bytes()), &[number % 60_000]);
            if cache.is_crowded() {
                cache.grow();
                grown += 1;
                let found = cache.find(LongKey::of(word(number).as_bytes())).map(|ids| ids[0]);
                assert_eq!(found, Some((number % 60_000) as u16));
            }
        }
        assert_eq!((grown, cache.sets.len()), (2, 1 << 11));
        assert_eq!(cache.bytes_max(), size_of_val(&*cache.sets) * 5 / 4);
    }
}
