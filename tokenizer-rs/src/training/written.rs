// SPDX-License-Identifier: Apache-2.0
//! The `tokenizer.json` of a trained vocabulary, byte for byte as Hugging Face tokenizers 0.23 saves it.

use crate::byte_level::{byte_characters, written};
use crate::family::{Family, LLAMA3_REGEX, O200K_REGEX};
use crate::training::merging::Vocabulary;
use serde::{Serialize, Serializer};

/// The file.
pub fn tokenizer_json(family: Family, vocabulary: &Vocabulary, specials: &[&str]) -> Vec<u8> {
    let characters = byte_characters();
    let text_of = |id: u32| match specials.get(id as usize) {
        Some(special) => (*special).to_owned(),
        None => written(vocabulary.bytes_of(id), &characters),
    };
    let file = File {
        version: "1.0",
        truncation: (),
        padding: (),
        added_tokens: added_tokens(specials),
        normalizer: (),
        pre_tokenizer: pre_tokenizer(family),
        post_processor: (),
        decoder: ByteLevel::new(true, true),
        model: Model {
            kind: "BPE",
            dropout: (),
            unk_token: (),
            continuing_subword_prefix: (),
            end_of_word_suffix: (),
            fuse_unk: false,
            byte_fallback: false,
            ignore_merges: false,
            vocab: Vocab((0..vocabulary.size() as u32).map(text_of).collect()),
            merges: vocabulary
                .merges()
                .iter()
                .map(|&(left, right)| (text_of(left), text_of(right)))
                .collect(),
        },
    };
    serde_json::to_vec_pretty(&file).expect("text and numbers only, into memory: nothing of it can fail")
}

fn added_tokens<'call>(specials: &[&'call str]) -> Vec<AddedToken<'call>> {
    let token = |(&content, id)| AddedToken {
        id,
        content,
        single_word: false,
        lstrip: false,
        rstrip: false,
        normalized: false,
        special: true,
    };
    specials.iter().zip(0..).map(token).collect()
}

fn pre_tokenizer(family: Family) -> PreTokenizer {
    let regex = match family {
        Family::Gpt2 => return PreTokenizer::Alone(ByteLevel::new(false, true)),
        Family::O200k => O200K_REGEX,
        // cl100k is refused before there is a vocabulary.
        Family::Llama3 | Family::Cl100k => LLAMA3_REGEX,
    };
    let split = Split {
        kind: "Split",
        pattern: Pattern { regex },
        behavior: "Isolated",
        invert: false,
    };
    PreTokenizer::Behind {
        kind: "Sequence",
        pretokenizers: (split, ByteLevel::new(false, false)),
    }
}

#[derive(Serialize)]
struct File<'call> {
    version: &'static str,
    truncation: (),
    padding: (),
    added_tokens: Vec<AddedToken<'call>>,
    normalizer: (),
    pre_tokenizer: PreTokenizer,
    post_processor: (),
    decoder: ByteLevel,
    model: Model,
}

#[derive(Serialize)]
struct AddedToken<'call> {
    id: u32,
    content: &'call str,
    single_word: bool,
    lstrip: bool,
    rstrip: bool,
    normalized: bool,
    special: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum PreTokenizer {
    Alone(ByteLevel),
    Behind {
        #[serde(rename = "type")]
        kind: &'static str,
        pretokenizers: (Split, ByteLevel),
    },
}

#[derive(Serialize)]
struct Split {
    #[serde(rename = "type")]
    kind: &'static str,
    pattern: Pattern,
    behavior: &'static str,
    invert: bool,
}

#[derive(Serialize)]
struct Pattern {
    #[serde(rename = "Regex")]
    regex: &'static str,
}

#[derive(Serialize)]
struct ByteLevel {
    #[serde(rename = "type")]
    kind: &'static str,
    add_prefix_space: bool,
    trim_offsets: bool,
    use_regex: bool,
}

impl ByteLevel {
    fn new(add_prefix_space: bool, use_regex: bool) -> Self {
        Self {
            kind: "ByteLevel",
            add_prefix_space,
            trim_offsets: true,
            use_regex,
        }
    }
}

#[derive(Serialize)]
struct Model {
    #[serde(rename = "type")]
    kind: &'static str,
    dropout: (),
    unk_token: (),
    continuing_subword_prefix: (),
    end_of_word_suffix: (),
    fuse_unk: bool,
    byte_fallback: bool,
    ignore_merges: bool,
    vocab: Vocab,
    merges: Vec<(String, String)>,
}

/// Tokens by id, as a map to their ids.
struct Vocab(Vec<String>);

impl Serialize for Vocab {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().zip(0_u32..))
    }
}
