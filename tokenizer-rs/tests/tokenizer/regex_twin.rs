// SPDX-License-Identifier: Apache-2.0
//! The slow twin of the scanners: the regular expressions themselves, run by a matcher that tries one way after
//! another, as backtracking engines do. It shares no code with the library but the Unicode classes.

use pybench_tokenizer::family::Family;
use pybench_tokenizer::unicode::{Class, ClassTable};

/// A part of a regular expression.
pub enum Part {
    /// One character.
    One(Box<dyn Fn(char) -> bool>),
    /// Greedy repetition: at least, at most.
    Repeat(Box<Part>, usize, usize),
    /// Without giving back what was taken: `++`.
    Atomic(Box<Part>),
    Sequence(Vec<Part>),
    Either(Vec<Part>),
    /// `(?!\S)`
    NotBeforeNonSpace,
    /// `$`
    End,
}

use Part::{Atomic, Either, End, NotBeforeNonSpace, One, Repeat, Sequence};

impl Part {
    /// Where the first match from `at` on ends for which `then` finds an end of the rest.
    fn matches(&self, text: &[char], at: usize, then: &dyn Fn(usize) -> Option<usize>) -> Option<usize> {
        match self {
            One(is) => text.get(at).filter(|&&one| is(one)).and_then(|_| then(at + 1)),
            Repeat(part, least, most) => part.repeated(text, at, *least, *most, then),
            Atomic(part) => then(part.matches(text, at, &Some)?),
            Sequence(parts) => matches_all(parts, text, at, then),
            Either(parts) => parts.iter().find_map(|part| part.matches(text, at, then)),
            NotBeforeNonSpace => match text.get(at) {
                Some(&one) if class_of(one) != Class::Space => None,
                _ => then(at),
            },
            End => {
                if at == text.len() {
                    then(at)
                } else {
                    None
                }
            }
        }
    }

    fn repeated(
        &self,
        text: &[char],
        at: usize,
        least: usize,
        most: usize,
        then: &dyn Fn(usize) -> Option<usize>,
    ) -> Option<usize> {
        let more = |next| self.repeated(text, next, least.saturating_sub(1), most - 1, then);
        let longer = if most > 0 { self.matches(text, at, &more) } else { None };
        longer.or_else(|| if least == 0 { then(at) } else { None })
    }
}

fn matches_all(parts: &[Part], text: &[char], at: usize, then: &dyn Fn(usize) -> Option<usize>) -> Option<usize> {
    match parts.split_first() {
        Some((first, rest)) => first.matches(text, at, &|next| matches_all(rest, text, next, then)),
        None => then(at),
    }
}

fn class_of(one: char) -> Class {
    ClassTable::shared().of(u32::from(one))
}

fn one(is: impl Fn(char) -> bool + 'static) -> Part {
    One(Box::new(is))
}

fn class(is: impl Fn(Class) -> bool + 'static) -> Part {
    one(move |character| is(class_of(character)))
}

fn letter() -> Part {
    class(Class::is_letter)
}

fn number() -> Part {
    class(|class| class == Class::Number)
}

fn space() -> Part {
    class(|class| class == Class::Space)
}

/// `[^\s\p{L}\p{N}]`
fn symbol() -> Part {
    class(Class::is_symbol)
}

fn any_of(characters: &'static str) -> Part {
    one(|character| characters.contains(character))
}

/// `[^\r\n\p{L}\p{N}]?`
fn prefix() -> Part {
    optional(one(|character| {
        !"\r\n".contains(character) && !class_of(character).is_letter() && class_of(character) != Class::Number
    }))
}

fn optional(part: Part) -> Part {
    Repeat(Box::new(part), 0, 1)
}

fn star(part: Part) -> Part {
    Repeat(Box::new(part), 0, usize::MAX)
}

fn plus(part: Part) -> Part {
    Repeat(Box::new(part), 1, usize::MAX)
}

fn atomic(part: Part) -> Part {
    Atomic(Box::new(part))
}

/// `'(?:s|t|...)`, or `'(?i:...)`: ſ is the one other character that folds to one of these letters.
fn contraction(in_any_case: bool) -> Part {
    let fold = move |character: char| match character {
        'ſ' if in_any_case => 's',
        _ if in_any_case => character.to_ascii_lowercase(),
        _ => character,
    };
    let suffix = |text: &'static str| {
        Sequence(
            text.chars()
                .map(|wanted| one(move |found| fold(found) == wanted))
                .collect(),
        )
    };
    let suffixes = ["s", "t", "re", "ve", "m", "ll", "d"].map(suffix);
    Sequence(vec![any_of("'"), Either(suffixes.into())])
}

/// `\s+(?!\S)|\s+`
fn last_spaces() -> Part {
    Either(vec![
        Sequence(vec![plus(space()), Part::NotBeforeNonSpace]),
        plus(space()),
    ])
}

fn gpt2() -> Part {
    let after_space = |part| Sequence(vec![optional(any_of(" ")), plus(part)]);
    Either(vec![
        contraction(false),
        after_space(letter()),
        after_space(number()),
        after_space(symbol()),
        last_spaces(),
    ])
}

fn llama3() -> Part {
    Either(vec![
        contraction(true),
        Sequence(vec![prefix(), plus(letter())]),
        Repeat(Box::new(number()), 1, 3),
        Sequence(vec![optional(any_of(" ")), plus(symbol()), star(any_of("\r\n"))]),
        Sequence(vec![star(space()), plus(any_of("\r\n"))]),
        last_spaces(),
    ])
}

fn cl100k() -> Part {
    Either(vec![
        contraction(true),
        Sequence(vec![atomic(prefix()), atomic(plus(letter()))]),
        atomic(Repeat(Box::new(number()), 1, 3)),
        Sequence(vec![
            optional(any_of(" ")),
            atomic(plus(symbol())),
            atomic(star(any_of("\r\n"))),
        ]),
        Sequence(vec![atomic(plus(space())), End]),
        Sequence(vec![star(space()), any_of("\r\n")]),
        Sequence(vec![plus(space()), Part::NotBeforeNonSpace]),
        space(),
    ])
}

fn o200k() -> Part {
    let upper = || class(|class| matches!(class, Class::Upper | Class::Caseless | Class::Mark));
    let lower = || class(|class| matches!(class, Class::Lower | Class::Caseless | Class::Mark));
    Either(vec![
        Sequence(vec![
            prefix(),
            star(upper()),
            plus(lower()),
            optional(contraction(true)),
        ]),
        Sequence(vec![
            prefix(),
            plus(upper()),
            star(lower()),
            optional(contraction(true)),
        ]),
        Repeat(Box::new(number()), 1, 3),
        Sequence(vec![optional(any_of(" ")), plus(symbol()), star(any_of("\r\n/"))]),
        Sequence(vec![star(space()), plus(any_of("\r\n"))]),
        last_spaces(),
    ])
}

/// The words of a text.
pub fn words(family: Family, text: &str) -> Vec<String> {
    let rule = match family {
        Family::Gpt2 => gpt2(),
        Family::Llama3 => llama3(),
        Family::Cl100k => cl100k(),
        Family::O200k => o200k(),
    };
    let text: Vec<char> = text.chars().collect();
    let (mut words, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let end = rule
            .matches(&text, at, &Some)
            .expect("the rules leave nothing between their matches");
        words.push(text[at..end].iter().collect());
        at = end;
    }
    words
}
