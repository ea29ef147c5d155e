// SPDX-License-Identifier: Apache-2.0
//! NEON, which every 64-bit ARM has.

#![allow(
    unused_unsafe,
    reason = "newer compilers call some of these intrinsics safe, the oldest supported does not"
)]

use super::Simd;
use crate::blocks::{BLOCK_BYTES, Masks};
use std::arch::aarch64::*;

/// NEON.
pub struct Neon;

impl Simd for Neon {
    const HAS_BLOCKS: bool = true;

    #[inline(always)]
    unsafe fn masks(block: &[u8; BLOCK_BYTES]) -> Masks {
        // SAFETY: the four loads lie inside the block; the caller vouches for the instructions.
        unsafe {
            let parts = [0, 16, 32, 48].map(|at| vld1q_u8(block.as_ptr().add(at)));
            let is = |byte: u8| bits(parts.map(|part| vceqq_u8(part, vdupq_n_u8(byte))));
            let between = |first: u8, last: u8| {
                let distance = |part| vsubq_u8(part, vdupq_n_u8(first));
                bits(parts.map(|part| vcleq_u8(distance(part), vdupq_n_u8(last - first))))
            };
            let from = |first: u8| bits(parts.map(|part| vcgeq_u8(part, vdupq_n_u8(first))));
            let spaces = is(b' ');
            Masks {
                lower: between(b'a', b'z'),
                upper: between(b'A', b'Z'),
                digits: between(b'0', b'9'),
                white: between(b'\t', b'\r') | spaces,
                spaces,
                line_ends: is(b'\n') | is(b'\r'),
                apostrophes: is(b'\''),
                slashes: is(b'/'),
                wide: from(0x80),
                leads: from(0xc0),
            }
        }
    }

    #[inline(always)]
    unsafe fn write_places(mut bits: u64, base: u32, places: *mut u32) {
        let count = bits.count_ones() as usize;
        let mut written = 0;
        while written < count {
            for place in written..written + 4 {
                // SAFETY: `written` is a multiple of 4 below `count`, at most 60, so `place` is below `PLACES_WRITTEN`.
                unsafe { places.add(place).write(base + bits.trailing_zeros()) };
                bits &= bits.wrapping_sub(1);
            }
            written += 4;
        }
    }
}

/// One bit a byte: each lane keeps the bit of its place, then neighbours are added up three times.
///
/// # Safety
/// The machine has NEON.
#[inline(always)]
unsafe fn bits(lanes: [uint8x16_t; 4]) -> u64 {
    const PLACES: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];
    // SAFETY: the load is the whole array; the caller vouches for the instructions.
    unsafe {
        let places = vld1q_u8(PLACES.as_ptr());
        let [a, b, c, d] = lanes.map(|lane| vandq_u8(lane, places));
        let sums = vpaddq_u8(vpaddq_u8(a, b), vpaddq_u8(c, d));
        vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(sums, sums)))
    }
}
