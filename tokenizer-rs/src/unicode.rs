// SPDX-License-Identifier: Apache-2.0
//! The class of every code point, as the splitting rules see it.
//!
//! The ranges come from Hugging Face tokenizers itself (see `unicode_ranges.py`). The Rust standard library cannot
//! stand in: `char::is_alphabetic` holds more than `\p{L}`, and its Unicode version moves with the compiler.

use crate::unicode_ranges::{LETTERS, LOWER, MARKS, NUMBERS, UPPER, WHITE_SPACE};
use std::sync::LazyLock;

/// What the splitting rules can tell apart. The three letters come last, so that one comparison asks for any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
#[repr(u8)]
pub enum Class {
    /// Everything that is none of the others.
    Other = 0,
    /// `\p{M}`; for all rules but o200k's the same as `Other`.
    Mark = 1,
    /// `\p{N}`
    Number = 2,
    /// `\s`
    Space = 3,
    /// `\p{Ll}`
    Lower = 4,
    /// `[\p{Lu}\p{Lt}]`
    Upper = 5,
    /// `[\p{Lm}\p{Lo}]`
    Caseless = 6,
}

impl Class {
    /// `\p{L}`
    #[inline(always)]
    pub fn is_letter(self) -> bool {
        self >= Self::Lower
    }

    /// `[^\s\p{L}\p{N}]`
    #[inline(always)]
    pub fn is_symbol(self) -> bool {
        self <= Self::Mark
    }

    #[inline(always)]
    fn of_number(number: u8) -> Self {
        match number & 7 {
            0 => Self::Other,
            1 => Self::Mark,
            2 => Self::Number,
            3 => Self::Space,
            4 => Self::Lower,
            5 => Self::Upper,
            _ => Self::Caseless,
        }
    }
}

const CODE_POINTS: usize = 0x11_0000;

/// Four bits a code point: 544 KiB for the whole process, of which real text touches a few cache lines.
pub struct ClassTable {
    ascii: [Class; 128],
    packed: Box<[u8]>,
}

impl ClassTable {
    /// The table of the process.
    pub fn shared() -> &'static Self {
        static TABLE: LazyLock<ClassTable> = LazyLock::new(ClassTable::new);
        &TABLE
    }

    fn new() -> Self {
        let mut packed = vec![0_u8; CODE_POINTS / 2].into_boxed_slice();
        // Later ranges overwrite earlier ones: what is a letter and neither lower nor upper has no case.
        for (ranges, class) in [
            (MARKS, Class::Mark),
            (NUMBERS, Class::Number),
            (WHITE_SPACE, Class::Space),
            (LETTERS, Class::Caseless),
            (LOWER, Class::Lower),
            (UPPER, Class::Upper),
        ] {
            for code in ranges.iter().flat_map(|&(first, last)| first as usize..=last as usize) {
                let shift = 4 * (code % 2);
                packed[code / 2] = packed[code / 2] & !(0xf << shift) | (class as u8) << shift;
            }
        }
        let mut table = Self {
            ascii: [Class::Other; 128],
            packed,
        };
        for byte in 0..128_u8 {
            table.ascii[usize::from(byte)] = table.of(u32::from(byte));
        }
        table
    }

    /// The class of one code point; what is none has the class `Other`.
    #[inline(always)]
    pub fn of(&self, code: u32) -> Class {
        let byte = self.packed.get(code as usize / 2).copied().unwrap_or(0);
        Class::of_number(byte >> (4 * (code % 2)))
    }

    /// The class of an ASCII byte; `byte` must be below 128.
    #[inline(always)]
    pub fn of_ascii(&self, byte: u8) -> Class {
        self.ascii[usize::from(byte & 0x7f)]
    }

    /// Class and width in bytes of the character that begins at `at`, which lies inside `text`.
    #[inline(always)]
    pub fn at(&self, text: &[u8], at: usize) -> (Class, usize) {
        let first = text[at];
        if first < 0x80 {
            return (self.of_ascii(first), 1);
        }
        let (code, width) = decode(text, at);
        (self.of(code), width)
    }
}

/// The code point at `at` and its width in bytes. Text is UTF-8 by then; a character cut short reads as if zeros
/// followed, so that nothing is read outside of it.
#[inline(always)]
pub fn decode(text: &[u8], at: usize) -> (u32, usize) {
    let first = u32::from(text[at]);
    let tail = |place: usize| u32::from(text.get(at + place).copied().unwrap_or(0)) & 0x3f;
    match first {
        0..0x80 => (first, 1),
        0x80..0xe0 => ((first & 0x1f) << 6 | tail(1), 2),
        0xe0..0xf0 => ((first & 0xf) << 12 | tail(1) << 6 | tail(2), 3),
        _ => ((first & 7) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3), 4),
    }
}
