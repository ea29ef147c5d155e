// SPDX-License-Identifier: Apache-2.0
//! The loader: from a `tokenizer.json` to the tables that encoding uses.
//!
//! Whatever this tokenizer does not implement is refused here, by name; a model that loads gives the ids of Hugging
//! Face tokenizers for every text. Two conditions on the merges are what lets an id stand for its rank (see
//! [`crate::merge`]): no two merges with one product, and ids that rise with the rank. Files that Hugging Face's
//! trainer writes keep both.

use crate::file::{AddedToken, BpeModel, ByteLevel, Merge, ModelKind, TokenizerFile};
use crate::merge::{ID_BITS, MergeTable};
use crate::special::SpecialTokens;
use crate::unicode::ClassTable;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// Why a file was refused.
#[derive(Debug)]
pub enum LoadError {
    /// It is not a well-formed `tokenizer.json`.
    Format(String),
    /// It asks for something that is not implemented.
    Unsupported(String),
}

impl From<serde_json::Error> for LoadError {
    fn from(error: serde_json::Error) -> Self {
        Self::Format(error.to_string())
    }
}

/// A loaded model: immutable, to be shared by any number of threads.
pub struct Model {
    merges: MergeTable,
    classes: ClassTable,
    specials: Vec<SpecialTokens>,
    ids: HashMap<Box<str>, u32>,
    token_bytes: Vec<u8>,
    token_ends: Vec<usize>,
}

impl Model {
    /// Loads a `tokenizer.json` from memory.
    pub fn from_json(json: &[u8]) -> Result<Self, LoadError> {
        let file: TokenizerFile = serde_json::from_slice(json)?;
        check_surroundings(&file)?;
        let bpe = read_bpe(&file)?;
        let size_at_most = bpe.vocab.len() + file.added_tokens.len();
        if size_at_most > 1 << ID_BITS {
            return unsupported(format!("{size_at_most} tokens; at most {} are supported", 1 << ID_BITS));
        }
        let mut tokens = tokens_by_id(bpe.vocab)?;
        let vocabulary_size = tokens.len();
        let mut ids = ids_by_token(&tokens)?;
        let byte_of = bytes_by_character();
        let merges = MergeTable::new(byte_ids(&ids, &byte_of)?, &merge_triples(&bpe.merges, &ids)?);
        add_tokens(&file.added_tokens, &mut tokens, &mut ids)?;
        let (token_bytes, token_ends) = decode_table(&tokens, vocabulary_size, &file.added_tokens, &byte_of)?;
        Ok(Self {
            merges,
            classes: ClassTable::new(),
            specials: special_passes(&file.added_tokens),
            ids,
            token_bytes,
            token_ends,
        })
    }

    /// Number of ids, special tokens included.
    pub fn vocabulary_size(&self) -> usize {
        self.token_ends.len()
    }

    /// Whether every id fits 16 bits.
    pub fn has_narrow_ids(&self) -> bool {
        self.vocabulary_size() <= 1 << 16
    }

    /// The id of a token given as the file writes it.
    pub fn token_to_id(&self, token: &str) -> Option<u32> {
        self.ids.get(token).copied()
    }

    /// The bytes that an id stands for.
    pub fn bytes_of(&self, id: u32) -> Option<&[u8]> {
        let id = id as usize;
        let end = *self.token_ends.get(id)?;
        let start = if id == 0 { 0 } else { self.token_ends[id - 1] };
        Some(&self.token_bytes[start..end])
    }

    pub(crate) fn merges(&self) -> &MergeTable {
        &self.merges
    }

    pub(crate) fn classes(&self) -> &ClassTable {
        &self.classes
    }

    pub(crate) fn specials(&self) -> &[SpecialTokens] {
        &self.specials
    }
}

fn unsupported<T>(what: String) -> Result<T, LoadError> {
    Err(LoadError::Unsupported(what))
}

fn malformed<T>(what: String) -> Result<T, LoadError> {
    Err(LoadError::Format(what))
}

/// Everything around the model has to leave text and ids as they are.
fn check_surroundings(file: &TokenizerFile) -> Result<(), LoadError> {
    if let Some(version) = file.version.as_deref().filter(|&version| version != "1.0") {
        return unsupported(format!("format version {}; only 1.0 is supported", quoted(version)));
    }
    for (name, value) in [("truncation", &file.truncation), ("padding", &file.padding)] {
        if value.is_some() {
            return unsupported(format!("{name}: the file asks for it; only null is supported"));
        }
    }
    if let Some(normalizer) = &file.normalizer {
        return unsupported(format!("normalizer {}; only null is supported", type_of(normalizer)));
    }
    let splitting = byte_level("pre_tokenizer", file.pre_tokenizer.as_ref())?;
    if !splitting.use_regex {
        return unsupported("pre_tokenizer ByteLevel with use_regex=false; only true is supported".into());
    }
    if splitting.add_prefix_space {
        return unsupported("pre_tokenizer ByteLevel with add_prefix_space=true; only false is supported".into());
    }
    if file.post_processor.is_some() {
        // It only moves offsets, which are not kept here.
        byte_level("post_processor", file.post_processor.as_ref())?;
    }
    byte_level("decoder", file.decoder.as_ref()).map(drop)
}

fn byte_level(part: &str, value: Option<&Value>) -> Result<ByteLevel, LoadError> {
    match value {
        Some(value) if value.get("type") == Some(&Value::from("ByteLevel")) => {
            ByteLevel::deserialize(value).map_err(|error| LoadError::Format(format!("{part} ByteLevel: {error}")))
        }
        Some(value) => unsupported(format!("{part} {}; only ByteLevel is supported", type_of(value))),
        None => unsupported(format!("{part} null; only ByteLevel is supported")),
    }
}

/// The type that a part of the file names, with those of its members if it is a sequence.
fn type_of(part: &Value) -> String {
    let name = part
        .get("type")
        .and_then(Value::as_str)
        .map_or_else(|| "without a type".to_owned(), quoted);
    let members = ["pretokenizers", "normalizers", "processors", "decoders"]
        .iter()
        .find_map(|&key| part.get(key));
    match members.and_then(Value::as_array) {
        Some(members) => {
            let names: Vec<_> = members
                .iter()
                .map(|member| member["type"].as_str().unwrap_or("?"))
                .collect();
            format!("{name} of {}", quoted(&names.join(", ")))
        }
        None => name,
    }
}

fn read_bpe(file: &TokenizerFile) -> Result<BpeModel, LoadError> {
    let kind: ModelKind = serde_json::from_str(file.model.get()).map_err(in_model)?;
    if let Some(name) = kind.name.filter(|name| name != "BPE") {
        return unsupported(format!("model {}; only BPE is supported", quoted(&name)));
    }
    let bpe: BpeModel = serde_json::from_str(file.model.get()).map_err(in_model)?;
    let is_given = |text: &Option<String>| text.as_deref().is_some_and(|text| !text.is_empty());
    let refusals = [
        (bpe.dropout.is_some_and(|dropout| dropout != 0.0), "dropout"),
        (bpe.unk_token.is_some(), "unk_token"),
        (is_given(&bpe.continuing_subword_prefix), "continuing_subword_prefix"),
        (is_given(&bpe.end_of_word_suffix), "end_of_word_suffix"),
        (bpe.fuse_unk, "fuse_unk"),
        (bpe.byte_fallback, "byte_fallback"),
        (bpe.ignore_merges, "ignore_merges"),
    ];
    match refusals.iter().find(|(asked, _)| *asked) {
        Some((_, name)) => unsupported(format!(
            "model BPE with {name}; only byte-level BPE without it is supported"
        )),
        None => Ok(bpe),
    }
}

/// Line and column count from the beginning of the model, whose parser never saw the rest.
fn in_model(error: serde_json::Error) -> LoadError {
    LoadError::Format(format!("in \"model\": {error} of it"))
}

fn tokens_by_id(mut vocabulary: Vec<(String, u32)>) -> Result<Vec<String>, LoadError> {
    vocabulary.sort_by_key(|&(_, id)| id);
    for (expected, (token, id)) in (0_u32..).zip(&vocabulary) {
        if *id < expected {
            return malformed(format!("the vocabulary gives id {id} twice, once to {}", quoted(token)));
        }
        if *id > expected {
            return unsupported(format!("a vocabulary with holes: no token has id {expected}"));
        }
    }
    Ok(vocabulary.into_iter().map(|(token, _)| token).collect())
}

fn ids_by_token(tokens: &[String]) -> Result<HashMap<Box<str>, u32>, LoadError> {
    let mut ids = HashMap::with_capacity(tokens.len());
    for (token, id) in tokens.iter().zip(0..) {
        if ids.insert(token.as_str().into(), id).is_some() {
            return malformed(format!("the vocabulary holds {} twice", quoted(token)));
        }
    }
    Ok(ids)
}

/// Byte-level BPE writes each byte as a character: printable ones as themselves, the others from U+0100 on.
/// Source: `bytes_to_unicode` of GPT-2's `encoder.py`.
fn bytes_by_character() -> HashMap<char, u8> {
    let mut shifted = 0x100..;
    let mut character_of = |byte: u8| match byte {
        b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF => Some(char::from(byte)),
        _ => shifted.next().and_then(char::from_u32),
    };
    (0..=255).filter_map(|byte| Some((character_of(byte)?, byte))).collect()
}

fn byte_ids(ids: &HashMap<Box<str>, u32>, byte_of: &HashMap<char, u8>) -> Result<[u32; 256], LoadError> {
    let mut byte_ids = [0; 256];
    for (character, &byte) in byte_of {
        match ids.get(character.to_string().as_str()) {
            Some(&id) => byte_ids[usize::from(byte)] = id,
            None => {
                return unsupported(format!(
                    "a vocabulary without a token for byte 0x{byte:02x} ({character:?})"
                ));
            }
        }
    }
    Ok(byte_ids)
}

/// Left, right and product of each merge, in the order of their ranks.
fn merge_triples(merges: &[Merge], ids: &HashMap<Box<str>, u32>) -> Result<Vec<(u32, u32, u32)>, LoadError> {
    let mut triples: Vec<(u32, u32, u32)> = Vec::with_capacity(merges.len());
    let mut made = vec![false; ids.len()];
    for (rank, merge) in merges.iter().enumerate() {
        let (left, right) = match merge {
            Merge::Pair(left, right) => (left.as_str(), right.as_str()),
            Merge::Line(line) => match line.split_once(' ') {
                Some((left, right)) if !right.contains(' ') => (left, right),
                _ => return malformed(format!("merge {rank} is {}, not two tokens", quoted(line))),
            },
        };
        let id_of = |token: &str| match ids.get(token) {
            Some(&id) => Ok(id),
            None => malformed(format!(
                "merge {rank} needs {}, which is not in the vocabulary",
                quoted(token)
            )),
        };
        let product = id_of(&format!("{left}{right}"))?;
        if std::mem::replace(&mut made[product as usize], true) {
            return unsupported(format!(
                "two merges with the product {}",
                quoted(&format!("{left}{right}"))
            ));
        }
        if triples.last().is_some_and(|&(_, _, before)| before > product) {
            return unsupported(format!(
                "ids that do not rise with the rank of their merge (at merge {rank})"
            ));
        }
        triples.push((id_of(left)?, id_of(right)?, product));
    }
    Ok(triples)
}

/// Gives the special tokens their ids: that of the vocabulary, or the next free one. Hugging Face does the same and
/// disregards the id in the file; a file that says otherwise is refused, because someone relies on what it says.
fn add_tokens(
    added: &[AddedToken],
    tokens: &mut Vec<String>,
    ids: &mut HashMap<Box<str>, u32>,
) -> Result<(), LoadError> {
    let mut seen = HashSet::new();
    for token in added {
        let name = quoted(&token.content);
        if token.content.is_empty() {
            return malformed("an added token is empty".into());
        }
        if !seen.insert(token.content.as_str()) {
            return malformed(format!("{name} is added twice"));
        }
        let flags = [
            ("single_word", token.single_word),
            ("lstrip", token.lstrip),
            ("rstrip", token.rstrip),
        ];
        if let Some((flag, _)) = flags.iter().find(|(_, asked)| *asked) {
            return unsupported(format!("added token {name} with {flag}"));
        }
        let id = *ids.entry(token.content.as_str().into()).or_insert_with(|| {
            tokens.push(token.content.clone());
            tokens.len() as u32 - 1
        });
        if id != token.id {
            return unsupported(format!("added token {name} with id {} where {id} is next", token.id));
        }
    }
    Ok(())
}

/// Hugging Face looks for tokens that are not to be normalized first, then for the others in what lies between.
fn special_passes(added: &[AddedToken]) -> Vec<SpecialTokens> {
    let pass = |normalized: bool| {
        let tokens = added.iter().filter(|token| token.normalized == normalized);
        tokens
            .map(|token| (token.content.as_str().into(), token.id))
            .collect::<Vec<_>>()
    };
    [pass(false), pass(true)]
        .into_iter()
        .filter(|tokens| !tokens.is_empty())
        .map(SpecialTokens::new)
        .collect()
}

/// The bytes of all tokens end to end, and where each ends. Added tokens that the vocabulary does not hold, or that are
/// not written in byte-level characters, stand for their own text.
fn decode_table(
    tokens: &[String],
    vocabulary_size: usize,
    added: &[AddedToken],
    byte_of: &HashMap<char, u8>,
) -> Result<(Vec<u8>, Vec<usize>), LoadError> {
    let added: HashSet<usize> = added.iter().map(|token| token.id as usize).collect();
    let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(tokens.len()));
    for (id, token) in tokens.iter().enumerate() {
        let written: Option<Vec<u8>> = token
            .chars()
            .map(|character| byte_of.get(&character).copied())
            .collect();
        match written.filter(|_| id < vocabulary_size) {
            Some(written) => bytes.extend(written),
            None if added.contains(&id) => bytes.extend(token.bytes()),
            None => return unsupported(format!("token {} is not byte-level", quoted(token))),
        }
        ends.push(bytes.len());
    }
    Ok((bytes, ends))
}

/// A name from the file, in quotes, cut to what a message can bear.
fn quoted(name: &str) -> String {
    const LONGEST: usize = 40;
    let mut start: String = name.chars().take(LONGEST).collect();
    if start.len() < name.len() {
        start.push('…');
    }
    format!("{start:?}")
}
