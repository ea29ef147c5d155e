// SPDX-License-Identifier: Apache-2.0
//! The fast path against the slow twin, and against cases worked by hand.

use crate::scanners::awkward_text;
use crate::twin::{Random, Twin, tokenizer_json};
use pybench_tokenizer::family::Family;
use pybench_tokenizer::merge::Merger;
use pybench_tokenizer::merge_table::MergeTable;
use pybench_tokenizer::simd::Level;
use pybench_tokenizer::token_id::TokenId;
use pybench_tokenizer::{EncodeError, Encoder, Model};
use std::mem::MaybeUninit;
use std::sync::Arc;

const VOCABULARY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../pybench/preprocess/tok32k_gpt2.json");

fn shipped() -> Vec<u8> {
    std::fs::read(VOCABULARY).unwrap()
}

fn model_of(json: &[u8]) -> Arc<Model> {
    Arc::new(Model::from_json(json).unwrap())
}

fn encode_batch<I: TokenId>(
    encoder: &mut Encoder<I>,
    text: &[u8],
    offsets: &[u64],
    capacity: usize,
) -> Result<Vec<u32>, EncodeError> {
    let mut ids = vec![MaybeUninit::<I>::new(I::default()); capacity];
    let mut id_offsets = vec![MaybeUninit::new(0); offsets.len()];
    let count = encoder.encode_batch(text, offsets, &mut ids, &mut id_offsets)?;
    // SAFETY: every place was initialized above.
    Ok(ids[..count]
        .iter()
        .map(|id| unsafe { id.assume_init() }.index() as u32)
        .collect())
}

fn encode<I: TokenId>(encoder: &mut Encoder<I>, text: &str) -> Vec<u32> {
    encode_batch(encoder, text.as_bytes(), &[0, text.len() as u64], text.len()).unwrap()
}

#[test]
fn ids_are_the_twins_with_any_cache_and_either_width() {
    let json = shipped();
    let (model, twin) = (model_of(&json), Twin::new(&json, Family::Gpt2));
    let levels = Level::available();
    let mut narrow: Vec<Encoder<u16>> = levels
        .iter()
        .flat_map(|&level| [0, 2, 1 << 4, 1 << 17].map(|entries| Encoder::with_level(&model, entries, level)))
        .collect();
    let mut wides: Vec<Encoder<u32>> = levels
        .iter()
        .map(|&level| Encoder::with_level(&model, 1 << 8, level))
        .collect();
    let mut random = Random(2);
    for _ in 0..3_000 {
        let text: String = (0..1 + random.below(4)).map(|_| awkward_text(&mut random)).collect();
        let expected = twin.encode(&text);
        for encoder in &mut narrow {
            assert_eq!(encode(encoder, &text), expected, "{text:?}");
        }
        for wide in &mut wides {
            assert_eq!(encode(wide, &text), expected, "{text:?}");
        }
    }
}

#[test]
fn every_short_word_over_overlapping_merges_is_the_twins() {
    let merges = [
        ("a", "a"),
        ("aa", "a"),
        ("b", "a"),
        ("a", "b"),
        ("aa", "b"),
        ("ab", "ab"),
        ("aaa", "aaa"),
        ("ba", "ba"),
    ];
    let json = tokenizer_json(&merges).to_string();
    let (model, twin) = (model_of(json.as_bytes()), Twin::new(json.as_bytes(), Family::Gpt2));
    let mut encoder = Encoder::<u16>::new(&model, 1 << 6);
    for length in 1..=11 {
        for number in 0..1_u32 << length {
            let word: String = (0..length)
                .map(|bit| if number >> bit & 1 == 0 { 'a' } else { 'b' })
                .collect();
            assert_eq!(encode(&mut encoder, &word), twin.encode(&word), "{word}");
        }
    }
}

#[test]
fn long_words_are_merged_as_short_ones_are() {
    let merges = [
        ("a", "a"),
        ("aa", "a"),
        ("b", "a"),
        ("aa", "aa"),
        ("aaaa", "aaaa"),
        ("ba", "b"),
        ("bab", "a"),
    ];
    let json = tokenizer_json(&merges).to_string();
    let (model, twin) = (model_of(json.as_bytes()), Twin::new(json.as_bytes(), Family::Gpt2));
    let mut encoder = Encoder::<u16>::new(&model, 0);
    let mut random = Random(3);
    for length in (40..60).chain([100, 257, 400]) {
        for _ in 0..20 {
            let word: String = (0..length).map(|_| *random.pick(&['a', 'a', 'b'])).collect();
            assert_eq!(encode(&mut encoder, &word), twin.encode(&word), "{word}");
        }
    }
}

#[test]
fn a_merge_that_would_have_to_come_earlier_still_comes_by_rank() {
    // (ab, c) ranks before (a, b): once `ab` exists, it is the lowest pair at once.
    let json = {
        let mut file = tokenizer_json(&[("b", "c"), ("a", "b")]);
        file["model"]["vocab"]["abc"] = 256.into();
        file["model"]["vocab"]["bc"] = 258.into();
        file["model"]["vocab"]["ab"] = 257.into();
        file["model"]["merges"] = serde_json::json!([["ab", "c"], ["a", "b"], ["b", "c"]]);
        file.to_string()
    };
    let (model, twin) = (model_of(json.as_bytes()), Twin::new(json.as_bytes(), Family::Gpt2));
    let text = "abcab".repeat(20);
    assert_eq!(encode(&mut Encoder::<u16>::new(&model, 0), &text), twin.encode(&text));
    assert_eq!(encode(&mut Encoder::<u16>::new(&model, 0), "abcbcab"), [256, 258, 257]);
}

#[test]
fn merges_with_one_product_are_told_apart_by_which_can_happen() {
    // Every split of every token, as files made from tiktoken's have them.
    let tokens = ["aa", "ab", "aab", "aaa", "aaaa", "ba", "baa", "aaba"];
    let ids: Vec<String> = tokens.map(str::to_owned).into();
    let known = |part: &str| part.len() == 1 || ids.iter().any(|token| token == part);
    let mut file = tokenizer_json(&[]);
    let mut merges = Vec::new();
    for (token, id) in tokens.iter().zip(256..) {
        file["model"]["vocab"][token] = id.into();
        let splits = (1..token.len()).map(|at| token.split_at(at));
        merges.extend(splits.filter(|(left, right)| known(left) && known(right)));
    }
    file["model"]["merges"] = serde_json::json!(merges);
    let json = file.to_string();
    let (model, twin) = (model_of(json.as_bytes()), Twin::new(json.as_bytes(), Family::Gpt2));
    let mut encoder = Encoder::<u16>::new(&model, 0);
    for length in 1..=12 {
        for number in 0..1_u32 << length {
            let word: String = (0..length)
                .map(|bit| if number >> bit & 1 == 0 { 'a' } else { 'b' })
                .collect();
            assert_eq!(encode(&mut encoder, &word), twin.encode(&word), "{word}");
        }
    }
}

#[test]
fn a_buffer_that_just_fits_is_enough_and_one_smaller_says_so() {
    let model = model_of(&shipped());
    let mut encoder = Encoder::<u16>::new(&model, 1 << 10);
    // Words for each of the caches, and one for none, some of them twice.
    let letters = "pneumonoultramicroscopicsilicovolcanokon";
    let (line, longest) = ("=".repeat(70), "x".repeat(300));
    let text = format!("the fox jumps over; xqzj {letters} {letters} {line} {line} {longest}");
    let text = text.as_bytes();
    let offsets = [0, text.len() as u64];
    let expected = encode_batch(&mut encoder, text, &offsets, text.len()).unwrap();
    assert_eq!(
        encode_batch(&mut encoder, text, &offsets, expected.len()).unwrap(),
        expected
    );
    for capacity in 0..expected.len() {
        let refused = encode_batch(&mut encoder, text, &offsets, capacity).unwrap_err();
        assert_eq!(refused, EncodeError::Capacity { needed: text.len() });
    }
}

#[test]
fn documents_do_not_see_each_other() {
    let model = model_of(&shipped());
    let mut encoder = Encoder::<u16>::new(&model, 1 << 10);
    let text = "we'll see";
    for cut in 0..=text.len() {
        let offsets = [0, cut as u64, cut as u64, text.len() as u64];
        let together = encode_batch(&mut encoder, text.as_bytes(), &offsets, text.len()).unwrap();
        let alone = [&text[..cut], &text[cut..]]
            .map(|part| encode(&mut encoder, part))
            .concat();
        assert_eq!(together, alone, "cut at {cut}");
    }
}

#[test]
fn bad_offsets_and_bad_bytes_are_named() {
    let model = model_of(&shipped());
    let mut encoder = Encoder::<u16>::new(&model, 0);
    for offsets in [[0, 3, 2], [0, 9, 9], [4, 1, 5], [0, u64::MAX, 5]] {
        assert_eq!(
            encode_batch(&mut encoder, b"hello", &offsets, 5),
            Err(EncodeError::Offsets)
        );
    }
    let text = "aé".as_bytes();
    assert_eq!(
        encode_batch(&mut encoder, text, &[0, 2, 3], 3),
        Err(EncodeError::Utf8 { position: 1 })
    );
    assert_eq!(
        encode_batch(&mut encoder, text, &[2, 3], 3),
        Err(EncodeError::Utf8 { position: 2 })
    );
}

#[test]
fn a_megabyte_of_one_letter_takes_no_quadratic_time() {
    let merges: Vec<(String, String)> = (0..16)
        .map(|power| ("a".repeat(1 << power), "a".repeat(1 << power)))
        .collect();
    let merges: Vec<(&str, &str)> = merges
        .iter()
        .map(|(left, right)| (left.as_str(), right.as_str()))
        .collect();
    let model = model_of(tokenizer_json(&merges).to_string().as_bytes());
    let begin = std::time::Instant::now();
    let ids = encode(&mut Encoder::<u16>::new(&model, 0), &"a".repeat(1 << 20));
    assert_eq!(ids, [256 + 15; 16]);
    // Quadratic would be hours.
    assert!(begin.elapsed().as_secs() < 20, "{:?}", begin.elapsed());
}

#[test]
fn scratch_memory_is_given_back_after_a_long_word() {
    let table = MergeTable::new(std::array::from_fn(|byte| byte as u32), &[(97, 97, 256)]);
    let mut merger = Merger::default();
    assert_eq!(merger.merge(&table, &b"a".repeat(1 << 20)).len(), 1 << 19);
    merger.shrink();
    assert!(
        merger.held_bytes() <= Merger::retained_bytes(),
        "{} bytes",
        merger.held_bytes()
    );
}
