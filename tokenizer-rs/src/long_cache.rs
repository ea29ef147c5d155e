// SPDX-License-Identifier: Apache-2.0
//! The cache's sister for words of 16 to 31 bytes, and for shorter ones of many ids: rare in English, every third word
//! where letters take two bytes.

use crate::cache::Key;
use crate::token_id::TokenId;

/// The longest word that an entry takes.
pub const LONG_WORD_BYTES: usize = 31;

/// Entries of the cache for short words on one of these; each is twice as large.
pub const SHORT_PER_LONG: usize = 16;

/// A word of up to 31 bytes: its bytes, zeros, its length.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct LongKey([u64; 4]);

impl LongKey {
    /// The key of a word of 16 to 31 bytes.
    #[inline(always)]
    pub fn of(word: &[u8]) -> Self {
        let number = |at: usize| u64::from_le_bytes(word[at..at + 8].try_into().unwrap_or_default());
        // The last 16 bytes, of which those that the first two numbers hold are shifted out.
        let tail = u128::from(number(word.len() - 8)) << 64 | u128::from(number(word.len() - 16));
        let tail = if word.len() == 16 {
            0
        } else {
            tail >> (8 * (32 - word.len()))
        };
        let length = (word.len() as u64) << 56;
        Self([number(0), number(8), tail as u64, (tail >> 64) as u64 | length])
    }

    /// The key of a short word that has too many ids for the cache of its kind. Its last number has no length.
    #[inline(always)]
    pub fn of_short(key: Key) -> Self {
        let [low, high] = key.numbers();
        Self([low, high, 0, 0])
    }

    #[inline(always)]
    fn hash(self) -> u64 {
        const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
        let mix = |hash: u64, part: u64| (hash ^ part).wrapping_mul(MULTIPLIER).rotate_left(29);
        self.0.into_iter().fold(0, mix).wrapping_mul(MULTIPLIER)
    }
}

#[derive(Clone, Copy)]
struct Entry<I: TokenId> {
    key: LongKey,
    /// The last is the count.
    ids: I::Block,
}

/// The cache of one thread.
pub struct LongCache<I: TokenId> {
    sets: Box<[[Entry<I>; 2]]>,
    shift: u32,
}

impl<I: TokenId> LongCache<I> {
    /// `short_entries`: of the cache for short words.
    pub fn new(short_entries: usize) -> Self {
        let sets = short_entries.div_ceil(2 * SHORT_PER_LONG);
        let empty = Entry {
            key: LongKey([0; 4]),
            ids: I::Block::default(),
        };
        Self {
            sets: vec![[empty; 2]; sets].into_boxed_slice(),
            shift: 64 - sets.max(1).trailing_zeros(),
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

    #[inline(always)]
    fn set(&mut self, key: LongKey) -> Option<&mut [Entry<I>; 2]> {
        let place = key.hash().checked_shr(self.shift).unwrap_or(0);
        self.sets.get_mut(place as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_every_length_are_told_apart() {
        let text: Vec<u8> = (1..=64).collect();
        let mut cache = LongCache::<u16>::new(1 << 12);
        for length in 16..=LONG_WORD_BYTES {
            assert!(cache.find(LongKey::of(&text[..length])).is_none());
            cache.insert(LongKey::of(&text[..length]), &[length as u32, 7]);
        }
        for length in 16..=LONG_WORD_BYTES {
            let ids = cache.find(LongKey::of(&text[..length])).unwrap();
            assert_eq!((ids[0], ids[1], ids[15]), (length as u16, 7, 2));
            let mut changed = text[..length].to_vec();
            for at in 0..length {
                changed[at] ^= 0x80;
                assert!(cache.find(LongKey::of(&changed)).is_none(), "{length} {at}");
                changed[at] ^= 0x80;
            }
        }
    }
}
