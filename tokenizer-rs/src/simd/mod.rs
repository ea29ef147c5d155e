// SPDX-License-Identifier: Apache-2.0
//! What vector instructions do here, and which of them this machine has.
//!
//! A [`Simd`] classes the bytes of a block and lists the places of bits. Which one runs is decided once, when an
//! encoder is made; [`Level::Scalar`] uses none, and gives the same words one by one.

#[cfg(target_arch = "x86_64")]
pub mod avx2;
#[cfg(all(target_arch = "x86_64", has_avx512))]
pub mod avx512;
#[cfg(target_arch = "x86_64")]
pub(crate) mod instructions;
#[cfg(target_arch = "x86_64")]
pub mod lanes;
#[cfg(target_arch = "aarch64")]
pub mod neon;
#[cfg(target_arch = "x86_64")]
pub mod row;

use crate::blocks::{BLOCK_BYTES, Masks};

/// Places that [`Simd::write_places`] may write at most, those that do not count included.
pub const PLACES_WRITTEN: usize = 64;

/// Instructions of one kind. Every method may be called only where the machine has them.
pub trait Simd {
    /// Whether there are instructions at all; the other methods are not called without.
    const HAS_BLOCKS: bool;

    /// Classes of the bytes of a block.
    ///
    /// # Safety
    /// The machine has the instructions.
    unsafe fn masks(block: &[u8; BLOCK_BYTES]) -> Masks;

    /// Writes `base` plus the place of each set bit, in order.
    ///
    /// # Safety
    /// The machine has the instructions; there is room for `PLACES_WRITTEN` numbers at `places`.
    unsafe fn write_places(bits: u64, base: u32, places: *mut u32);
}

/// No vector instructions.
pub struct Scalar;

impl Simd for Scalar {
    const HAS_BLOCKS: bool = false;

    unsafe fn masks(_: &[u8; BLOCK_BYTES]) -> Masks {
        Masks::default()
    }

    unsafe fn write_places(_: u64, _: u32, _: *mut u32) {}
}

/// What the machine has, from least to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "names of instruction sets")]
pub enum Level {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(all(target_arch = "x86_64", has_avx512))]
    Avx512,
    #[cfg(target_arch = "aarch64")]
    Neon,
}

impl Level {
    /// All that this machine has; the last is the best.
    pub fn available() -> Vec<Self> {
        #[allow(unused_mut, reason = "on a machine without vector instructions")]
        let mut levels = vec![Self::Scalar];
        #[cfg(target_arch = "x86_64")]
        if avx2::is_available() {
            levels.push(Self::Avx2);
            #[cfg(has_avx512)]
            if avx512::is_available() {
                levels.push(Self::Avx512);
            }
        }
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("neon") {
            levels.push(Self::Neon);
        }
        levels
    }

    /// The best that this machine has.
    pub fn best() -> Self {
        *Self::available().last().unwrap_or(&Self::Scalar)
    }

    /// In small letters.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => "avx2",
            #[cfg(all(target_arch = "x86_64", has_avx512))]
            Self::Avx512 => "avx512",
            #[cfg(target_arch = "aarch64")]
            Self::Neon => "neon",
        }
    }
}
