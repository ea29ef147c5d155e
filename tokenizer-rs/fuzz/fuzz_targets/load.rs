// SPDX-License-Identifier: Apache-2.0
//! No bytes make a loader do worse than refuse them, and what loads encodes and decodes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pybench_tokenizer::family::Family;
use pybench_tokenizer::{Encoder, Model};
use std::mem::MaybeUninit;
use std::sync::Arc;

const TEXT: &str = "it's 1234 words;\n\n  that CamelCase\u{301} 中文 \u{a0}x";

fuzz_target!(|file: &[u8]| {
    let ranks = [Family::Cl100k, Family::O200k].map(|family| Model::from_ranks(file, family, &[("<|x|>", 1 << 17)]));
    for model in ranks.into_iter().chain([Model::from_json(file)]).flatten().map(Arc::new) {
        let mut ids = [MaybeUninit::<u32>::new(0); TEXT.len()];
        let mut id_offsets = [MaybeUninit::new(0); 2];
        let offsets = [0, TEXT.len() as u64];
        let count = Encoder::<u32>::new(&model, 2)
            .encode_batch(TEXT.as_bytes(), &offsets, &mut ids, &mut id_offsets)
            .expect("there is room for an id a byte");
        // SAFETY: initialized above.
        let ids = ids[..count].iter().map(|id| unsafe { id.assume_init() });
        let decoded: Vec<u8> = ids
            .flat_map(|id| model.bytes_of(id).expect("an id of the model").to_vec())
            .collect();
        assert_eq!(decoded, TEXT.as_bytes());
    }
});
