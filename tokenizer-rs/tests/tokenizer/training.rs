// SPDX-License-Identifier: Apache-2.0
//! Training against its definition. The contract tests of the project compare with Hugging Face's trainer.

use crate::regex_twin;
use crate::scanners::awkward_text;
use crate::twin::{Random, byte_character};
use pybench_tokenizer::family::Family;
use pybench_tokenizer::training::{FeedError, Recipe, Trainer};
use std::collections::HashMap;

fn trained(family: Family, documents: &[String], vocabulary_size: usize, frequency_min: u64) -> Vec<[String; 2]> {
    let mut trainer = Trainer::new(family, 1 << 24).unwrap();
    for document in documents {
        trainer.feed(document.as_bytes(), &[0, document.len() as u64]).unwrap();
    }
    let recipe = Recipe {
        vocabulary_size,
        frequency_min,
        specials: vec!["<|end|>"],
    };
    let file: serde_json::Value = serde_json::from_slice(&trainer.train(&recipe).unwrap()).unwrap();
    serde_json::from_value(file["model"]["merges"].clone()).unwrap()
}

/// The definition: all pairs counted anew for every merge.
fn merges_by_definition(
    family: Family,
    documents: &[String],
    vocabulary_size: usize,
    frequency_min: u64,
) -> Vec<[String; 2]> {
    let written = |word: String| -> Vec<String> { word.bytes().map(|byte| byte_character(byte).to_string()).collect() };
    let mut words: Vec<Vec<String>> = documents
        .iter()
        .flat_map(|text| regex_twin::words(family, text).into_iter().map(written))
        .collect();
    let mut characters: Vec<char> = (0..=255).map(byte_character).collect();
    characters.sort_unstable();
    let mut ids: HashMap<String, usize> = characters.iter().map(char::to_string).zip(1..).collect();
    let mut merges = Vec::new();
    while ids.len() + 1 < vocabulary_size {
        let mut counts: HashMap<[&String; 2], u64> = HashMap::new();
        for pair in words.iter().flat_map(|word| word.windows(2)) {
            *counts.entry([&pair[0], &pair[1]]).or_default() += 1;
        }
        let most = counts
            .iter()
            .filter(|&(_, &count)| count >= frequency_min)
            .min_by_key(|&(pair, &count)| (u64::MAX - count, pair.map(|token| ids[token])));
        let Some((&[left, right], _)) = most else { break };
        let pair = [left.clone(), right.clone()];
        for word in &mut words {
            let mut at = 0;
            while at + 1 < word.len() {
                if word[at..at + 2] == pair {
                    word[at] = pair.concat();
                    word.remove(at + 1);
                }
                at += 1;
            }
        }
        ids.insert(pair.concat(), ids.len() + 1);
        merges.push(pair);
    }
    merges
}

#[test]
fn merges_are_those_of_the_definition() {
    let mut random = Random(21);
    for round in 0..6 {
        for family in [Family::Gpt2, Family::Llama3, Family::O200k] {
            let documents: Vec<String> = (0..40).map(|_| awkward_text(&mut random)).collect();
            let (vocabulary_size, frequency_min) = (300 + 20 * round, (round % 4) as u64);
            assert_eq!(
                trained(family, &documents, vocabulary_size, frequency_min),
                merges_by_definition(family, &documents, vocabulary_size, frequency_min),
                "{family:?} {documents:?}"
            );
        }
    }
}

#[test]
fn runs_of_one_letter_count_every_overlap() {
    let documents = ["aaaaaaa aaa b aaaab baab".to_owned(), "ab".repeat(20)];
    assert_eq!(
        trained(Family::Gpt2, &documents, 275, 0),
        merges_by_definition(Family::Gpt2, &documents, 275, 0)
    );
}

#[test]
fn bad_documents_and_a_full_table_are_named() {
    let mut trainer = Trainer::new(Family::Gpt2, 100_000).unwrap();
    assert_eq!(trainer.feed(b"hello", &[0, 3, 2]), Err(FeedError::Offsets));
    assert_eq!(
        trainer.feed("né".as_bytes(), &[0, 2, 3]),
        Err(FeedError::Utf8 { position: 1 })
    );
    let words: String = (0..10_000).map(|number| format!(" {number}")).collect();
    assert_eq!(
        trainer.feed(words.as_bytes(), &[0, words.len() as u64]),
        Err(FeedError::Memory)
    );
    assert!(trainer.counts().bytes() <= 100_000);
}
