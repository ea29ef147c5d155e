// SPDX-License-Identifier: Apache-2.0
//! Training: from documents to the `tokenizer.json` that Hugging Face's `BpeTrainer` would have written.
//!
//! Documents go by once: [`word_counts`] keeps each distinct word and how often it came, nothing else. [`merging`] then
//! merges the most frequent pair of neighbours over and over, and `written` writes the file.
//!
//! Equal to `BpeTrainer` of tokenizers 0.23 with the byte-level alphabet as `initial_alphabet`: ids, merges and the
//! bytes of the file. Its `limit_alphabet`, `max_token_length`, prefixes and suffixes have no counterpart here. Its
//! counts are 32-bit and wrap around; these do not, so text in which a pair occurs 2^31 times trains differently.
//! Special tokens that occur in the text are text, there as here.

pub mod merging;
pub mod word_counts;
mod written;

use crate::encode::{BAD_OFFSETS, checked_utf8, document};
use crate::family::Family;
use crate::model::{LoadError, check_size, malformed, quoted, unsupported};
use crate::simd::Level;
use crate::word_ends::WordEnds;
use merging::Vocabulary;
use std::fmt;
use word_counts::WordCounts;

/// Why a document was not counted.
#[derive(Debug, PartialEq, Eq)]
pub enum FeedError {
    /// As for encoding.
    Offsets,
    /// The text is not UTF-8 at this byte offset.
    Utf8 {
        /// Offset in the text of the whole batch.
        position: usize,
    },
    /// The distinct words need more memory than was granted.
    Memory,
}

impl fmt::Display for FeedError {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Offsets => formatter.write_str(BAD_OFFSETS),
            Self::Utf8 { position } => write!(formatter, "the text is not UTF-8 at byte {position}"),
            Self::Memory => formatter.write_str("the distinct words need more memory than was granted"),
        }
    }
}

impl std::error::Error for FeedError {}

/// What to make of the words.
pub struct Recipe<'call> {
    /// Special tokens, bytes and products together. Fewer come out where no more pairs are frequent enough.
    pub vocabulary_size: usize,
    /// Pairs that occur less often are not merged; 0 and 1 are the same.
    pub frequency_min: u64,
    /// They get the first ids.
    pub specials: Vec<&'call str>,
}

/// Counts words; makes vocabularies of them.
pub struct Trainer {
    family: Family,
    words: WordEnds,
    counts: WordCounts,
}

impl Trainer {
    /// `table_bytes_max`: what the table of distinct words may take, while it grows too. Refuses a rule that a
    /// `tokenizer.json` cannot name.
    pub fn new(family: Family, table_bytes_max: usize) -> Result<Self, LoadError> {
        if family == Family::Cl100k {
            return unsupported(
                "splitting rule \"cl100k\" has no tokenizer.json; \"llama3\" differs from it only in white space"
                    .into(),
            );
        }
        Ok(Self {
            family,
            words: WordEnds::new(family, Level::best()),
            counts: WordCounts::new(table_bytes_max),
        })
    }

    /// Counts the words of the documents `text[offsets[i]..offsets[i + 1]]`. After an error some are counted, some not.
    pub fn feed(&mut self, text: &[u8], offsets: &[u64]) -> Result<(), FeedError> {
        for pair in offsets.windows(2) {
            let (start, document) = document(text, pair).ok_or(FeedError::Offsets)?;
            let document = checked_utf8(document).map_err(|valid| FeedError::Utf8 {
                position: start + valid,
            })?;
            self.count(document).ok_or(FeedError::Memory)?;
        }
        Ok(())
    }

    fn count(&mut self, text: &str) -> Option<()> {
        let mut start = 0;
        while start < text.len() {
            let ends = self.words.batch(text, start);
            start = self.counts.add_all(text.as_bytes(), start, ends)?;
        }
        Some(())
    }

    /// The distinct words so far.
    pub fn counts(&self) -> &WordCounts {
        &self.counts
    }

    /// Learns the merges; returns the `tokenizer.json`.
    pub fn train(&self, recipe: &Recipe) -> Result<Vec<u8>, LoadError> {
        check_size(recipe.vocabulary_size)?;
        check_specials(&recipe.specials)?;
        let mut vocabulary = Vocabulary::new(&recipe.specials);
        if vocabulary.size() > recipe.vocabulary_size {
            return unsupported(format!(
                "a vocabulary of {}: special tokens and bytes alone are {}",
                recipe.vocabulary_size,
                vocabulary.size()
            ));
        }
        vocabulary.learn(&self.counts, recipe);
        Ok(written::tokenizer_json(self.family, &vocabulary, &recipe.specials))
    }
}

fn check_specials(specials: &[&str]) -> Result<(), LoadError> {
    for (index, special) in specials.iter().enumerate() {
        if special.is_empty() {
            return malformed("a special token is empty".into());
        }
        if specials[..index].contains(special) {
            return malformed(format!("special token {} is given twice", quoted(special)));
        }
    }
    Ok(())
}
