// SPDX-License-Identifier: Apache-2.0
//! The loader of Hugging Face `tokenizer.json` files.
//!
//! Whatever this tokenizer does not implement is refused here, by name; a model that loads gives the ids of Hugging
//! Face tokenizers for every text. Two conditions on the merges are what lets an id stand for its rank (see
//! [`crate::merge`]). No two merges have one product, once those that can never happen are left out
//! ([`crate::reachable`]), and ids rise with the rank. Files that Hugging Face's trainer writes keep both, and so do
//! those made from tiktoken's.

use crate::byte_level::{bytes_by_character, read};
use crate::family::Family;
use crate::file::{AddedToken, BpeModel, ByteLevel, Merge, ModelKind, Split, TokenizerFile};
use crate::model::{LoadError, Model, Parts, check_size, malformed, quoted, unsupported};
use crate::reachable::{Ranks, reachable_merges, token_out_of_reach};
use crate::special::SpecialTokens;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{HashMap, HashSet};

impl From<serde_json::Error> for LoadError {
    fn from(error: serde_json::Error) -> Self {
        Self::Format(error.to_string())
    }
}

type Ids = HashMap<Box<[u8]>, u32>;

impl Model {
    /// Loads a `tokenizer.json` from memory.
    pub fn from_json(json: &[u8]) -> Result<Self, LoadError> {
        let file: TokenizerFile = serde_json::from_slice(json)?;
        // The model first: what surrounds one of another kind is no reason of its own.
        let bpe = read_bpe(&file)?;
        let family = read_surroundings(&file)?;
        check_size(bpe.vocab.len() + file.added_tokens.len())?;
        let mut tokens = tokens_by_id(bpe.vocab)?;
        let vocabulary_size = tokens.len();
        let mut ids = ids_by_token(&tokens)?;
        let byte_of = bytes_by_character();
        let byte_ids = byte_ids(&ids, &byte_of)?;
        let triples = merge_triples(&bpe.merges, &ids)?;
        add_tokens(&file.added_tokens, &mut tokens, &mut ids)?;
        let token_bytes = decode_table(&tokens, vocabulary_size, &file.added_tokens, &byte_of)?;
        let ranks = Ranks::new(byte_ids, &triples);
        if bpe.ignore_merges {
            check_every_token_is_reached(&tokens[..vocabulary_size], &file.added_tokens, &ranks, &byte_of)?;
        }
        let merges = reachable_merges(&ranks, triples, &token_bytes)?;
        check_products(&merges, &tokens)?;
        Model::of_parts(Parts {
            family,
            byte_ids,
            merges,
            token_bytes,
            ids,
            specials: special_passes(&file.added_tokens),
        })
    }
}

/// The splitting rule; everything else around the model has to leave text and ids as they are.
fn read_surroundings(file: &TokenizerFile) -> Result<Family, LoadError> {
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
    let family = read_splitting(file.pre_tokenizer.as_ref())?;
    if let Some(part) = &file.post_processor {
        check_post_processor(part)?;
    }
    byte_level("decoder", file.decoder.as_ref())?;
    Ok(family)
}

/// What may come behind the model: `ByteLevel`, which only moves offsets, and a `TemplateProcessing`. The latter sets
/// special tokens around a text, which is for the caller to do: the ids are those of `add_special_tokens=False`.
fn check_post_processor(part: &Value) -> Result<(), LoadError> {
    if is_type(part, "Sequence") {
        let members = part.get("processors").and_then(Value::as_array);
        return members.into_iter().flatten().try_for_each(check_post_processor);
    }
    if !is_type(part, "TemplateProcessing") {
        return byte_level("post_processor", Some(part)).map(|_| ());
    }
    let pieces = part.get("single").and_then(Value::as_array);
    let texts = pieces
        .into_iter()
        .flatten()
        .filter(|piece| piece.get("Sequence").is_some());
    if texts.count() != 1 {
        return unsupported("post_processor TemplateProcessing whose single template has not one Sequence".into());
    }
    Ok(())
}

/// `ByteLevel` with its own rule, or a `Split` by one of the known rules and a `ByteLevel` behind it.
fn read_splitting(part: Option<&Value>) -> Result<Family, LoadError> {
    let members = part
        .and_then(|part| part.get("pretokenizers"))
        .and_then(Value::as_array);
    let (family, last) = match (part, members.map(Vec::as_slice)) {
        (Some(part), Some([split, last])) if is_type(part, "Sequence") && is_type(split, "Split") => {
            (Some(read_split(split)?), Some(last))
        }
        _ => (None, part),
    };
    let byte_level = byte_level("pre_tokenizer", last)?;
    if byte_level.use_regex != family.is_none() {
        return unsupported(format!(
            "pre_tokenizer ByteLevel with use_regex={}; only true is supported, and false behind a Split",
            byte_level.use_regex
        ));
    }
    if byte_level.add_prefix_space {
        return unsupported("pre_tokenizer ByteLevel with add_prefix_space=true; only false is supported".into());
    }
    Ok(family.unwrap_or(Family::Gpt2))
}

fn read_split(value: &Value) -> Result<Family, LoadError> {
    let split =
        Split::deserialize(value).map_err(|error| LoadError::Format(format!("pre_tokenizer Split: {error}")))?;
    // The rules leave nothing between their matches, so that to isolate them and to keep only them are the same.
    if !matches!(
        (split.behavior.as_str(), split.invert),
        ("Isolated", false) | ("Removed", true)
    ) {
        return unsupported(format!(
            "pre_tokenizer Split with behavior {} and invert={}; only \"Isolated\" is supported, and \"Removed\" inverted",
            quoted(&split.behavior),
            split.invert
        ));
    }
    let regex = split.pattern.get("Regex").and_then(Value::as_str);
    match regex.and_then(Family::of_regex) {
        Some(family) => Ok(family),
        None => unsupported(format!(
            "pre_tokenizer Split by {}; only the regular expressions of GPT-2, Llama 3 and o200k are supported",
            quoted(regex.unwrap_or("a plain string"))
        )),
    }
}

fn is_type(part: &Value, name: &str) -> bool {
    part.get("type").and_then(Value::as_str) == Some(name)
}

fn byte_level(part: &str, value: Option<&Value>) -> Result<ByteLevel, LoadError> {
    match value {
        Some(value) if is_type(value, "ByteLevel") => {
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

fn ids_by_token(tokens: &[String]) -> Result<Ids, LoadError> {
    let mut ids = Ids::with_capacity(tokens.len());
    for (token, id) in tokens.iter().zip(0..) {
        if ids.insert(token.as_bytes().into(), id).is_some() {
            return malformed(format!("the vocabulary holds {} twice", quoted(token)));
        }
    }
    Ok(ids)
}

fn byte_ids(ids: &Ids, byte_of: &HashMap<char, u8>) -> Result<[u32; 256], LoadError> {
    let mut byte_ids = [0; 256];
    for (character, &byte) in byte_of {
        match ids.get(character.to_string().as_bytes()) {
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
fn merge_triples(merges: &[Merge], ids: &Ids) -> Result<Vec<(u32, u32, u32)>, LoadError> {
    let triple = |(rank, merge): (usize, &Merge)| {
        let (left, right) = match merge {
            Merge::Pair(left, right) => (left.as_str(), right.as_str()),
            Merge::Line(line) => match line.split_once(' ') {
                Some((left, right)) if !right.contains(' ') => (left, right),
                _ => return malformed(format!("merge {rank} is {}, not two tokens", quoted(line))),
            },
        };
        let id_of = |token: &str| match ids.get(token.as_bytes()) {
            Some(&id) => Ok(id),
            None => malformed(format!(
                "merge {rank} needs {}, which is not in the vocabulary",
                quoted(token)
            )),
        };
        let product = id_of(&format!("{left}{right}"))?;
        Ok((id_of(left)?, id_of(right)?, product))
    };
    merges.iter().enumerate().map(triple).collect()
}

/// What lets an id stand for the rank of its merge; that no two merges have one product is [`reachable_merges`]' doing.
fn check_products(merges: &[(u32, u32, u32)], tokens: &[String]) -> Result<(), LoadError> {
    match merges.windows(2).find(|pair| pair[0].2 > pair[1].2) {
        Some(pair) => unsupported(format!(
            "ids that do not rise with the rank of their merge (at the merge that makes {})",
            quoted(&tokens[pair[1].2 as usize])
        )),
        None => Ok(()),
    }
}

/// `ignore_merges` makes a word that is a token that token; where the merges do so too, it changes nothing.
fn check_every_token_is_reached(
    tokens: &[String],
    added: &[AddedToken],
    ranks: &Ranks,
    byte_of: &HashMap<char, u8>,
) -> Result<(), LoadError> {
    // Added tokens are cut out of the text before there are words.
    let added: HashSet<&str> = added.iter().map(|token| token.content.as_str()).collect();
    let is_word = |token: &&String| !added.contains(token.as_str());
    let words = tokens.iter().map(|token| Some(token).filter(is_word));
    match token_out_of_reach(ranks, words.map(|token| read(token?, byte_of)))? {
        Some(id) => unsupported(format!(
            "model BPE with ignore_merges and the token {}, which the merges do not make",
            quoted(&tokens[id])
        )),
        None => Ok(()),
    }
}

/// Gives the special tokens their ids: that of the vocabulary, or the next free one. Hugging Face does the same and
/// disregards the id in the file; a file that says otherwise is refused, because someone relies on what it says.
fn add_tokens(added: &[AddedToken], tokens: &mut Vec<String>, ids: &mut Ids) -> Result<(), LoadError> {
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
        let id = *ids.entry(token.content.as_bytes().into()).or_insert_with(|| {
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

/// The bytes of each token. Added tokens that the vocabulary does not hold, or that are not written in byte-level
/// characters, stand for their own text.
fn decode_table(
    tokens: &[String],
    vocabulary_size: usize,
    added: &[AddedToken],
    byte_of: &HashMap<char, u8>,
) -> Result<Vec<Vec<u8>>, LoadError> {
    let added: HashSet<usize> = added.iter().map(|token| token.id as usize).collect();
    let decode = |(id, token): (usize, &String)| match read(token, byte_of).filter(|_| id < vocabulary_size) {
        Some(bytes) => Ok(bytes),
        None if added.contains(&id) => Ok(token.as_bytes().to_vec()),
        None => unsupported(format!("token {} is not byte-level", quoted(token))),
    };
    tokens.iter().enumerate().map(decode).collect()
}
