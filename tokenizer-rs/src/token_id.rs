// SPDX-License-Identifier: Apache-2.0
//! The two widths of ids, and how a cache entry of 16 bytes holds the ids of a word.

use crate::cache::Value;
use crate::memory::Zeroed;
use std::mem::MaybeUninit;

/// 24 bits.
const ID: u64 = (1 << 24) - 1;

/// The width in which ids are written.
pub trait TokenId: Copy + Default {
    /// How many ids an entry holds at most.
    const PACKED_MAX: usize;

    /// 64 bytes of ids.
    type Block: Zeroed + Default + AsRef<[Self]> + AsMut<[Self]>;

    /// `id` is known to fit.
    fn narrow(id: u32) -> Self;

    /// The same number as an index.
    fn index(self) -> usize;

    /// Packs the first `count` ids; the others may be anything. More than `PACKED_MAX` are packed as none, which no
    /// word has: they have to be kept elsewhere.
    fn pack(ids: &[u32; 8], count: usize) -> Value;

    /// How many ids a value holds.
    fn count(value: Value) -> usize;

    /// Writes the ids of a value; what is behind the count is filled with anything.
    fn unpack(value: Value, places: &mut [MaybeUninit<Self>; 8]);
}

// SAFETY: numbers.
unsafe impl Zeroed for [u16; 32] {}
// SAFETY: numbers.
unsafe impl Zeroed for [u32; 16] {}

/// Seven ids and their count, 16 bits each.
impl TokenId for u16 {
    const PACKED_MAX: usize = 7;
    type Block = [u16; 32];

    #[inline(always)]
    fn narrow(id: u32) -> Self {
        id as u16
    }

    #[inline(always)]
    fn index(self) -> usize {
        usize::from(self)
    }

    #[inline(always)]
    fn pack(ids: &[u32; 8], count: usize) -> Value {
        let count = if count > Self::PACKED_MAX { 0 } else { count };
        let id = |at: usize| u64::from(ids[at] as u16);
        [
            id(0) | id(1) << 16 | id(2) << 32 | id(3) << 48,
            id(4) | id(5) << 16 | id(6) << 32 | (count as u64) << 48,
        ]
    }

    #[inline(always)]
    fn count(value: Value) -> usize {
        (value[1] >> 48) as usize
    }

    #[inline(always)]
    fn unpack(value: Value, places: &mut [MaybeUninit<Self>; 8]) {
        if cfg!(target_endian = "little") {
            // SAFETY: eight places of two bytes are as large as a value, whose lowest 16 bits come first.
            unsafe { places.as_mut_ptr().cast::<Value>().write_unaligned(value) };
            return;
        }
        for (lane, place) in places.iter_mut().enumerate() {
            place.write((value[lane / 4] >> (16 * (lane % 4))) as u16);
        }
    }
}

/// Five ids of 24 bits each, and their count in the last byte.
impl TokenId for u32 {
    const PACKED_MAX: usize = 5;
    type Block = [u32; 16];

    #[inline(always)]
    fn narrow(id: u32) -> Self {
        id
    }

    #[inline(always)]
    fn index(self) -> usize {
        self as usize
    }

    #[inline(always)]
    fn pack(ids: &[u32; 8], count: usize) -> Value {
        let count = if count > Self::PACKED_MAX { 0 } else { count };
        let id = |at: usize| u64::from(ids[at]) & ID;
        [
            id(0) | id(1) << 24 | id(2) << 48,
            id(2) >> 16 | id(3) << 8 | id(4) << 32 | (count as u64) << 56,
        ]
    }

    #[inline(always)]
    fn count(value: Value) -> usize {
        (value[1] >> 56) as usize
    }

    #[inline(always)]
    fn unpack(value: Value, places: &mut [MaybeUninit<Self>; 8]) {
        let [low, high] = value;
        places[0].write((low & ID) as u32);
        places[1].write((low >> 24 & ID) as u32);
        places[2].write(((low >> 48 | high << 16) & ID) as u32);
        places[3].write((high >> 8 & ID) as u32);
        places[4].write((high >> 32 & ID) as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpacked<I: TokenId>(ids: &[u32]) -> Vec<u32> {
        let mut all = [u32::MAX; 8];
        all[..ids.len()].copy_from_slice(ids);
        let value = I::pack(&all, ids.len());
        let mut places = [MaybeUninit::new(I::default()); 8];
        I::unpack(value, &mut places);
        let written = &places[..I::count(value)];
        // SAFETY: every place was initialized above.
        written
            .iter()
            .map(|place| unsafe { place.assume_init() }.index() as u32)
            .collect()
    }

    #[test]
    fn what_is_packed_is_unpacked() {
        for count in 0..=7 {
            let ids: Vec<u32> = (0..count).map(|n| 65_535 - 9_000 * n).collect();
            assert_eq!(unpacked::<u16>(&ids), ids);
        }
        for count in 0..=5 {
            let ids: Vec<u32> = (0..count).map(|n| (1 << 21) - 2 - 300_000 * n).collect();
            assert_eq!(unpacked::<u32>(&ids), ids);
        }
    }
}
