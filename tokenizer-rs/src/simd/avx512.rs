// SPDX-License-Identifier: Apache-2.0
//! AVX-512 with byte instructions (BW) and byte permutations (VBMI2), beside AVX2.

#![allow(
    clippy::incompatible_msrv,
    reason = "build.rs leaves this file out where the compiler is older"
)]
#![allow(
    unused_unsafe,
    reason = "newer compilers call some of these intrinsics safe, the oldest supported does not"
)]

use super::Simd;
use super::instructions::instructions;
use crate::blocks::{BLOCK_BYTES, Masks};
use std::arch::x86_64::*;

/// Whether this machine has all that functions for `Avx512` are compiled for.
pub fn is_available() -> bool {
    instructions!(avx512 detected)
}

/// The instructions of [`is_available`].
pub struct Avx512;

impl Simd for Avx512 {
    const HAS_BLOCKS: bool = true;

    #[inline(always)]
    unsafe fn masks(block: &[u8; BLOCK_BYTES]) -> Masks {
        // SAFETY: the load is the whole block; the caller vouches for the instructions.
        unsafe {
            let bytes = _mm512_loadu_si512(block.as_ptr().cast());
            let is = |byte: u8| _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(byte as i8));
            let between = |first: u8, last: u8| {
                let distance = _mm512_sub_epi8(bytes, _mm512_set1_epi8(first as i8));
                _mm512_cmple_epu8_mask(distance, _mm512_set1_epi8((last - first) as i8))
            };
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
                wide: _mm512_movepi8_mask(bytes),
                leads: _mm512_cmpge_epu8_mask(bytes, _mm512_set1_epi8(0xc0_u8 as i8)),
            }
        }
    }

    #[inline(always)]
    unsafe fn write_places(bits: u64, base: u32, places: *mut u32) {
        const PLACES: [u8; 64] = {
            let mut places = [0; 64];
            let mut place = 0;
            while place < 64 {
                places[place] = place as u8;
                place += 1;
            }
            places
        };
        // SAFETY: the caller has room for 64 numbers, of which this writes a multiple of 16; and it vouches for the
        // instructions. The result of the compression stays in a register: to memory it is slow on Zen 4.
        unsafe {
            let packed = _mm512_maskz_compress_epi8(bits, _mm512_loadu_si512(PLACES.as_ptr().cast()));
            let base = _mm512_set1_epi32(base as i32);
            let write = |quarter: __m128i, at: usize| {
                let places_there = _mm512_add_epi32(_mm512_cvtepu8_epi32(quarter), base);
                _mm512_storeu_si512(places.add(at).cast(), places_there);
            };
            let count = bits.count_ones();
            write(_mm512_extracti32x4_epi32::<0>(packed), 0);
            write(_mm512_extracti32x4_epi32::<1>(packed), 16);
            if count > 32 {
                write(_mm512_extracti32x4_epi32::<2>(packed), 32);
                write(_mm512_extracti32x4_epi32::<3>(packed), 48);
            }
        }
    }
}
