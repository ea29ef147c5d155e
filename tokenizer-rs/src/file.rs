// SPDX-License-Identifier: Apache-2.0
//! The shape of a Hugging Face `tokenizer.json`, as far as this tokenizer reads it.
//!
//! Source: the serialization code of Hugging Face tokenizers 0.23. Unknown fields are refused, not skipped: one could
//! change the ids. Parts that may hold what is not implemented stay raw JSON, so that [`crate::tokenizer_json`] can refuse them
//! by name.

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenizerFile<'json> {
    /// Of the format.
    pub version: Option<String>,
    /// Cutting long inputs.
    pub truncation: Option<Value>,
    /// Filling up short inputs.
    pub padding: Option<Value>,
    /// Tokens that are cut out of the text before anything else.
    #[serde(default)]
    pub added_tokens: Vec<AddedToken>,
    /// Rewriting of the text.
    pub normalizer: Option<Value>,
    /// Cutting the text into words.
    pub pre_tokenizer: Option<Value>,
    /// Adding tokens around the ids.
    pub post_processor: Option<Value>,
    /// From ids to text.
    pub decoder: Option<Value>,
    /// The model proper: [`ModelKind`], then [`BpeModel`].
    #[serde(borrow)]
    pub model: &'json RawValue,
}

/// One special (added) token.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names of the format")]
pub struct AddedToken {
    pub id: u32,
    pub content: String,
    pub single_word: bool,
    pub lstrip: bool,
    pub rstrip: bool,
    pub normalized: bool,
    #[serde(rename = "special")]
    pub _special: bool,
}

/// The type of a model; old files leave it out.
#[derive(Deserialize)]
pub struct ModelKind {
    /// `BPE`, `WordPiece`, `Unigram`, ...
    #[serde(rename = "type")]
    pub name: Option<String>,
}

/// A model of type BPE.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names of the format")]
pub struct BpeModel {
    #[serde(rename = "type")]
    pub _name: Option<String>,
    pub dropout: Option<f64>,
    pub unk_token: Option<String>,
    pub continuing_subword_prefix: Option<String>,
    pub end_of_word_suffix: Option<String>,
    #[serde(default)]
    pub fuse_unk: bool,
    #[serde(default)]
    pub byte_fallback: bool,
    #[serde(default)]
    pub ignore_merges: bool,
    #[serde(deserialize_with = "pairs_of_map")]
    pub vocab: Vec<(String, u32)>,
    pub merges: Vec<Merge>,
}

/// One merge: `["a", "b"]`, or `"a b"` in old files.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum Merge {
    /// Left and right.
    Pair(String, String),
    /// Left and right, a space between them.
    Line(String),
}

/// The pre-tokenizer, post-processor or decoder of that name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names of the format")]
pub struct ByteLevel {
    #[serde(rename = "type")]
    pub _name: String,
    pub add_prefix_space: bool,
    #[serde(rename = "trim_offsets", default)]
    pub _trim_offsets: bool,
    #[serde(default = "yes")]
    pub use_regex: bool,
}

/// The pre-tokenizer of that name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names of the format")]
pub struct Split {
    #[serde(rename = "type")]
    pub _name: String,
    pub pattern: Value,
    pub behavior: String,
    pub invert: bool,
}

fn yes() -> bool {
    true
}

/// Keeps every entry of a map, also two with one key, which the loader has to see to refuse them.
fn pairs_of_map<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(String, u32)>, D::Error> {
    struct Pairs;

    impl<'de> Visitor<'de> for Pairs {
        type Value = Vec<(String, u32)>;

        fn expecting(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
            formatter.write_str("a map from tokens to ids")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut pairs = Vec::new();
            while let Some(pair) = map.next_entry()? {
                pairs.push(pair);
            }
            Ok(pairs)
        }
    }

    deserializer.deserialize_map(Pairs)
}
