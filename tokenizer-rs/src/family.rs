// SPDX-License-Identifier: Apache-2.0
//! The splitting rules that are implemented: their regular expressions, and what tells them apart.
//!
//! ```text
//! gpt2    '(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//! llama3  (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*
//!         |\s*[\r\n]+|\s+(?!\S)|\s+
//! cl100k  '(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$
//!         |\s*[\r\n]|\s+(?!\S)|\s
//! o200k   [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//!         |[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//!         |\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
//! ```
//!
//! Sources: OpenAI's GPT-2 `encoder.py`, tiktoken 0.14 `openai_public.py`, Meta's Llama 3 `tokenizer.json`. llama3 is
//! what tiktoken called cl100k before version 0.8. The two differ only in `\s++$`: white space that ends a text is one
//! word, also when it holds a line end.

/// A splitting rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names of the rules, which the module spells out")]
pub enum Family {
    Gpt2,
    Llama3,
    Cl100k,
    O200k,
}

/// llama3 as `tokenizer.json` files write it.
pub const LLAMA3_REGEX: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);

/// o200k as `tokenizer.json` files write it.
pub const O200K_REGEX: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);

/// gpt2 as a `Split` may write it.
pub const GPT2_REGEX: &str = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

impl Family {
    /// The rule that this expression, letter by letter, stands for.
    pub fn of_regex(regex: &str) -> Option<Self> {
        match regex {
            GPT2_REGEX => Some(Self::Gpt2),
            LLAMA3_REGEX => Some(Self::Llama3),
            O200K_REGEX => Some(Self::O200k),
            _ => None,
        }
    }

    /// The rule of that name.
    pub fn of_name(name: &str) -> Option<Self> {
        [Self::Gpt2, Self::Llama3, Self::Cl100k, Self::O200k]
            .into_iter()
            .find(|family| family.name() == name)
    }

    /// The name by which a rank file's caller asks for the rule.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gpt2 => "gpt2",
            Self::Llama3 => "llama3",
            Self::Cl100k => "cl100k",
            Self::O200k => "o200k",
        }
    }
}

/// The differences between the rules, as constants: each rule gets a scanner of its own from one source.
pub trait Rule {
    /// One character that is no letter, number or line end may stand before a word's letters, and a space before
    /// symbols only. Line ends belong to what stands before them, and numbers have up to three digits. Otherwise (gpt2)
    /// a space may stand before anything, and nothing else.
    const IS_MODERN: bool;
    /// A word changes from upper to lower case at most once, marks count as letters, and contractions end a word in
    /// place of being one.
    const IS_CASED: bool;
    /// White space at the end of the text is one word.
    const KEEPS_LAST_SPACE: bool;
}

/// Rule of [`Family::Gpt2`].
pub struct Gpt2;
/// Rule of [`Family::Llama3`].
pub struct Llama3;
/// Rule of [`Family::Cl100k`].
pub struct Cl100k;
/// Rule of [`Family::O200k`].
pub struct O200k;

impl Rule for Gpt2 {
    const IS_MODERN: bool = false;
    const IS_CASED: bool = false;
    const KEEPS_LAST_SPACE: bool = false;
}

impl Rule for Llama3 {
    const IS_MODERN: bool = true;
    const IS_CASED: bool = false;
    const KEEPS_LAST_SPACE: bool = false;
}

impl Rule for Cl100k {
    const IS_MODERN: bool = true;
    const IS_CASED: bool = false;
    const KEEPS_LAST_SPACE: bool = true;
}

impl Rule for O200k {
    const IS_MODERN: bool = true;
    const IS_CASED: bool = true;
    const KEEPS_LAST_SPACE: bool = false;
}
