// SPDX-License-Identifier: Apache-2.0
//! From documents to ids: special tokens, then words. One encoder per thread; the model is shared.

use crate::family::{Cl100k, Family, Gpt2, Llama3, O200k};
use crate::model::Model;
use crate::output::{Full, Output};
use crate::simd::Level;
use crate::special::SpecialTokens;
use crate::token_id::TokenId;
use crate::words::WordEncoder;
use std::fmt;
use std::mem::MaybeUninit;
use std::sync::Arc;

/// The longest document, in bytes: places in a document are 32-bit numbers.
pub const DOCUMENT_BYTES_MAX: usize = u32::MAX as usize - 1;

/// Why a batch was not encoded.
#[derive(Debug, PartialEq, Eq)]
pub enum EncodeError {
    /// An offset is smaller than the one before it, lies outside the text, or a document is too long.
    Offsets,
    /// The text is not UTF-8 at this byte offset.
    Utf8 {
        /// Offset in the text of the whole batch.
        position: usize,
    },
    /// The buffer for the ids is too small.
    Capacity {
        /// A capacity that suffices for any text of this length.
        needed: usize,
    },
}

impl fmt::Display for EncodeError {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Offsets => formatter.write_str(BAD_OFFSETS),
            Self::Utf8 { position } => write!(formatter, "the text is not UTF-8 at byte {position}"),
            Self::Capacity { needed } => write!(formatter, "the ids may need room for {needed}"),
        }
    }
}

impl std::error::Error for EncodeError {}

/// Bad offsets in words, whether documents are encoded or learned from.
pub(crate) const BAD_OFFSETS: &str = "the offsets decrease or lie outside the text, or a document has 4 GiB";

/// A model's ids for one thread: its cache and scratch memory. What a cache has learned from a model is wrong for any
/// other, so an encoder holds its own.
pub struct Encoder<I: TokenId> {
    model: Arc<Model>,
    words: WordEncoder<I>,
}

impl<I: TokenId> Encoder<I> {
    /// `model`: one whose ids fit `I`. `cache_entries`: 0, or a power of two up to [`crate::cache::ENTRIES_MAX`].
    pub fn new(model: &Arc<Model>, cache_entries: usize) -> Self {
        Self::with_level(model, cache_entries, Level::best())
    }

    /// With the instructions of `level`, which is one of [`Level::available`].
    pub fn with_level(model: &Arc<Model>, cache_entries: usize, level: Level) -> Self {
        assert!(Level::available().contains(&level));
        assert!(
            model.has_narrow_ids() || size_of::<I>() > 2,
            "ids of 16 bits for a larger vocabulary"
        );
        Self {
            model: Arc::clone(model),
            words: WordEncoder::new(cache_entries, level),
        }
    }

    /// Bytes that this encoder holds between calls, at most.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.words.bytes()
    }

    /// Encodes the documents `text[offsets[i]..offsets[i + 1]]`; returns the number of ids written to `ids`.
    /// `id_offsets[i]` receives where the ids of document i begin; it has as many entries as `offsets`, at least one.
    /// On an error nothing is said of what the buffers hold.
    pub fn encode_batch(
        &mut self,
        text: &[u8],
        offsets: &[u64],
        ids: &mut [MaybeUninit<I>],
        id_offsets: &mut [MaybeUninit<u64>],
    ) -> Result<usize, EncodeError> {
        for pair in offsets.windows(2) {
            document(text, pair).ok_or(EncodeError::Offsets)?;
        }
        let model = Arc::clone(&self.model);
        let mut output = Output::new(ids);
        for (pair, place) in offsets.windows(2).zip(&mut *id_offsets) {
            place.write(output.count() as u64);
            let (start, document) = document(text, pair).ok_or(EncodeError::Offsets)?;
            let document = checked_utf8(document).map_err(|valid| EncodeError::Utf8 {
                position: start + valid,
            })?;
            let encoded = self.encode_pieces(&model, model.specials(), document, &mut output);
            self.words.shrink();
            encoded.map_err(|Full| EncodeError::Capacity {
                needed: (offsets[offsets.len() - 1] - offsets[0]) as usize,
            })?;
        }
        if let Some(last) = id_offsets.last_mut() {
            last.write(output.count() as u64);
        }
        Ok(output.count())
    }

    /// Cuts out the special tokens of each pass in turn, then encodes what lies between them.
    fn encode_pieces(
        &mut self,
        model: &Model,
        passes: &[SpecialTokens],
        text: &str,
        output: &mut Output<I>,
    ) -> Result<(), Full> {
        let Some((pass, later_passes)) = passes.split_first() else {
            return match model.family() {
                Family::Gpt2 => self.words.encode::<Gpt2>(model, text, output),
                Family::Llama3 => self.words.encode::<Llama3>(model, text, output),
                Family::Cl100k => self.words.encode::<Cl100k>(model, text, output),
                Family::O200k => self.words.encode::<O200k>(model, text, output),
            };
        };
        let mut from = 0;
        while let Some(found) = pass.find(text, from) {
            self.encode_pieces(model, later_passes, &text[from..found.start], output)?;
            output.push(I::narrow(found.id))?;
            from = found.end;
        }
        self.encode_pieces(model, later_passes, &text[from..], output)
    }
}

/// Where a document begins, and the document; `None` when the offsets are not good.
pub(crate) fn document<'text>(text: &'text [u8], pair: &[u64]) -> Option<(usize, &'text [u8])> {
    let start = usize::try_from(pair[0]).ok()?;
    let document = text.get(start..usize::try_from(pair[1]).ok()?)?;
    (document.len() <= DOCUMENT_BYTES_MAX).then_some((start, document))
}

/// A document as text, or how many bytes of it are.
pub(crate) fn checked_utf8(document: &[u8]) -> Result<&str, usize> {
    #[cfg(not(miri))]
    let text = simdutf8::compat::from_utf8(document);
    // simdutf8 0.1.5 prefetches beyond the end by an addition that may not leave the text: Miri stops there.
    #[cfg(miri)]
    let text = std::str::from_utf8(document);
    text.map_err(|error| error.valid_up_to())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "65,536 look-ups take it minutes")]
    fn scratch_memory_is_given_back_after_a_long_word_that_had_no_room() {
        let tokens: String = (0..=255).map(rank_line).collect();
        let model = Model::from_ranks(tokens.as_bytes(), Family::Gpt2, &[]).unwrap_or_else(|error| panic!("{error}"));
        let word = vec![b'a'; 1 << 16];
        let mut encoder = Encoder::<u16>::new(&Arc::new(model), 0);
        let mut id_offsets = [MaybeUninit::new(0); 2];
        let refused = encoder.encode_batch(&word, &[0, 1 << 16], &mut [], &mut id_offsets);
        assert_eq!(refused, Err(EncodeError::Capacity { needed: 1 << 16 }));
        assert!(encoder.words.scratch_bytes() <= crate::merge::Merger::retained_bytes());
    }

    /// A line of a rank file in which each byte has itself as rank.
    fn rank_line(byte: u8) -> String {
        const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let digit = |index: u8| char::from(DIGITS[usize::from(index)]);
        format!("{}{}== {byte}\n", digit(byte >> 2), digit(byte << 4 & 63))
    }
}
