// SPDX-License-Identifier: Apache-2.0
//! What the loader refuses, each by name, and that nothing malformed gets further than an error.

use crate::twin::tokenizer_json;
use pybench_tokenizer::family::{Family, LLAMA3_REGEX};
use pybench_tokenizer::training::FeedError;
use pybench_tokenizer::{EncodeError, LoadError, Model};
use serde_json::{Value, json};

/// The file that every case here changes in one place; it loads.
fn good() -> Value {
    let mut file = tokenizer_json(&[("a", "b"), ("ab", "c")]);
    file["added_tokens"] = json!([added_token(258, "<|endoftext|>")]);
    file
}

fn added_token(id: u32, content: &str) -> Value {
    json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
           "normalized": false, "special": true})
}

fn unsupported(file: &Value) -> String {
    match Model::from_json(file.to_string().as_bytes()) {
        Err(LoadError::Unsupported(message)) => message,
        Err(LoadError::Format(message)) => panic!("a format error instead: {message}"),
        Ok(_) => panic!("it loads"),
    }
}

fn malformed(file: &Value) -> String {
    match Model::from_json(file.to_string().as_bytes()) {
        Err(LoadError::Format(message)) => message,
        Err(LoadError::Unsupported(message)) => panic!("unsupported instead: {message}"),
        Ok(_) => panic!("it loads"),
    }
}

fn with(pointer: &str, value: Value) -> Value {
    let mut file = good();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match file.pointer_mut(parent).unwrap() {
        Value::Array(items) => items[key.parse::<usize>().unwrap()] = value,
        parent => parent[key] = value,
    }
    file
}

#[test]
fn the_good_file_loads() {
    let model = Model::from_json(good().to_string().as_bytes()).unwrap();
    assert_eq!(model.vocabulary_size(), 259);
    assert_eq!(model.token_to_id(b"<|endoftext|>"), Some(258));
    assert_eq!(model.bytes_of(257), Some(&b"abc"[..]));
    assert_eq!(model.bytes_of(259), None);
}

#[test]
fn older_spellings_of_the_same_model_load() {
    let mut file = with("/model/merges", json!(["a b", "ab c"]));
    file["model"]["continuing_subword_prefix"] = "".into();
    file["model"]["end_of_word_suffix"] = "".into();
    for name in ["type", "byte_fallback", "ignore_merges", "dropout"] {
        file["model"].as_object_mut().unwrap().remove(name);
    }
    file["pre_tokenizer"].as_object_mut().unwrap().remove("use_regex");
    file["post_processor"] = file["pre_tokenizer"].clone();
    assert!(Model::from_json(file.to_string().as_bytes()).is_ok());
}

#[test]
fn every_part_that_is_not_implemented_is_named() {
    let digits = json!({"type": "Sequence", "pretokenizers": [{"type": "Digits"}, {"type": "ByteLevel"}]});
    let sequence = json!({"Sequence": {"id": "A", "type_id": 0}});
    let split = |pattern: Value, behavior: &str, invert: bool, use_regex: bool| {
        json!({"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert},
            {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": use_regex}]})
    };
    let llama3 = || json!({"Regex": LLAMA3_REGEX});
    let other = json!({"Regex": LLAMA3_REGEX.replace("{1,3}", "")});
    let prefix = json!({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true});
    let no_regex = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false});
    for (pointer, value, name) in [
        ("/version", json!("2.0"), "2.0"),
        ("/truncation", json!({"max_length": 5}), "truncation"),
        ("/padding", json!({}), "padding"),
        ("/normalizer", json!({"type": "NFC"}), "normalizer \"NFC\""),
        (
            "/pre_tokenizer",
            json!({"type": "Metaspace"}),
            "pre_tokenizer \"Metaspace\"",
        ),
        (
            "/pre_tokenizer",
            digits,
            "pre_tokenizer \"Sequence\" of \"Digits, ByteLevel\"",
        ),
        (
            "/pre_tokenizer",
            split(other, "Isolated", false, false),
            "Split by \"(?i:'s",
        ),
        (
            "/pre_tokenizer",
            split(json!({"String": " "}), "Isolated", false, false),
            "a plain string",
        ),
        (
            "/pre_tokenizer",
            split(llama3(), "Isolated", true, false),
            "invert=true",
        ),
        (
            "/pre_tokenizer",
            split(llama3(), "MergedWithNext", false, false),
            "MergedWithNext",
        ),
        (
            "/pre_tokenizer",
            split(llama3(), "Isolated", false, true),
            "use_regex=true",
        ),
        ("/pre_tokenizer", json!(null), "pre_tokenizer null"),
        ("/pre_tokenizer", prefix, "add_prefix_space"),
        ("/pre_tokenizer", no_regex, "use_regex"),
        (
            "/post_processor",
            json!({"type": "TemplateProcessing", "single": [sequence, sequence]}),
            "post_processor TemplateProcessing",
        ),
        (
            "/post_processor",
            json!({"type": "Sequence", "processors": [{"type": "BertProcessing"}]}),
            "post_processor \"BertProcessing\"",
        ),
        ("/decoder", json!({"type": "WordPiece"}), "decoder \"WordPiece\""),
        ("/model/type", json!("Unigram"), "model \"Unigram\""),
        ("/model/dropout", json!(0.1), "dropout"),
        ("/model/unk_token", json!("<unk>"), "unk_token"),
        (
            "/model/continuing_subword_prefix",
            json!("##"),
            "continuing_subword_prefix",
        ),
        ("/model/end_of_word_suffix", json!("</w>"), "end_of_word_suffix"),
        ("/model/fuse_unk", json!(true), "fuse_unk"),
        ("/model/byte_fallback", json!(true), "byte_fallback"),
        ("/added_tokens/0/single_word", json!(true), "single_word"),
        ("/added_tokens/0/lstrip", json!(true), "lstrip"),
        ("/added_tokens/0/rstrip", json!(true), "rstrip"),
        ("/added_tokens/0/id", json!(300), "258 is next"),
        ("/model/vocab/abcd", json!(400), "no token has id 258"),
    ] {
        let message = unsupported(&with(pointer, value));
        assert!(message.contains(name), "{pointer}: {message}");
    }
}

#[test]
fn the_kind_of_another_model_is_named_whatever_surrounds_it() {
    let mut file = with("/pre_tokenizer", json!({"type": "Metaspace"}));
    file["model"] = json!({"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["a", -1.5]]});
    assert!(unsupported(&file).contains("model \"Unigram\""));
}

#[test]
fn a_token_that_is_not_byte_level_is_named() {
    let mut file = with("/model/vocab/中", json!(258));
    file["added_tokens"] = json!([]);
    assert!(unsupported(&file).contains("not byte-level"));
}

#[test]
fn merges_that_an_id_cannot_stand_for_are_refused() {
    let twice = with("/model/merges", json!([["a", "b"], ["ab", "c"], ["a", "b"]]));
    assert!(unsupported(&twice).contains("at the merge that makes \"ab\""));
    let mut falling = tokenizer_json(&[("a", "b"), ("b", "c")]);
    falling["model"]["merges"] = json!([["b", "c"], ["a", "b"]]);
    assert!(unsupported(&falling).contains("at the merge that makes \"ab\""));
}

#[test]
fn ignore_merges_is_refused_where_it_would_change_an_id() {
    let mut file = tokenizer_json(&[("a", "b"), ("ab", "c")]);
    file["model"]["ignore_merges"] = true.into();
    assert!(Model::from_json(file.to_string().as_bytes()).is_ok());
    file["model"]["vocab"]["xyz"] = 258.into();
    assert!(unsupported(&file).contains("ignore_merges and the token \"xyz\""));
}

#[test]
fn a_token_too_long_to_be_checked_is_named() {
    let mut file = tokenizer_json(&[("a", "b")]);
    file["model"]["ignore_merges"] = true.into();
    file["model"]["vocab"]["a".repeat(5_000)] = 257.into();
    assert!(unsupported(&file).contains("of 5000 bytes"));
}

pub fn ranks_of(tokens: &[&str]) -> Vec<u8> {
    let bytes = (0..=255).map(|byte: u8| (base64(&[byte]), usize::from(byte)));
    let more = tokens.iter().map(|token| base64(token.as_bytes())).zip(256..);
    bytes
        .chain(more)
        .map(|(token, rank)| format!("{token} {rank}\n"))
        .collect::<String>()
        .into_bytes()
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let quad = |chunk: &[u8]| {
        let bits = chunk.iter().fold(0_u32, |bits, &byte| bits << 8 | u32::from(byte)) << (8 * (3 - chunk.len()));
        let digit = |place: usize| match place <= chunk.len() {
            true => char::from(DIGITS[(bits >> (18 - 6 * place)) as usize & 63]),
            false => '=',
        };
        (0..4).map(digit).collect::<String>()
    };
    bytes.chunks(3).map(quad).collect()
}

#[test]
fn a_rank_file_loads_with_the_special_tokens_that_are_given() {
    let file = ranks_of(&["ab", "abc"]);
    let model = Model::from_ranks(&file, Family::Cl100k, &[("<|end|>", 260)]).unwrap();
    assert_eq!(
        (model.vocabulary_size(), model.token_to_id(b"<|end|>")),
        (261, Some(260))
    );
    assert_eq!((model.bytes_of(257), model.bytes_of(258)), (Some(&b"abc"[..]), None));
}

#[test]
fn what_is_wrong_in_a_rank_file_is_named() {
    let load = |file: &[u8], specials: &[(&str, u32)]| match Model::from_ranks(file, Family::Cl100k, specials) {
        Err(LoadError::Format(message) | LoadError::Unsupported(message)) => message,
        Ok(_) => "it loads".into(),
    };
    let line = |text: &str| [ranks_of(&["ab"]), text.as_bytes().to_vec()].concat();
    for (file, specials, name) in [
        (line("nonsense"), &[][..], "line 258"),
        (line("!!!! 257"), &[], "line 258"),
        (line("YWJj -1"), &[], "line 258"),
        (line("YWJj 256"), &[], "rank 256 a second time"),
        (line("YWJj 300"), &[], "no token has rank 257"),
        (line("YWI= 257"), &[], "make \"ab\" (rank 257)"),
        (ranks_of(&["abcd"]), &[], "not self-consistent"),
        (line("YQ== 257"), &[], "two ranks"),
        (ranks_of(&[])[7..].to_vec(), &[], "rank 0"),
        (line(""), &[("", 300)], "empty"),
        (line(""), &[("<x>", 256)], "with id 256"),
        (line(""), &[("ab", 300)], "\"ab\" is a token already"),
        (line(""), &[("<x>", u32::MAX)], "at most"),
        (Vec::new(), &[], "byte 0x00"),
    ] {
        let message = load(&file, specials);
        assert!(message.contains(name), "{name}: {message}");
    }
}

#[test]
fn a_missing_byte_is_named() {
    let mut file = tokenizer_json(&[]);
    let vocabulary = file["model"]["vocab"].as_object_mut().unwrap();
    vocabulary.remove("q");
    *vocabulary = vocabulary
        .keys()
        .cloned()
        .zip(0..)
        .map(|(token, id)| (token, id.into()))
        .collect();
    assert!(unsupported(&file).contains("0x71 ('q')"));
}

#[test]
fn contradictions_in_the_file_are_format_errors() {
    for (pointer, value, name) in [
        ("/model/vocab/abcd", json!(5), "id 5 twice"),
        ("/model/vocab/a", json!(-1), "-1"),
        ("/model/vocab", json!([]), "map"),
        ("/model/merges", json!([["a", "x1"]]), "\"ax1\""),
        ("/model/merges", json!(["a b c"]), "not two tokens"),
        ("/model/merges", json!(["ab"]), "not two tokens"),
        ("/model/merges", json!([["a"]]), "model"),
        ("/added_tokens/0/content", json!(""), "empty"),
        (
            "/added_tokens",
            json!([added_token(258, "<x>"), added_token(258, "<x>")]),
            "\"<x>\" is added twice",
        ),
        ("/added_tokens/0", json!(null), "AddedToken"),
        ("/surprise", json!(1), "surprise"),
        ("/model/surprise", json!(1), "surprise"),
    ] {
        let message = malformed(&with(pointer, value));
        assert!(message.contains(name), "{pointer}: {message}");
    }
}

#[test]
fn one_token_twice_in_the_vocabulary_is_refused() {
    let text = good().to_string().replace("\"ab\":256", "\"ab\":256,\"ab\":258");
    match Model::from_json(text.as_bytes()) {
        Err(LoadError::Format(message)) => assert!(message.contains("\"ab\" twice"), "{message}"),
        _ => panic!("not refused"),
    }
}

#[test]
fn a_long_name_in_a_message_is_cut() {
    let message = unsupported(&with("/normalizer", json!({"type": "N".repeat(100_000)})));
    assert!(message.len() < 200, "{} bytes", message.len());
}

#[test]
fn a_file_cut_anywhere_is_a_format_error() {
    let text = good().to_string();
    for end in 0..text.len() {
        let Some(part) = text.as_bytes().get(..end) else {
            unreachable!()
        };
        assert!(
            matches!(Model::from_json(part), Err(LoadError::Format(_))),
            "cut at {end}"
        );
    }
}

#[test]
fn deep_nesting_and_bytes_that_are_not_utf8_are_format_errors() {
    let deep = format!("{{\"normalizer\": {}", "[".repeat(100_000));
    for bytes in [deep.as_bytes(), b"\xff\xfe", b"", b"null", b"[]", b"{}"] {
        assert!(matches!(Model::from_json(bytes), Err(LoadError::Format(_))));
    }
}

#[test]
fn special_tokens_outside_the_vocabulary_get_the_next_ids() {
    let tokens = json!([added_token(258, "<a>"), added_token(97, "b"), added_token(259, "<b c>")]);
    let mut file = with("/added_tokens", tokens);
    let id_of_b = file["model"]["vocab"]["b"].clone();
    file["added_tokens"][1]["id"] = id_of_b;
    let model = Model::from_json(file.to_string().as_bytes()).unwrap();
    assert_eq!(model.vocabulary_size(), 260);
    assert_eq!(model.bytes_of(259), Some(&b"<b c>"[..]));
}

#[test]
fn every_error_says_what_is_wrong_and_with_what() {
    let asks_for_more = with("/normalizer", json!({"type": "NFC"}));
    let refused = Model::from_json(asks_for_more.to_string().as_bytes()).err().unwrap();
    let cut = Model::from_json(b"{").err().unwrap();
    let errors: [(Box<dyn std::error::Error + Send + Sync>, &[&str]); 8] = [
        (refused.into(), &["not supported: ", "normalizer \"NFC\""]),
        (cut.into(), &["not well formed: ", "line 1 column 1"]),
        (EncodeError::Offsets.into(), &["offsets"]),
        (EncodeError::Utf8 { position: 12 }.into(), &["not UTF-8", "byte 12"]),
        (EncodeError::Capacity { needed: 34 }.into(), &["room for 34"]),
        (FeedError::Offsets.into(), &["offsets"]),
        (FeedError::Utf8 { position: 56 }.into(), &["not UTF-8", "byte 56"]),
        (FeedError::Memory.into(), &["distinct words", "memory"]),
    ];
    for (error, parts) in errors {
        for part in parts {
            assert!(error.to_string().contains(part), "{error}: {part}");
        }
    }
}
