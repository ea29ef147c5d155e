// SPDX-License-Identifier: Apache-2.0
//! A loaded model: the tables that encoding and decoding use. [`crate::tokenizer_json`] and [`crate::rank_file`] read
//! the two kinds of files.

use crate::family::Family;
use crate::merge_table::{EDGE, MergeTable};
use crate::special::SpecialTokens;
use std::collections::HashMap;
use std::fmt;
use std::mem::MaybeUninit;

/// Why a file was refused.
#[derive(Debug)]
pub enum LoadError {
    /// It is not well formed.
    Format(String),
    /// It asks for something that is not implemented.
    Unsupported(String),
}

impl fmt::Display for LoadError {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Format(reason) => write!(formatter, "not well formed: {reason}"),
            Self::Unsupported(what) => write!(formatter, "not supported: {what}"),
        }
    }
}

impl std::error::Error for LoadError {}

/// The result of a refusal.
pub(crate) fn unsupported<T>(what: String) -> Result<T, LoadError> {
    Err(LoadError::Unsupported(what))
}

/// The result of reading what is not well formed.
pub(crate) fn malformed<T>(what: String) -> Result<T, LoadError> {
    Err(LoadError::Format(what))
}

/// A name from the file, in quotes, cut to what a message can bear.
pub(crate) fn quoted(name: &str) -> String {
    const LONGEST: usize = 40;
    let mut start: String = name.chars().take(LONGEST).collect();
    if start.len() < name.len() {
        start.push('…');
    }
    format!("{start:?}")
}

/// Refuses more ids than fit the tables.
pub(crate) fn check_size(tokens: usize) -> Result<(), LoadError> {
    if tokens > EDGE as usize {
        return unsupported(format!("{tokens} tokens; at most {EDGE} are supported"));
    }
    Ok(())
}

/// What a loader found in its file.
pub(crate) struct Parts {
    pub family: Family,
    pub byte_ids: [u32; 256],
    /// Left, right and product by rising rank; no product twice, and products rise.
    pub merges: Vec<(u32, u32, u32)>,
    /// The bytes of each id; empty where there is no such id.
    pub token_bytes: Vec<Vec<u8>>,
    /// Ids by the text that the file gives them.
    pub ids: HashMap<Box<[u8]>, u32>,
    /// Special tokens, one set for each pass over the text.
    pub specials: Vec<SpecialTokens>,
}

/// A loaded model: immutable, to be shared by any number of threads.
pub struct Model {
    family: Family,
    merges: MergeTable,
    specials: Vec<SpecialTokens>,
    ids: HashMap<Box<[u8]>, u32>,
    token_bytes: Box<[u8]>,
    token_ends: Box<[u32]>,
}

impl Model {
    pub(crate) fn of_parts(parts: Parts) -> Result<Self, LoadError> {
        let bytes: usize = parts.token_bytes.iter().map(Vec::len).sum();
        if u32::try_from(bytes).is_err() {
            return unsupported(format!("tokens of {bytes} bytes together"));
        }
        let mut end = 0;
        let ends = parts.token_bytes.iter().map(|token| {
            end += token.len() as u32;
            end
        });
        Ok(Self {
            family: parts.family,
            merges: MergeTable::new(parts.byte_ids, &parts.merges),
            specials: parts.specials,
            ids: parts.ids,
            token_ends: ends.collect(),
            token_bytes: parts.token_bytes.concat().into_boxed_slice(),
        })
    }

    /// The largest id and 1; special tokens are included.
    pub fn vocabulary_size(&self) -> usize {
        self.token_ends.len()
    }

    /// Whether every id fits 16 bits.
    pub fn has_narrow_ids(&self) -> bool {
        self.vocabulary_size() <= 1 << 16
    }

    /// The splitting rule.
    pub fn family(&self) -> Family {
        self.family
    }

    /// The id of a token given as the file writes it.
    pub fn token_to_id(&self, token: &[u8]) -> Option<u32> {
        self.ids.get(token).copied()
    }

    /// The bytes that an id stands for.
    pub fn bytes_of(&self, id: u32) -> Option<&[u8]> {
        let id = id as usize;
        let end = *self.token_ends.get(id)? as usize;
        let start = if id == 0 { 0 } else { self.token_ends[id - 1] as usize };
        (start < end).then(|| &self.token_bytes[start..end])
    }

    /// Writes what fits of the text of ids; returns the bytes needed, or the index of an id outside the vocabulary.
    pub fn decode(&self, ids: impl Iterator<Item = u32>, output: &mut [MaybeUninit<u8>]) -> Result<usize, usize> {
        let mut needed = 0;
        for (index, id) in ids.enumerate() {
            let token = self.bytes_of(id).ok_or(index)?;
            if let Some(places) = output.get_mut(needed..needed + token.len()) {
                for (place, &byte) in places.iter_mut().zip(token) {
                    place.write(byte);
                }
            }
            needed += token.len();
        }
        Ok(needed)
    }

    /// Bytes of memory that the model holds, all threads together.
    pub fn bytes(&self) -> usize {
        let names: usize = self.ids.keys().map(|name| name.len()).sum();
        // A hash map keeps at most 7/8 of its places filled, and a control byte for each.
        let places = self.ids.capacity() * 8 / 7 * (size_of::<(Box<[u8]>, u32)>() + 1);
        size_of::<Self>()
            + self.merges.bytes()
            + names
            + places
            + size_of_val(&*self.token_bytes)
            + size_of_val(&*self.token_ends)
    }

    pub(crate) fn merges(&self) -> &MergeTable {
        &self.merges
    }

    pub(crate) fn specials(&self) -> &[SpecialTokens] {
        &self.specials
    }
}
