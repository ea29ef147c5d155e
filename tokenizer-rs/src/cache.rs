// SPDX-License-Identifier: Apache-2.0
//! A cache of fixed size from short words to their ids.
//!
//! Two entries of 32 bytes share a cache line of 64, so a probe costs one memory access. The whole word is compared: a
//! hash collision costs time, never an id. A new word takes the first place of its line and pushes the old one to the
//! second; a hit in the second place swaps the two, which keeps frequent words from being pushed out by rare ones.
//! Nothing grows: a table that grows with the text is fast on text it has seen and slow on all other (gigatoken, from
//! which the layout of one line a probe is taken, MIT licence, shows both).

use crate::encode::TokenId;

/// The longest word that the cache takes, in bytes: a key is 16 bytes, of which the last is the length.
pub const WORD_BYTES: usize = 15;

/// The largest number of entries that a cache may have.
pub const ENTRIES_MAX: usize = 1 << 24;

/// A word of 1 to 15 bytes in one number: its bytes, zeros, its length. No word has the key 0.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Key(u128);

impl Key {
    /// The key of `text[start..end]`, or `None` when it is longer than `WORD_BYTES`. The range must not be empty.
    #[inline(always)]
    pub fn of(text: &[u8], start: usize, end: usize) -> Option<Self> {
        let length = end - start;
        if length > WORD_BYTES {
            return None;
        }
        let window: [u8; 16] = match text.get(start..start + 16).and_then(|bytes| bytes.try_into().ok()) {
            Some(window) => window,
            None => {
                let mut window = [0; 16];
                window[..length].copy_from_slice(&text[start..end]);
                window
            }
        };
        let bytes = u128::from_le_bytes(window) & ((1 << (8 * length)) - 1);
        Some(Self(bytes | (length as u128) << 120))
    }

    #[inline(always)]
    fn hash(self) -> u64 {
        // Odd constants from the golden ratio and from pi; only the high bits of the product are used.
        let low = (self.0 as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mixed = (low ^ (low >> 32) ^ (self.0 >> 64) as u64).wrapping_mul(0xC2B2_AE3D_27D4_EB4F);
        mixed ^ (mixed >> 29)
    }
}

/// The ids of one word: `ids[..count]`.
#[derive(Clone, Copy, Default)]
#[repr(C, align(32))]
struct Entry<I: TokenId> {
    key: Key,
    ids: I::Inline,
    count: I,
}

#[derive(Clone, Copy, Default)]
#[repr(C, align(64))]
struct Line<I: TokenId> {
    entries: [Entry<I>; 2],
}

const _: () = assert!(size_of::<Line<u16>>() == 64 && size_of::<Line<u32>>() == 64);

/// The cache of one thread.
pub struct Cache<I: TokenId> {
    lines: Box<[Line<I>]>,
}

impl<I: TokenId> Cache<I> {
    /// `entries`: 0 for none, else a power of two from 2 to `ENTRIES_MAX` (1 counts as 2: a line has two).
    pub fn new(entries: usize) -> Self {
        assert!(entries == 0 || entries.is_power_of_two() && entries <= ENTRIES_MAX);
        Self {
            lines: vec![Line::default(); entries.div_ceil(2)].into_boxed_slice(),
        }
    }

    /// Bytes of memory that the cache holds.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.lines)
    }

    /// Whether nothing can ever be found.
    pub fn is_off(&self) -> bool {
        self.lines.is_empty()
    }

    /// The ids of a word and how many of them count.
    #[inline(always)]
    pub fn find(&mut self, key: Key) -> Option<(I::Inline, usize)> {
        let line = self.line(key)?;
        if line.entries[0].key != key {
            if line.entries[1].key != key {
                return None;
            }
            line.entries.swap(0, 1);
        }
        let entry = &line.entries[0];
        Some((entry.ids, entry.count.index()))
    }

    /// Remembers a word, when its ids fit an entry.
    pub fn insert(&mut self, key: Key, ids: &[u32]) {
        let mut inline = I::Inline::default();
        let Some(places) = inline.as_mut().get_mut(..ids.len()) else {
            return;
        };
        for (place, &id) in places.iter_mut().zip(ids) {
            *place = I::narrow(id);
        }
        let Some(line) = self.line(key) else { return };
        line.entries[1] = line.entries[0];
        line.entries[0] = Entry {
            key,
            ids: inline,
            count: I::narrow(ids.len() as u32),
        };
    }

    #[inline(always)]
    fn line(&mut self, key: Key) -> Option<&mut Line<I>> {
        let mask = self.lines.len().wrapping_sub(1);
        self.lines.get_mut(key.hash() as usize & mask)
    }
}
