// SPDX-License-Identifier: Apache-2.0
//! Many words at once: where words begin in 64 bytes of text, as the bits of one number.
//!
//! A block is loaded where a word is known to begin, so nothing before it matters. Where its last word ends is not to
//! be seen in it, so the next block begins there. With that there is nothing to carry from block to block, and about
//! one word in seventeen is looked at twice. Bit i stands for byte i of the block.
//!
//! ASCII is classed by vector instructions ([`crate::simd`]), other characters one by one. What the bits cannot express
//! (white space of several bytes, most numbers and marks outside ASCII, mixed scripts under o200k) ends the block
//! early. A word that fills its block is left to [`crate::scanner`], which is the ground truth for all of this.
//!
//! Ideas from gigatoken (MIT licence): classes as bits, runs by addition. Blocks that restart at words instead of
//! carrying state are this project's.

use crate::family::Rule;
use crate::scanner::contraction_end;
use crate::unicode::{Class, ClassTable, decode};

/// Bytes of a block.
pub const BLOCK_BYTES: usize = 64;

/// Where in a block the bytes of each class lie.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "one class each")]
pub struct Masks {
    pub lower: u64,
    pub upper: u64,
    pub digits: u64,
    /// ASCII white space, `spaces` and `line_ends` among it.
    pub white: u64,
    pub spaces: u64,
    /// `\r` and `\n`
    pub line_ends: u64,
    pub apostrophes: u64,
    pub slashes: u64,
    /// Bytes outside ASCII.
    pub wide: u64,
    /// First bytes of characters outside ASCII.
    pub leads: u64,
}

/// Bits below `place`, which is at most 64.
#[inline(always)]
fn below(place: u32) -> u64 {
    if place < 64 { (1 << place) - 1 } else { u64::MAX }
}

/// Bits up to `place`, below 64.
#[inline(always)]
fn through(place: u32) -> u64 {
    u64::MAX >> (63 - place)
}

/// The word starts of a block, bit 0 among them. Every bit but the highest marks a word that ends at the next bit.
#[inline(always)]
pub fn word_starts<R: Rule>(
    classes: &ClassTable,
    text: &[u8],
    at: usize,
    block: &[u8; BLOCK_BYTES],
    masks: Masks,
) -> u64 {
    let mut view = View {
        letters: masks.lower | masks.upper,
        lower: masks.lower,
        upper: masks.upper,
        digits: masks.digits,
        wide_symbols: 0,
        known: 64,
    };
    if masks.wide != 0 {
        view.add_wide::<R>(classes, block, masks.leads);
    }
    let starts = if R::IS_MODERN {
        view.modern_starts::<R>(text, at, &masks)
    } else {
        view.gpt2_starts(text, at, &masks)
    };
    starts & below(view.known) | 1
}

/// What a block shows, up to its first `known` bytes.
struct View {
    letters: u64,
    lower: u64,
    upper: u64,
    digits: u64,
    /// First bytes of symbols outside ASCII.
    wide_symbols: u64,
    known: u32,
}

impl View {
    /// Classes characters outside ASCII, until one cannot be expressed.
    #[inline(always)]
    fn add_wide<R: Rule>(&mut self, classes: &ClassTable, block: &[u8; BLOCK_BYTES], mut leads: u64) {
        let mut caseless = 0;
        while leads != 0 {
            let place = leads.trailing_zeros();
            leads &= leads - 1;
            let (class, width) = class_in_block(classes, block, place as usize);
            if place + width > BLOCK_BYTES as u32 {
                self.known = place;
                break;
            }
            let bytes = below(width) << place;
            match class {
                Class::Lower | Class::Upper | Class::Caseless => {
                    self.letters |= bytes;
                    if R::IS_CASED {
                        match class {
                            Class::Lower => self.lower |= bytes,
                            Class::Upper => self.upper |= bytes,
                            _ => caseless |= bytes,
                        }
                    }
                }
                Class::Number if !R::IS_MODERN => self.digits |= bytes,
                Class::Other => self.wide_symbols |= 1 << place,
                Class::Mark if !R::IS_CASED => self.wide_symbols |= 1 << place,
                Class::Mark | Class::Number | Class::Space => {
                    self.known = place;
                    break;
                }
            }
        }
        if R::IS_CASED {
            // Beside letters that have case, those without decide by what is further on.
            let cased = self.lower | self.upper;
            let mixed = cased & caseless << 1 | caseless & cased << 1;
            self.known = self.known.min(mixed.trailing_zeros());
        }
    }

    #[inline(always)]
    fn gpt2_starts(&self, text: &[u8], at: usize, masks: &Masks) -> u64 {
        let (letters, digits, white) = (self.letters, self.digits, masks.white);
        let symbols = !(letters | digits | white);
        let same = letters & letters << 1 | digits & digits << 1 | symbols & symbols << 1;
        let visible = !(white | same | masks.spaces << 1);
        // The last white space before something else begins a word of its own or with what follows.
        let last_white = white & (!white & below(self.known)) >> 1;
        let starts = visible | white & !(white << 1) | last_white;
        self.cut_contractions(text, at, masks.apostrophes, starts, false)
    }

    #[inline(always)]
    fn modern_starts<R: Rule>(&mut self, text: &[u8], at: usize, masks: &Masks) -> u64 {
        let (letters, digits, white) = (self.letters, self.digits, masks.white);
        let symbols = !(letters | digits | white);
        // Line ends belong to the symbols before them.
        let after_symbols = masks.line_ends & symbols << 1;
        let taken = masks.line_ends & !masks.line_ends.wrapping_add(after_symbols);
        if R::IS_CASED && masks.slashes & taken << 1 != 0 {
            // `;\n//`: the slashes behind line ends belong to the symbols, too; what follows is for another look.
            self.known = self.known.min((masks.slashes & taken << 1).trailing_zeros());
        }
        let free_white = white & !taken;
        let symbol_starts = symbols & !(symbols << 1) & !(masks.spaces << 1);
        let single_symbols = self.last_bytes(symbol_starts, text, at);
        let before_letters = white & !masks.line_ends | single_symbols;
        let mut letter_starts = letters & !(letters << 1) & !(before_letters << 1);
        if R::IS_CASED {
            letter_starts |= self.upper & self.lower << 1;
        }
        let starts = symbol_starts | letter_starts | every_third(digits) | self.white_starts::<R>(free_white, masks);
        if R::IS_CASED {
            self.join_contractions(text, at, masks.apostrophes, starts)
        } else {
            self.cut_contractions(text, at, masks.apostrophes, starts, true)
        }
    }

    /// Where words of white space begin: at the run, behind its last line end, and at its last character if that is
    /// none and something else follows.
    #[inline(always)]
    fn white_starts<R: Rule>(&self, white: u64, masks: &Masks) -> u64 {
        let line_ends = white & masks.line_ends;
        let blanks = white & !line_ends;
        let last_blank = blanks & (!masks.white & below(self.known)) >> 1;
        let mut behind_lines = blanks & line_ends << 1;
        if behind_lines != 0 {
            // Not those that another line end follows, nor those whose end is not to be seen.
            let mut followed = line_ends & blanks << 1;
            while followed != 0 {
                let place = followed.trailing_zeros();
                followed &= followed - 1;
                behind_lines &= !run_below(blanks, place);
            }
            behind_lines &= !run_below(blanks & below(self.known), self.known);
        }
        let mut starts = white & !(white << 1) | behind_lines | last_blank;
        if R::KEEPS_LAST_SPACE {
            // A run that reaches the end of the block may be the last of the text.
            let last_run = run_below(white & below(self.known), self.known);
            starts &= !(last_run & last_run << 1);
        }
        starts
    }

    /// The last byte of each symbol that begins at `starts`.
    #[inline(always)]
    fn last_bytes(&self, starts: u64, text: &[u8], at: usize) -> u64 {
        let mut wide = starts & self.wide_symbols;
        let mut last = starts & !wide;
        while wide != 0 {
            let place = wide.trailing_zeros();
            wide &= wide - 1;
            let (_, width) = decode(text, at + place as usize);
            last |= 1 << ((place + width as u32 - 1) & 63);
        }
        last
    }

    /// Where a word begins with an apostrophe, it may be a contraction, and what follows begins anew.
    #[inline(always)]
    fn cut_contractions(&self, text: &[u8], at: usize, apostrophes: u64, mut starts: u64, in_any_case: bool) -> u64 {
        let mut candidates = apostrophes & (starts | 1) & below(self.known);
        while candidates != 0 {
            let place = candidates.trailing_zeros();
            if let Some(end) = contraction_end(text, at + place as usize, in_any_case) {
                let end = (end - at) as u32;
                if end >= self.known {
                    return starts & through(place);
                }
                starts = starts & (through(place) | !below(end)) | 1 << end;
            }
            candidates = apostrophes & starts & below(self.known) & !through(place);
        }
        starts
    }

    /// A contraction behind a letter belongs to its word, unless it follows a contraction.
    #[inline(always)]
    fn join_contractions(&self, text: &[u8], at: usize, apostrophes: u64, mut starts: u64) -> u64 {
        let mut candidates = apostrophes & self.letters << 1 & below(self.known);
        let mut last_end = 0;
        while candidates != 0 {
            let place = candidates.trailing_zeros();
            candidates &= candidates - 1;
            if place == last_end {
                continue;
            }
            if let Some(end) = contraction_end(text, at + place as usize, true) {
                last_end = (end - at) as u32;
                if last_end >= self.known {
                    return starts & below(place);
                }
                starts = starts & (below(place) | !below(last_end)) | 1 << last_end;
            }
        }
        starts
    }
}

/// `\p{N}{1,3}`: the first digit of each run, and every third behind it.
#[inline(always)]
fn every_third(digits: u64) -> u64 {
    let mut starts = digits & !(digits << 1);
    let three = digits & digits << 1 & digits << 2 & digits << 3;
    let mut next = starts << 3 & three;
    while next != 0 {
        starts |= next;
        next = next << 3 & three;
    }
    starts
}

/// The bits of the run of ones in `bits` that ends just below `place`, which is at most 64.
#[inline(always)]
fn run_below(bits: u64, place: u32) -> u64 {
    if place == 0 {
        return 0;
    }
    let length = (bits << (64 - place)).leading_ones();
    below(place) & !below(place - length)
}

/// As [`ClassTable::at`], but within the block: what lies behind it reads as if the block began again.
#[inline(always)]
fn class_in_block(classes: &ClassTable, block: &[u8; BLOCK_BYTES], place: usize) -> (Class, u32) {
    let byte = |offset: usize| u32::from(block[(place + offset) % BLOCK_BYTES]);
    let tail = |offset: usize| byte(offset) & 0x3f;
    let first = byte(0);
    if first < 0xe0 {
        (classes.of((first & 0x1f) << 6 | tail(1)), 2)
    } else if first < 0xf0 {
        (classes.of((first & 0xf) << 12 | tail(1) << 6 | tail(2)), 3)
    } else {
        (
            classes.of((first & 7) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3)),
            4,
        )
    }
}
