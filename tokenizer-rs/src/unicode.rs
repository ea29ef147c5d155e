// SPDX-License-Identifier: Apache-2.0
//! The class of every code point, as the GPT-2 splitting rule sees it.
//!
//! The ranges come from Hugging Face tokenizers itself (see `unicode_ranges.py`). The Rust standard library cannot
//! stand in: `char::is_alphabetic` holds more than `\p{L}`, and its Unicode version moves with the compiler.

use crate::unicode_ranges::{LETTERS, NUMBERS, WHITE_SPACE};

/// What the splitting rule can tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// Everything that is none of the others: `[^\s\p{L}\p{N}]`.
    Other = 0,
    /// `\p{L}`
    Letter = 1,
    /// `\p{N}`
    Number = 2,
    /// `\s`
    Space = 3,
}

const CODE_POINTS: usize = 0x11_0000;
const CLASSES_PER_BYTE: usize = 4;

/// Two bits a code point: 272 KiB, of which real text touches a few cache lines.
pub struct ClassTable {
    ascii: [Class; 128],
    packed: Box<[u8]>,
}

impl ClassTable {
    /// Builds the table from the committed ranges.
    pub fn new() -> Self {
        let mut packed = vec![0_u8; CODE_POINTS / CLASSES_PER_BYTE].into_boxed_slice();
        for (ranges, class) in [
            (LETTERS, Class::Letter),
            (NUMBERS, Class::Number),
            (WHITE_SPACE, Class::Space),
        ] {
            for code in ranges.iter().flat_map(|&(first, last)| first..=last) {
                packed[code as usize / CLASSES_PER_BYTE] |= (class as u8) << (2 * (code as usize % CLASSES_PER_BYTE));
            }
        }
        let mut table = Self {
            ascii: [Class::Other; 128],
            packed,
        };
        for byte in 0..128_u8 {
            table.ascii[usize::from(byte)] = table.of(char::from(byte));
        }
        table
    }

    /// The class of one character.
    pub fn of(&self, character: char) -> Class {
        let code = character as usize;
        match self.packed[code / CLASSES_PER_BYTE] >> (2 * (code % CLASSES_PER_BYTE)) & 3 {
            0 => Class::Other,
            1 => Class::Letter,
            2 => Class::Number,
            _ => Class::Space,
        }
    }

    /// The class of an ASCII byte; `byte` must be below 128.
    #[inline(always)]
    pub fn of_ascii(&self, byte: u8) -> Class {
        self.ascii[usize::from(byte & 0x7f)]
    }
}

impl Default for ClassTable {
    fn default() -> Self {
        Self::new()
    }
}
