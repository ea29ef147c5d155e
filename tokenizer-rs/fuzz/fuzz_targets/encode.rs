// SPDX-License-Identifier: Apache-2.0
//! Every level and cache gives the ids of the plainest path, and ids decode to the text. The first byte picks the rule.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pybench_tokenizer::family::Family;
use pybench_tokenizer::simd::Level;
use pybench_tokenizer::{Encoder, Model};
use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::sync::Arc;

const FAMILIES: [Family; 4] = [Family::Gpt2, Family::Llama3, Family::Cl100k, Family::O200k];

/// All bytes, and most pairs of bytes in a scattered order: nearly every boundary between words shows in the ids.
fn ranks() -> Vec<u8> {
    let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    for number in 0..60_000_u32 {
        let mixed = number.wrapping_mul(0x9E37_79B1);
        tokens.push(vec![(mixed >> 24) as u8, (mixed >> 16) as u8]);
    }
    let mut seen = std::collections::HashSet::new();
    tokens.retain(|token| seen.insert(token.clone()));
    tokens
        .iter()
        .enumerate()
        .map(|(rank, token)| format!("{} {rank}\n", base64(token)))
        .collect::<String>()
        .into_bytes()
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits = bytes.iter().fold(0_u32, |bits, &byte| bits << 8 | u32::from(byte)) << (8 * (3 - bytes.len()));
    let digit = |place: usize| match place <= bytes.len() {
        true => char::from(DIGITS[(bits >> (18 - 6 * place)) as usize & 63]),
        false => '=',
    };
    (0..4).map(digit).collect()
}

struct Bench {
    models: Vec<Arc<Model>>,
    encoders: Vec<Encoder<u16>>,
}

thread_local! {
    static BENCH: RefCell<Bench> = RefCell::new(Bench {
        models: FAMILIES.map(|family| Model::from_ranks(&ranks(), family, &[]).ok().expect("it loads")).map(Arc::new).into(),
        encoders: Vec::new(),
    });
}

fn encode(encoder: &mut Encoder<u16>, text: &str) -> Vec<u16> {
    let mut ids = vec![MaybeUninit::new(0); text.len()];
    let mut id_offsets = [MaybeUninit::new(0); 2];
    let count = encoder
        .encode_batch(
            text.as_bytes(),
            &[0, text.len() as u64],
            &mut ids,
            &mut id_offsets,
        )
        .expect("there is room for an id a byte");
    // SAFETY: initialized above.
    ids[..count].iter().map(|id| unsafe { id.assume_init() }).collect()
}

fuzz_target!(|input: &[u8]| {
    let Some((&first, text)) = input.split_first() else {
        return;
    };
    let text = String::from_utf8_lossy(text);
    BENCH.with_borrow_mut(|bench| {
        let family = usize::from(first) % FAMILIES.len();
        let model = &bench.models[family];
        let expected = encode(&mut Encoder::with_level(model, 0, Level::Scalar), &text);
        // One set of encoders a model: a cache belongs to one.
        if bench.encoders.is_empty() {
            for model in &bench.models {
                for level in Level::available() {
                    bench
                        .encoders
                        .extend([2, 1 << 10].map(|entries| Encoder::with_level(model, entries, level)));
                }
            }
        }
        let of_family = bench.encoders.len() / FAMILIES.len();
        for encoder in &mut bench.encoders[family * of_family..(family + 1) * of_family] {
            assert_eq!(encode(encoder, &text), expected);
        }
        let decoded: Vec<u8> = expected
            .iter()
            .flat_map(|&id| model.bytes_of(u32::from(id)).expect("an id").to_vec())
            .collect();
        assert_eq!(decoded, text.as_bytes());
    });
});
