// SPDX-License-Identifier: Apache-2.0
//! The slow twin of the encoder: the definition, written down as plainly as it can be.
//!
//! It shares no code with the library but the committed Unicode ranges, which `regex_twin` reads. Its outside judge is Hugging Face tokenizers, in the contract tests of the project.

use crate::regex_twin;
use pybench_tokenizer::family::Family;
use std::collections::HashMap;

/// A vocabulary as text to id, and merges as pairs of text in the order of their ranks.
pub struct Twin {
    pub ids: HashMap<String, u32>,
    ranks: HashMap<(String, String), usize>,
    family: Family,
}

impl Twin {
    /// The rule is given, not read: reading it is what the loader is tested for.
    pub fn new(json: &[u8], family: Family) -> Self {
        let file: serde_json::Value = serde_json::from_slice(json).unwrap();
        let vocabulary = file["model"]["vocab"].as_object().unwrap();
        let merges = file["model"]["merges"].as_array().unwrap();
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        Self {
            ids: vocabulary
                .iter()
                .map(|(token, id)| (token.clone(), id.as_u64().unwrap() as u32))
                .collect(),
            ranks: merges
                .iter()
                .enumerate()
                .map(|(rank, pair)| ((text(&pair[0]), text(&pair[1])), rank))
                .collect(),
            family,
        }
    }

    /// The ids of a text without special tokens.
    pub fn encode(&self, text: &str) -> Vec<u32> {
        regex_twin::words(self.family, text)
            .iter()
            .flat_map(|word| self.merge(word))
            .collect()
    }

    fn merge(&self, word: &str) -> Vec<u32> {
        let mut symbols: Vec<String> = word.bytes().map(|byte| byte_character(byte).to_string()).collect();
        loop {
            let rank = |at: usize| self.ranks.get(&(symbols[at].clone(), symbols[at + 1].clone()));
            let best = (0..symbols.len() - 1).filter_map(|at| Some((rank(at)?, at))).min();
            let Some((_, at)) = best else { break };
            let right = symbols.remove(at + 1);
            symbols[at] += &right;
        }
        symbols.iter().map(|symbol| self.ids[symbol]).collect()
    }
}

pub fn byte_character(byte: u8) -> char {
    let is_printable = |byte: &u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    if is_printable(&byte) {
        return char::from(byte);
    }
    let before = (0..byte).filter(|byte| !is_printable(byte)).count();
    char::from_u32(0x100 + before as u32).unwrap()
}

/// A tokenizer.json with all bytes as tokens and the given merges, each a pair of texts in byte-level writing.
pub fn tokenizer_json(merges: &[(&str, &str)]) -> serde_json::Value {
    let mut tokens: Vec<String> = (0..=255).map(|byte| byte_character(byte).to_string()).collect();
    tokens.extend(merges.iter().map(|(left, right)| format!("{left}{right}")));
    let vocabulary: serde_json::Map<_, _> = tokens
        .into_iter()
        .enumerate()
        .map(|(id, token)| (token, id.into()))
        .collect();
    let byte_level = serde_json::json!(
        {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true});
    serde_json::json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": byte_level, "post_processor": null, "decoder": byte_level,
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
            "vocab": vocabulary, "merges": merges,
        },
    })
}

/// splitmix64 (Steele, Lea and Flood 2014): reproducible and small.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}
