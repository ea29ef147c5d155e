// SPDX-License-Identifier: Apache-2.0
//! Merging one word of up to 128 bytes: the products of all neighbours lie in a row of memory, whose minimum is searched
//! a register at a time.

#![allow(
    unused_unsafe,
    reason = "newer compilers call some of these intrinsics safe, the oldest supported does not"
)]

use super::instructions::instructions;
use super::lanes::{equal_lanes, lowest_everywhere, lowest_of};
use crate::merge_table::{EDGE, MergeTable, NO_ID};
use std::arch::x86_64::*;

/// The longest word, in bytes.
pub const ROW_BYTES: usize = 128;

/// Symbols, the edge before and the one behind, filled up to whole registers.
const PLACES: usize = 144;

/// A product as the row holds it.
pub trait Product: Copy + PartialEq {
    /// No product.
    const NONE: Self;

    /// `product` fits, or is `NO_ID`.
    fn of(product: u32) -> Self;

    /// The lowest of the first `count` products, at most `PLACES`, and the first place that has it.
    ///
    /// # Safety
    /// The machine has the instructions of [`super::avx2::is_available`]; the row has `count` places.
    unsafe fn lowest(row: &[Self; PLACES], count: usize) -> (u32, usize);
}

impl Product for u16 {
    const NONE: Self = Self::MAX;

    #[inline(always)]
    fn of(product: u32) -> Self {
        product as Self
    }

    #[inline(always)]
    unsafe fn lowest(row: &[Self; PLACES], count: usize) -> (u32, usize) {
        let mut lowest = u32::MAX;
        for place in (0..count).step_by(8) {
            // SAFETY: `place` is a multiple of 8 below `count`, and `PLACES` one that is no less, so that eight lie there. The
            // pointer is the row's: that of a part that ends at `count` may not read what lies behind it.
            let found = unsafe { lowest_of(_mm_loadu_si128(row.as_ptr().add(place).cast())) };
            lowest = lowest.min(found + place as u32);
        }
        let product = lowest >> 16;
        (
            if product == 0xffff { NO_ID } else { product },
            (lowest & 0xffff) as usize,
        )
    }
}

impl Product for u32 {
    const NONE: Self = NO_ID;

    #[inline(always)]
    fn of(product: u32) -> Self {
        product
    }

    #[inline(always)]
    unsafe fn lowest(row: &[Self; PLACES], count: usize) -> (u32, usize) {
        // SAFETY: as above.
        unsafe {
            let load = |place: usize| _mm256_loadu_si256(row.as_ptr().add(place).cast());
            let mut lowest = _mm256_set1_epi32(-1);
            for place in (0..count).step_by(8) {
                lowest = _mm256_min_epu32(lowest, load(place));
            }
            let lowest = lowest_everywhere(lowest);
            for place in (0..count).step_by(8) {
                let equal = equal_lanes(load(place), lowest);
                if equal != 0 {
                    return (
                        _mm256_extract_epi32::<0>(lowest) as u32,
                        place + equal.trailing_zeros() as usize,
                    );
                }
            }
        }
        (NO_ID, 0)
    }
}

instructions! {
    avx2 compiled

    /// Merges the ids of a word of 1 to `ROW_BYTES` bytes in place; returns how many are left.
    ///
    /// # Safety
    /// The machine has the instructions of [`super::avx2::is_available`]; for 16 bits, the table has byte pairs.
    pub unsafe fn merge_row<P: Product>(table: &MergeTable, ids: &mut [u32]) -> usize {
        // SAFETY: by the contract of this function.
        unsafe { merge_in_row::<P>(table, ids) }
    }
}

/// # Safety
/// As for [`merge_row`].
#[inline(always)]
unsafe fn merge_in_row<P: Product>(table: &MergeTable, ids: &mut [u32]) -> usize {
    let count = ids.len();
    let mut symbols = [EDGE; PLACES];
    symbols[1..=count].copy_from_slice(ids);
    let mut row = [P::NONE; PLACES];
    let (mut previous, mut next) = ([0_u8; PLACES], [0_u8; PLACES]);
    for place in 0..=count {
        row[place] = P::of(table.product(symbols[place], symbols[place + 1]));
        next[place] = place as u8 + 1;
        previous[place + 1] = place as u8;
    }
    loop {
        // SAFETY: by the contract of this function; `symbols[1..=count]` was there, so the row has `count + 1` places.
        let (product, place) = unsafe { P::lowest(&row, count + 1) };
        if product == NO_ID {
            break;
        }
        let right = usize::from(next[place]);
        let (before, behind) = (usize::from(previous[place]), usize::from(next[right]));
        symbols[place] = product;
        next[place] = behind as u8;
        previous[behind] = place as u8;
        row[right] = P::NONE;
        row[place] = P::of(table.product(product, symbols[behind]));
        row[before] = P::of(table.product(symbols[before], product));
    }
    let (mut left, mut place) = (0, usize::from(next[0]));
    while place <= count {
        ids[left] = symbols[place];
        left += 1;
        place = usize::from(next[place]);
    }
    left
}
