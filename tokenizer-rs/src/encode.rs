// SPDX-License-Identifier: Apache-2.0
//! From documents to ids: special tokens, words, cache, merge. One encoder per thread; the model is shared.

use crate::cache::{Cache, Key};
use crate::family::{Cl100k, Family, Gpt2, Llama3, O200k, Rule};
use crate::merge::Merger;
use crate::model::Model;
use crate::scanner::word_end;
use crate::special::SpecialTokens;
use crate::unicode::ClassTable;
use std::mem::MaybeUninit;

/// The longest document, in bytes: places in a word are 32-bit numbers.
pub const DOCUMENT_BYTES_MAX: usize = u32::MAX as usize - 1;

/// The width in which ids are written.
pub trait TokenId: Copy + Default {
    /// The ids of one cache entry: what 32 bytes leave beside the key and the count.
    type Inline: Copy + Default + AsRef<[Self]> + AsMut<[Self]>;

    /// `id` is known to fit.
    fn narrow(id: u32) -> Self;

    /// The same number as an index.
    fn index(self) -> usize;
}

impl TokenId for u16 {
    type Inline = [u16; 7];

    fn narrow(id: u32) -> Self {
        id as u16
    }

    fn index(self) -> usize {
        usize::from(self)
    }
}

impl TokenId for u32 {
    type Inline = [u32; 3];

    fn narrow(id: u32) -> Self {
        id
    }

    fn index(self) -> usize {
        self as usize
    }
}

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

/// Cache and scratch memory of one thread, for models whose ids fit `I`.
pub struct Encoder<I: TokenId> {
    cache: Cache<I>,
    merger: Merger,
}

impl<I: TokenId> Encoder<I> {
    /// `cache_entries`: 0, or a power of two up to [`crate::cache::ENTRIES_MAX`].
    pub fn new(cache_entries: usize) -> Self {
        Self {
            cache: Cache::new(cache_entries),
            merger: Merger::default(),
        }
    }

    /// Bytes that this encoder holds between calls, at most.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.cache.bytes() + Merger::retained_bytes()
    }

    /// Encodes the documents `text[offsets[i]..offsets[i + 1]]`; returns the number of ids written to `ids`.
    /// `id_offsets[i]` receives where the ids of document i begin; it has as many entries as `offsets`, at least one.
    pub fn encode_batch(
        &mut self,
        model: &Model,
        text: &[u8],
        offsets: &[u64],
        ids: &mut [MaybeUninit<I>],
        id_offsets: &mut [MaybeUninit<u64>],
    ) -> Result<usize, EncodeError> {
        let documents = documents(text, offsets)?;
        let mut output = Output { buffer: ids, count: 0 };
        for (&(start, document), place) in documents.iter().zip(&mut *id_offsets) {
            place.write(output.count as u64);
            let document = std::str::from_utf8(document).map_err(|error| EncodeError::Utf8 {
                position: start + error.valid_up_to(),
            })?;
            self.encode_pieces(model, model.specials(), document, &mut output)
                .map_err(|Full| EncodeError::Capacity {
                    needed: documents.iter().map(|(_, document)| document.len()).sum(),
                })?;
            self.merger.shrink();
        }
        if let Some(last) = id_offsets.last_mut() {
            last.write(output.count as u64);
        }
        Ok(output.count)
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
                Family::Gpt2 => self.encode_words::<Gpt2>(model, text, output),
                Family::Llama3 => self.encode_words::<Llama3>(model, text, output),
                Family::Cl100k => self.encode_words::<Cl100k>(model, text, output),
                Family::O200k => self.encode_words::<O200k>(model, text, output),
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

    fn encode_words<R: Rule>(&mut self, model: &Model, text: &str, output: &mut Output<I>) -> Result<(), Full> {
        let classes = ClassTable::shared();
        let mut start = 0;
        while start < text.len() {
            let end = word_end::<R>(classes, text.as_bytes(), start);
            if end == start + 1 {
                // 30 % of the words of ordinary text: the id of a byte needs no cache.
                output.push(I::narrow(model.merges().byte_id(text.as_bytes()[start])))?;
            } else {
                self.encode_word(model, text.as_bytes(), start, end, output)?;
            }
            start = end;
        }
        Ok(())
    }

    #[inline(always)]
    fn encode_word(
        &mut self,
        model: &Model,
        text: &[u8],
        start: usize,
        end: usize,
        output: &mut Output<I>,
    ) -> Result<(), Full> {
        let key = Key::of(text, start, end);
        if let Some((ids, count)) = key.and_then(|key| self.cache.find(key)) {
            return output.push_inline(ids, count);
        }
        let ids = self.merger.merge(model.merges(), &text[start..end]);
        if let Some(key) = key {
            self.cache.insert(key, ids);
        }
        output.extend(ids.iter().map(|&id| I::narrow(id)))
    }
}

/// The documents of a batch with their offsets, once all offsets are known to be good.
fn documents<'text>(text: &'text [u8], offsets: &[u64]) -> Result<Vec<(usize, &'text [u8])>, EncodeError> {
    let document = |pair: &[u64]| {
        let start = usize::try_from(pair[0]).ok()?;
        let end = usize::try_from(pair[1]).ok()?;
        let document = text.get(start..end)?;
        (document.len() <= DOCUMENT_BYTES_MAX).then_some((start, document))
    };
    offsets
        .windows(2)
        .map(|pair| document(pair).ok_or(EncodeError::Offsets))
        .collect()
}

/// The output buffer is full.
struct Full;

struct Output<'buffer, I> {
    buffer: &'buffer mut [MaybeUninit<I>],
    count: usize,
}

impl<I: TokenId> Output<'_, I> {
    #[inline(always)]
    fn push(&mut self, id: I) -> Result<(), Full> {
        self.buffer.get_mut(self.count).ok_or(Full)?.write(id);
        self.count += 1;
        Ok(())
    }

    /// Writes a whole cache entry, of which `count` ids stay: a copy of fixed size is one instruction.
    #[inline(always)]
    fn push_inline(&mut self, ids: I::Inline, count: usize) -> Result<(), Full> {
        let ids = ids.as_ref();
        let Some(places) = self.buffer.get_mut(self.count..self.count + ids.len()) else {
            return self.extend(ids[..count].iter().copied());
        };
        for (place, &id) in places.iter_mut().zip(ids) {
            place.write(id);
        }
        self.count += count;
        Ok(())
    }

    fn extend(&mut self, ids: impl Iterator<Item = I>) -> Result<(), Full> {
        for id in ids {
            self.push(id)?;
        }
        Ok(())
    }
}
