// SPDX-License-Identifier: Apache-2.0
//! AVX2, with the bit instructions of the same processors.

#![allow(
    unused_unsafe,
    reason = "newer compilers call some of these intrinsics safe, the oldest supported does not"
)]

use super::Simd;
use super::instructions::instructions;
use crate::blocks::{BLOCK_BYTES, Masks};
use std::arch::x86_64::*;

/// Whether this machine has all that functions for `Avx2` are compiled for.
pub fn is_available() -> bool {
    instructions!(avx2 detected)
}

/// The instructions of [`is_available`].
pub struct Avx2;

impl Simd for Avx2 {
    const HAS_BLOCKS: bool = true;

    #[inline(always)]
    unsafe fn masks(block: &[u8; BLOCK_BYTES]) -> Masks {
        // SAFETY: the caller vouches for the instructions; both loads lie inside the block.
        let (low, high) = unsafe {
            (
                half(_mm256_loadu_si256(block.as_ptr().cast())),
                half(_mm256_loadu_si256(block.as_ptr().add(32).cast())),
            )
        };
        let join = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        Masks {
            lower: join(low.lower, high.lower),
            upper: join(low.upper, high.upper),
            digits: join(low.digits, high.digits),
            white: join(low.white, high.white),
            spaces: join(low.spaces, high.spaces),
            line_ends: join(low.line_ends, high.line_ends),
            apostrophes: join(low.apostrophes, high.apostrophes),
            slashes: join(low.slashes, high.slashes),
            wide: join(low.wide, high.wide),
            leads: join(low.leads, high.leads),
        }
    }

    #[inline(always)]
    unsafe fn write_places(mut bits: u64, base: u32, places: *mut u32) {
        let count = bits.count_ones() as usize;
        let mut written = 0;
        // Eight at a time whether there are as many or not: the end of a loop for each bit is hard to predict.
        while written < count {
            for place in written..written + 8 {
                // SAFETY: `written` is a multiple of 8 below `count`, at most 56, so `place` is below `PLACES_WRITTEN`.
                unsafe { places.add(place).write(base + bits.trailing_zeros()) };
                bits &= bits.wrapping_sub(1);
            }
            written += 8;
        }
    }
}

struct Half {
    lower: u32,
    upper: u32,
    digits: u32,
    white: u32,
    spaces: u32,
    line_ends: u32,
    apostrophes: u32,
    slashes: u32,
    wide: u32,
    leads: u32,
}

/// # Safety
/// The machine has AVX2.
#[inline(always)]
unsafe fn half(bytes: __m256i) -> Half {
    // SAFETY: none of these touches memory; the caller vouches for the instructions.
    unsafe {
        // Comparisons are signed: bytes outside ASCII are below all that is looked for.
        let bits = |mask: __m256i| _mm256_movemask_epi8(mask) as u32;
        let is = |byte: u8| bits(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(byte as i8)));
        let between = |first: u8, last: u8| {
            let above = _mm256_cmpgt_epi8(bytes, _mm256_set1_epi8(first as i8 - 1));
            bits(_mm256_and_si256(
                above,
                _mm256_cmpgt_epi8(_mm256_set1_epi8(last as i8 + 1), bytes),
            ))
        };
        let spaces = is(b' ');
        let wide = bits(bytes);
        let continues = bits(_mm256_cmpgt_epi8(_mm256_set1_epi8(0xc0_u8 as i8), bytes));
        Half {
            lower: between(b'a', b'z'),
            upper: between(b'A', b'Z'),
            digits: between(b'0', b'9'),
            white: between(b'\t', b'\r') | spaces,
            spaces,
            line_ends: is(b'\n') | is(b'\r'),
            apostrophes: is(b'\''),
            slashes: is(b'/'),
            wide,
            leads: wide & !continues,
        }
    }
}
