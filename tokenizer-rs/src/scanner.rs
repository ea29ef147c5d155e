// SPDX-License-Identifier: Apache-2.0
//! The GPT-2 splitting rule, by hand:
//!
//! ```text
//! '(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//! ```
//!
//! Source: OpenAI's GPT-2 `encoder.py`; Hugging Face tokenizers' `ByteLevel` uses the same expression. Scalar: one
//! character at a time with a fast way for ASCII. The words cover the text without gaps, so a word is given by its end.

use crate::unicode::{Class, ClassTable};

/// The byte offset where the word that begins at `start` ends. `start` is a character boundary below `text.len()`.
#[inline]
pub fn word_end(classes: &ClassTable, text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let first = bytes[start];
    if first == b'\'' {
        if let Some(end) = contraction_end(bytes, start) {
            return end;
        }
    }
    if first == b' ' && start + 1 < bytes.len() {
        // ` ?` before a run of one class; a space before white space is left to the last two alternatives.
        let (class, width) = class_at(classes, text, start + 1);
        if class != Class::Space {
            return run_end(classes, text, start + 1 + width, class);
        }
        return white_space_end(classes, text, start);
    }
    let (class, width) = class_at(classes, text, start);
    match class {
        Class::Space => white_space_end(classes, text, start),
        class => run_end(classes, text, start + width, class),
    }
}

/// `'(?:[sdmt]|ll|ve|re)` at the apostrophe at `start`.
fn contraction_end(bytes: &[u8], start: usize) -> Option<usize> {
    match bytes.get(start + 1)? {
        b's' | b'd' | b'm' | b't' => Some(start + 2),
        b'l' if bytes.get(start + 2) == Some(&b'l') => Some(start + 3),
        b'v' | b'r' if bytes.get(start + 2) == Some(&b'e') => Some(start + 3),
        _ => None,
    }
}

/// `\s+(?!\S)|\s+`: a run of white space leaves its last character to the word behind it, unless it has only one.
fn white_space_end(classes: &ClassTable, text: &str, start: usize) -> usize {
    let (mut last, mut end) = (start, start);
    while end < text.len() {
        let (class, width) = class_at(classes, text, end);
        if class != Class::Space {
            return if last > start { last } else { end };
        }
        last = end;
        end += width;
    }
    end
}

#[inline(always)]
fn run_end(classes: &ClassTable, text: &str, mut at: usize, class: Class) -> usize {
    let bytes = text.as_bytes();
    while let Some(&byte) = bytes.get(at) {
        if byte < 0x80 {
            if classes.of_ascii(byte) != class {
                break;
            }
            at += 1;
        } else {
            let (found, width) = class_at(classes, text, at);
            if found != class {
                break;
            }
            at += width;
        }
    }
    at
}

/// Class and width in bytes of the character at `at`.
#[inline(always)]
fn class_at(classes: &ClassTable, text: &str, at: usize) -> (Class, usize) {
    let byte = text.as_bytes()[at];
    if byte < 0x80 {
        return (classes.of_ascii(byte), 1);
    }
    match text[at..].chars().next() {
        Some(character) => (classes.of(character), character.len_utf8()),
        None => unreachable!("class_at is called inside the text"),
    }
}
