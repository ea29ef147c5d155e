// SPDX-License-Identifier: Apache-2.0
//! The cache's sister for words of 16 to 63 bytes, and for shorter ones of many ids: rare in English, every third word
//! where letters take two bytes.

use crate::cache::Key;
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

/// The cache of one thread.
pub struct LongCache<I: TokenId> {
    sets: Table<[Entry<I>; 2]>,
    mask: usize,
}

// SAFETY: numbers, and a block of ids, which says the same of itself.
unsafe impl<I: TokenId> Zeroed for [Entry<I>; 2] {}

impl<I: TokenId> LongCache<I> {
    /// `short_entries`: of the cache for short words.
    pub fn new(short_entries: usize) -> Self {
        let sets = short_entries.div_ceil(2 * SHORT_PER_LONG);
        Self {
            sets: Table::new(sets),
            mask: sets.max(1) - 1,
        }
    }

    /// Bytes of memory that the cache holds.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.sets)
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
        if let Some(set) = self.set(key) {
            set[1] = set[0];
            set[0] = Entry { key, ids: block };
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
}
