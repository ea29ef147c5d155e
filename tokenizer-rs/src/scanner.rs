// SPDX-License-Identifier: Apache-2.0
//! The splitting rules of [`crate::family`], by hand, one word at a time.
//!
//! This is the ground truth for [`crate::blocks`], which finds many words at once. It is also the way for what that
//! leaves: the ends of texts, and characters that need a closer look. The words cover the text without gaps, so a word
//! is given by its end, which depends on nothing that stands before the word.

use crate::family::{Cl100k, Family, Gpt2, Llama3, O200k, Rule};
use crate::unicode::{Class, ClassTable};

const DIGITS_MAX: usize = 3;

/// [`word_end`] for a rule that is known only at run time.
pub fn word_end_of(family: Family, text: &str, start: usize) -> usize {
    let (classes, text) = (ClassTable::shared(), text.as_bytes());
    match family {
        Family::Gpt2 => word_end::<Gpt2>(classes, text, start),
        Family::Llama3 => word_end::<Llama3>(classes, text, start),
        Family::Cl100k => word_end::<Cl100k>(classes, text, start),
        Family::O200k => word_end::<O200k>(classes, text, start),
    }
}

/// The byte offset where the word that begins at `start` ends. `text` is UTF-8, `start` a character boundary inside.
#[inline(always)]
pub fn word_end<R: Rule>(classes: &ClassTable, text: &[u8], start: usize) -> usize {
    if R::IS_MODERN {
        modern_word_end::<R>(classes, text, start)
    } else {
        gpt2_word_end(classes, text, start)
    }
}

fn gpt2_word_end(classes: &ClassTable, text: &[u8], start: usize) -> usize {
    if text[start] == b'\'' {
        if let Some(end) = contraction_end(text, start, false) {
            return end;
        }
    }
    // ` ?` before a run of one class; a space before white space is left to the last two alternatives.
    let after_space = start + usize::from(text[start] == b' ');
    if after_space < text.len() {
        let (class, width) = classes.at(text, after_space);
        let rest = after_space + width;
        match class {
            Class::Space => {}
            Class::Number => return run_end(classes, text, rest, |class| class == Class::Number),
            class if class.is_letter() => return run_end(classes, text, rest, Class::is_letter),
            _ => return run_end(classes, text, rest, Class::is_symbol),
        }
    }
    white_space_end::<Gpt2>(classes, text, start)
}

fn modern_word_end<R: Rule>(classes: &ClassTable, text: &[u8], start: usize) -> usize {
    let first = text[start];
    if !R::IS_CASED && first == b'\'' {
        if let Some(end) = contraction_end(text, start, true) {
            return end;
        }
    }
    let (class, width) = classes.at(text, start);
    if class == Class::Number {
        return number_end(classes, text, start + width);
    }
    let is_line_end = matches!(first, b'\r' | b'\n');
    let letters = match (R::IS_CASED, class.is_letter()) {
        (true, is_letter) => cased_end(classes, text, start, (!is_letter && !is_line_end).then_some(width)),
        (false, true) => Some(run_end(classes, text, start + width, Class::is_letter)),
        (false, false) if is_line_end => None,
        (false, false) => {
            let end = run_end(classes, text, start + width, Class::is_letter);
            (end > start + width).then_some(end)
        }
    };
    if let Some(end) = letters {
        return end;
    }
    // ` ?[^\s\p{L}\p{N}]+[\r\n]*`
    let symbols = start + usize::from(first == b' ');
    let end = run_end(classes, text, symbols, Class::is_symbol);
    if end > symbols {
        let belongs = |byte: &&u8| matches!(byte, b'\r' | b'\n') || R::IS_CASED && **byte == b'/';
        return end + text[end..].iter().take_while(belongs).count();
    }
    white_space_end::<R>(classes, text, start)
}

/// `'(?:[sdmt]|ll|ve|re)` at the apostrophe at `start`; in any case, `ſ` (U+017F) is an `s` too.
pub fn contraction_end(text: &[u8], start: usize, in_any_case: bool) -> Option<usize> {
    let letter = |place: usize| {
        let byte = *text.get(start + place)?;
        Some(if in_any_case { byte.to_ascii_lowercase() } else { byte })
    };
    match (letter(1)?, letter(2)) {
        (b's' | b'd' | b'm' | b't', _) => Some(start + 2),
        (b'l', Some(b'l')) | (b'v' | b'r', Some(b'e')) => Some(start + 3),
        _ if in_any_case && text[start + 1..].starts_with("ſ".as_bytes()) => Some(start + 3),
        _ => None,
    }
}

/// The two first alternatives of o200k, with its prefix of `prefix` bytes or, if that leads nowhere, without. Marks may
/// be prefixes and letters.
fn cased_end(classes: &ClassTable, text: &[u8], start: usize, prefix: Option<usize>) -> Option<usize> {
    let tries = || prefix.into_iter().map(|width| start + width).chain([start]);
    let end = tries()
        .find_map(|start| lower_ending_end(classes, text, start))
        .or_else(|| tries().find_map(|start| upper_beginning_end(classes, text, start)))?;
    let is_apostrophe = text.get(end) == Some(&b'\'');
    let contraction = is_apostrophe.then(|| contraction_end(text, end, true)).flatten();
    Some(contraction.unwrap_or(end))
}

fn may_begin(class: Class) -> bool {
    matches!(class, Class::Upper | Class::Caseless | Class::Mark)
}

fn may_end(class: Class) -> bool {
    matches!(class, Class::Lower | Class::Caseless | Class::Mark)
}

/// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+`: where nothing may end behind the first run, it gives
/// back characters up to the last one that may.
fn lower_ending_end(classes: &ClassTable, text: &[u8], start: usize) -> Option<usize> {
    let (mut at, mut behind_last_that_may) = (start, None);
    while at < text.len() {
        let (class, width) = classes.at(text, at);
        if !may_begin(class) {
            break;
        }
        at += width;
        if may_end(class) {
            behind_last_that_may = Some(at);
        }
    }
    let end = run_end(classes, text, at, may_end);
    if end > at { Some(end) } else { behind_last_that_may }
}

/// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*`
fn upper_beginning_end(classes: &ClassTable, text: &[u8], start: usize) -> Option<usize> {
    let upper_end = run_end(classes, text, start, may_begin);
    (upper_end > start).then(|| run_end(classes, text, upper_end, may_end))
}

/// `\p{N}{1,3}`, the first of which ends at `at`.
fn number_end(classes: &ClassTable, text: &[u8], mut at: usize) -> usize {
    for _ in 1..DIGITS_MAX {
        if at == text.len() {
            break;
        }
        let (class, width) = classes.at(text, at);
        if class != Class::Number {
            break;
        }
        at += width;
    }
    at
}

/// `\s*[\r\n]+|\s+(?!\S)|\s+`, the first not for gpt2. A run of white space ends behind its last line end. Without one
/// it leaves its last character to the word behind it, unless it has only one.
fn white_space_end<R: Rule>(classes: &ClassTable, text: &[u8], start: usize) -> usize {
    let (mut last, mut end, mut line_end) = (start, start, None);
    while end < text.len() {
        let (class, width) = classes.at(text, end);
        if class != Class::Space {
            break;
        }
        last = end;
        end += width;
        if R::IS_MODERN && matches!(text[last], b'\r' | b'\n') {
            line_end = Some(end);
        }
    }
    match line_end {
        _ if R::KEEPS_LAST_SPACE && end == text.len() => end,
        Some(line_end) => line_end,
        None if end < text.len() && last > start => last,
        None => end,
    }
}

#[inline(always)]
fn run_end(classes: &ClassTable, text: &[u8], mut at: usize, belongs: impl Fn(Class) -> bool) -> usize {
    while at < text.len() {
        let (class, width) = classes.at(text, at);
        if !belongs(class) {
            break;
        }
        at += width;
    }
    at
}
