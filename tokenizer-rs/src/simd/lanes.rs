// SPDX-License-Identifier: Apache-2.0
//! Merging several short words at once: the products of all neighbours of a word lie in the lanes of a register.
//!
//! A merge is a chain of look-ups that depend on one another, some forty cycles, and where it ends is hard to predict.
//! Four words that advance in step fill each other's waiting time, and there is one end to predict, not four. A word
//! that is done goes on without effect: its merges happen at a place outside of it. For ids of 16 bits PHMINPOSUW finds
//! the lowest product and its leftmost place in one instruction.

#![allow(
    unused_unsafe,
    reason = "newer compilers call some of these intrinsics safe, the oldest supported does not"
)]

use crate::cache::{Key, WORD_BYTES};
use crate::merge_table::{EDGE, MergeTable, NO_ID};
use std::arch::x86_64::*;

/// Words that are merged in step, where there are as many.
pub const GROUP: usize = 4;

/// Places of a word: 0 and the one behind its last symbol stand for its edges, which merge with nothing.
const PLACES: usize = 32;
/// Where a word that is done goes on merging, and two symbols behind that, which are always there.
const ASIDE: u32 = 19;
const ALWAYS: u32 = 0b11 << (ASIDE + 1);
const _: () = assert!(WORD_BYTES + 1 < ASIDE as usize && ASIDE + 2 < PLACES as u32);

/// The symbols that are left of a word.
#[derive(Clone, Copy)]
pub struct Symbols {
    ids: [u32; PLACES],
    /// Bit i: there is a symbol at place i.
    alive: u32,
    length: u32,
}

impl Symbols {
    #[inline(always)]
    fn new(table: &MergeTable, word: &[u8; 16], length: usize) -> Self {
        let mut ids = [EDGE; PLACES];
        for (id, &byte) in ids[1..].iter_mut().zip(word) {
            *id = table.byte_id(byte);
        }
        ids[length + 1] = EDGE;
        Self {
            ids,
            alive: ((1 << (length + 2)) - 1) | ALWAYS,
            length: length as u32,
        }
    }

    /// The first eight ids and how many there are, which may be more; fewer leave places that mean nothing.
    #[inline(always)]
    pub fn first_ids(&self) -> ([u32; 8], usize) {
        let mut places = self.alive & ((1 << (self.length + 1)) - 2);
        let count = places.count_ones() as usize;
        let mut ids = [0; 8];
        for id in &mut ids {
            *id = self.ids[(places | 1 << (ASIDE + 1)).trailing_zeros() as usize % PLACES];
            places &= places.wrapping_sub(1);
        }
        (ids, count)
    }
}

/// The products of the neighbours of one word: lane i of symbols i and i + 1.
pub trait Lanes: Copy {
    /// Lanes there are; a word has at most as many bytes.
    const LANES: usize;

    /// No product.
    const NONE: u32;

    /// # Safety
    /// The machine has the instructions of [`super::avx2::is_available`]; for 16 bits, the table has byte pairs.
    unsafe fn load(table: &MergeTable, word: &[u8; 16], length: usize) -> Self;

    /// The lowest product and its leftmost lane; the lane means nothing when there is none.
    ///
    /// # Safety
    /// The machine has the instructions.
    unsafe fn lowest(self) -> (u32, u32);

    /// Replaces the product of the symbol at `place`, if that is in the word.
    ///
    /// # Safety
    /// The machine has the instructions; `place` is below `PLACES`.
    unsafe fn set(&mut self, place: u32, product: u32);
}

/// Merges words in step, each of at most `L::LANES` bytes.
///
/// # Safety
/// As for [`Lanes::load`].
#[inline(always)]
pub unsafe fn merge_group<L: Lanes, const COUNT: usize>(table: &MergeTable, words: &[Key; COUNT]) -> [Symbols; COUNT] {
    // Written out: `map` over an array may stay a call of its own, without these instructions.
    let (word, length) = words[0].word();
    let mut symbols = [Symbols::new(table, &word, length); COUNT];
    // SAFETY: the caller vouches for the instructions and the table.
    let mut lanes = [unsafe { L::load(table, &word, length) }; COUNT];
    for index in 1..COUNT {
        let (word, length) = words[index].word();
        symbols[index] = Symbols::new(table, &word, length);
        // SAFETY: as above.
        lanes[index] = unsafe { L::load(table, &word, length) };
    }
    loop {
        let mut every = u32::MAX;
        for (symbols, lanes) in symbols.iter_mut().zip(&mut lanes) {
            // SAFETY: as above; all places are below `PLACES`.
            unsafe {
                let (lowest, lane) = lanes.lowest();
                every &= lowest;
                let is_done = lowest == L::NONE;
                let place = if is_done { ASIDE } else { lane + 1 };
                let product = if is_done { EDGE } else { lowest };
                step(table, symbols, lanes, place, product);
            }
        }
        if every == L::NONE {
            return symbols;
        }
    }
}

/// Replaces the symbol at `place` and the next one by their product.
///
/// # Safety
/// As for [`Lanes::set`].
#[inline(always)]
unsafe fn step<L: Lanes>(table: &MergeTable, symbols: &mut Symbols, lanes: &mut L, place: u32, product: u32) {
    let behind = symbols.alive & u32::MAX << (place + 1);
    let right = behind.trailing_zeros();
    let next = (behind & behind.wrapping_sub(1)).trailing_zeros();
    let previous = 31 - (symbols.alive & ((1 << place) - 1) | 1).leading_zeros();
    debug_assert!(next < PLACES as u32);
    symbols.alive = symbols.alive & !(1 << right) | ALWAYS;
    symbols.ids[place as usize % PLACES] = product;
    // SAFETY: places are those of set bits of `alive`, whose highest is below `PLACES`; the caller vouches for the rest.
    unsafe {
        let left_id = *symbols.ids.get_unchecked(previous as usize);
        let right_id = *symbols.ids.get_unchecked(next as usize);
        lanes.set(previous, table.product(left_id, product));
        lanes.set(place, table.product(product, right_id));
        lanes.set(right, NO_ID);
    }
}

const ROWS: [[u16; 16]; PLACES] = rows(0, u16::MAX);
const WIDE_ROWS: [[u32; 16]; PLACES] = rows(0, u32::MAX);

/// Row i: all ones in the lane of place i, if that has one.
const fn rows<T: Copy>(zeros: T, ones: T) -> [[T; 16]; PLACES] {
    let mut rows = [[zeros; 16]; PLACES];
    let mut place = 1;
    while place <= 16 {
        rows[place][place - 1] = ones;
        place += 1;
    }
    rows
}

/// Up to 8 bytes, products of 16 bits.
#[derive(Clone, Copy)]
pub struct Narrow8(__m128i);

/// Up to 15 bytes, products of 16 bits.
#[derive(Clone, Copy)]
pub struct Narrow16(__m128i, __m128i);

/// Up to 8 bytes, products of 32 bits.
#[derive(Clone, Copy)]
pub struct Wide8(__m256i);

/// Up to 15 bytes, products of 32 bits.
#[derive(Clone, Copy)]
pub struct Wide16(__m256i, __m256i);

#[inline(always)]
fn pair_at(word: &[u8; 16], at: usize) -> usize {
    usize::from(word[at]) << 8 | usize::from(word[(at + 1) % 16])
}

/// Products of the first bytes of a word; those that reach over its end are none.
#[inline(always)]
fn narrow_products<const N: usize>(table: &MergeTable, word: &[u8; 16], length: usize) -> [u16; N] {
    let mut products = [u16::MAX; N];
    if let Some(pairs) = table.byte_pairs() {
        for (at, product) in products.iter_mut().enumerate() {
            let found = pairs[pair_at(word, at)];
            *product = if at + 1 < length { found } else { u16::MAX };
        }
    }
    products
}

#[inline(always)]
fn wide_products<const N: usize>(table: &MergeTable, word: &[u8; 16], length: usize) -> [u32; N] {
    let mut products = [NO_ID; N];
    for (at, product) in products.iter_mut().enumerate() {
        let found = table.product(table.byte_id(word[at]), table.byte_id(word[(at + 1) % 16]));
        *product = if at + 1 < length { found } else { NO_ID };
    }
    products
}

/// `PHMINPOSUW`: the product in the high half, the lane in the low one.
///
/// # Safety
/// The machine has SSE4.1.
#[inline(always)]
pub(super) unsafe fn lowest_of(lanes: __m128i) -> u32 {
    // SAFETY: the caller vouches for SSE4.1.
    unsafe { (_mm_cvtsi128_si32(_mm_minpos_epu16(lanes)) as u32).rotate_left(16) }
}

impl Lanes for Narrow8 {
    const LANES: usize = 8;
    const NONE: u32 = 0xffff;

    #[inline(always)]
    unsafe fn load(table: &MergeTable, word: &[u8; 16], length: usize) -> Self {
        let products = narrow_products::<8>(table, word, length);
        // SAFETY: the load is the whole array.
        Self(unsafe { _mm_loadu_si128(products.as_ptr().cast()) })
    }

    #[inline(always)]
    unsafe fn lowest(self) -> (u32, u32) {
        // SAFETY: by the contract of this function.
        let found = unsafe { lowest_of(self.0) };
        (found >> 16, found & 0xffff)
    }

    #[inline(always)]
    unsafe fn set(&mut self, place: u32, product: u32) {
        // SAFETY: a row has 16 lanes, `place` is a row.
        unsafe {
            let row = _mm_loadu_si128(ROWS.get_unchecked(place as usize).as_ptr().cast());
            self.0 = _mm_blendv_epi8(self.0, _mm_set1_epi16(product as i16), row);
        }
    }
}

impl Lanes for Narrow16 {
    const LANES: usize = WORD_BYTES;
    const NONE: u32 = 0xffff;

    #[inline(always)]
    unsafe fn load(table: &MergeTable, word: &[u8; 16], length: usize) -> Self {
        let products = narrow_products::<16>(table, word, length);
        // SAFETY: the loads are the two halves of the array.
        unsafe {
            Self(
                _mm_loadu_si128(products.as_ptr().cast()),
                _mm_loadu_si128(products.as_ptr().add(8).cast()),
            )
        }
    }

    #[inline(always)]
    unsafe fn lowest(self) -> (u32, u32) {
        // SAFETY: by the contract of this function.
        let found = unsafe { lowest_of(self.0).min(lowest_of(self.1) + 8) };
        (found >> 16, found & 0xffff)
    }

    #[inline(always)]
    unsafe fn set(&mut self, place: u32, product: u32) {
        // SAFETY: a row has 16 lanes, `place` is a row.
        unsafe {
            let row = ROWS.get_unchecked(place as usize).as_ptr();
            let product = _mm_set1_epi16(product as i16);
            self.0 = _mm_blendv_epi8(self.0, product, _mm_loadu_si128(row.cast()));
            self.1 = _mm_blendv_epi8(self.1, product, _mm_loadu_si128(row.add(8).cast()));
        }
    }
}

/// The lowest of eight products in every lane.
///
/// # Safety
/// The machine has AVX2.
#[inline(always)]
pub(super) unsafe fn lowest_everywhere(lanes: __m256i) -> __m256i {
    // SAFETY: the caller vouches for AVX2.
    unsafe {
        let lanes = _mm256_min_epu32(lanes, _mm256_permute2x128_si256::<1>(lanes, lanes));
        let lanes = _mm256_min_epu32(lanes, _mm256_shuffle_epi32::<0b01_00_11_10>(lanes));
        _mm256_min_epu32(lanes, _mm256_shuffle_epi32::<0b10_11_00_01>(lanes))
    }
}

/// One bit for each lane that is equal.
///
/// # Safety
/// The machine has AVX2.
#[inline(always)]
pub(super) unsafe fn equal_lanes(a: __m256i, b: __m256i) -> u32 {
    // SAFETY: the caller vouches for AVX2.
    unsafe { _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b))) as u32 }
}

impl Lanes for Wide8 {
    const LANES: usize = 8;
    const NONE: u32 = NO_ID;

    #[inline(always)]
    unsafe fn load(table: &MergeTable, word: &[u8; 16], length: usize) -> Self {
        let products = wide_products::<8>(table, word, length);
        // SAFETY: the load is the whole array.
        Self(unsafe { _mm256_loadu_si256(products.as_ptr().cast()) })
    }

    #[inline(always)]
    unsafe fn lowest(self) -> (u32, u32) {
        // SAFETY: by the contract of this function.
        unsafe {
            let lowest = lowest_everywhere(self.0);
            let product = _mm256_extract_epi32::<0>(lowest) as u32;
            (product, equal_lanes(self.0, lowest).trailing_zeros())
        }
    }

    #[inline(always)]
    unsafe fn set(&mut self, place: u32, product: u32) {
        // SAFETY: a row has 16 lanes, `place` is a row.
        unsafe {
            let row = _mm256_loadu_si256(WIDE_ROWS.get_unchecked(place as usize).as_ptr().cast());
            self.0 = _mm256_blendv_epi8(self.0, _mm256_set1_epi32(product as i32), row);
        }
    }
}

impl Lanes for Wide16 {
    const LANES: usize = WORD_BYTES;
    const NONE: u32 = NO_ID;

    #[inline(always)]
    unsafe fn load(table: &MergeTable, word: &[u8; 16], length: usize) -> Self {
        let products = wide_products::<16>(table, word, length);
        // SAFETY: the loads are the two halves of the array.
        unsafe {
            Self(
                _mm256_loadu_si256(products.as_ptr().cast()),
                _mm256_loadu_si256(products.as_ptr().add(8).cast()),
            )
        }
    }

    #[inline(always)]
    unsafe fn lowest(self) -> (u32, u32) {
        // SAFETY: by the contract of this function.
        unsafe {
            let lowest = lowest_everywhere(_mm256_min_epu32(self.0, self.1));
            let equal = equal_lanes(self.0, lowest) | equal_lanes(self.1, lowest) << 8;
            (_mm256_extract_epi32::<0>(lowest) as u32, equal.trailing_zeros())
        }
    }

    #[inline(always)]
    unsafe fn set(&mut self, place: u32, product: u32) {
        // SAFETY: a row has 16 lanes, `place` is a row.
        unsafe {
            let row = WIDE_ROWS.get_unchecked(place as usize).as_ptr();
            let product = _mm256_set1_epi32(product as i32);
            self.0 = _mm256_blendv_epi8(self.0, product, _mm256_loadu_si256(row.cast()));
            self.1 = _mm256_blendv_epi8(self.1, product, _mm256_loadu_si256(row.add(8).cast()));
        }
    }
}
