// SPDX-License-Identifier: Apache-2.0
//! Seconds that this library takes to encode a corpus, without a boundary: what `bench/tokenizer/through_go.py` holds
//! Go against. `orchestrator-go/internal/tokenizer/encoderate` is the same program in Go.
//!
//!     encode_rate VOCABULARY CORPUS LIMIT_BYTES CACHE_ENTRIES
//!
//! Each line on standard input asks for one pass over the corpus, `cold` with a new encoder, anything else with the one
//! there is. Each is answered by one line of JSON.

use pybench_tokenizer::{Encoder, Model};
use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// As the orchestrator's chunks.
const CHUNK_BYTES: u64 = 1 << 20;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [vocabulary, corpus, limit, entries] = arguments.as_slice() else {
        panic!("four arguments: VOCABULARY CORPUS LIMIT_BYTES CACHE_ENTRIES");
    };
    let number = |text: &String| text.parse::<usize>().expect("a number");
    let json = std::fs::read(vocabulary).expect("the vocabulary");
    let model = Arc::new(Model::from_json(&json).unwrap_or_else(|error| panic!("{error}")));
    let (text, offsets) = read_corpus(Path::new(corpus), number(limit) as u64);
    let chunks = cut(&offsets);
    let most = chunks.iter().map(|one| one[one.len() - 1] - one[0]).max().unwrap_or(0);
    let mut ids = vec![MaybeUninit::new(0_u16); most as usize];
    let mut id_offsets = vec![MaybeUninit::new(0_u64); offsets.len()];
    let mut encoder = Encoder::<u16>::new(&model, number(entries));
    for line in std::io::stdin().lines() {
        if line.expect("text") == "cold" {
            encoder = Encoder::<u16>::new(&model, number(entries));
        }
        let (cpu, began, mut count) = (cpu_seconds(), Instant::now(), 0);
        for chunk in &chunks {
            let places = &mut id_offsets[..chunk.len()];
            count += encoder.encode_batch(&text, chunk, &mut ids, places).expect("good text");
        }
        let (cpu_s, wall_s) = (cpu_seconds() - cpu, began.elapsed().as_secs_f64());
        println!(
            "{}",
            serde_json::json!({"bytes": text.len(), "ids": count, "cpu_s": cpu_s, "wall_s": wall_s})
        );
    }
}

/// Whole documents of at most that many bytes together, and where each begins.
fn read_corpus(path: &Path, limit: u64) -> (Vec<u8>, Vec<u64>) {
    let numbers = std::fs::read(path.with_extension("off")).expect("where the documents begin");
    let offsets: Vec<u64> = numbers
        .chunks_exact(8)
        .map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
        .take_while(|&offset| offset <= limit)
        .collect();
    let mut text = std::fs::read(path).expect("the corpus");
    text.truncate(offsets[offsets.len() - 1] as usize);
    (text, offsets)
}

/// Offsets of documents, a chunk after the other.
fn cut(offsets: &[u64]) -> Vec<&[u64]> {
    let (mut chunks, mut first) = (Vec::new(), 0);
    for last in 1..offsets.len() {
        if offsets[last] - offsets[first] >= CHUNK_BYTES || last + 1 == offsets.len() {
            chunks.push(&offsets[first..=last]);
            first = last;
        }
    }
    chunks
}

/// CPU time of this process, all its threads together.
fn cpu_seconds() -> f64 {
    #[repr(C)]
    struct Timespec {
        seconds: i64,
        nanoseconds: i64,
    }
    unsafe extern "C" {
        fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
    }
    const CLOCK_PROCESS_CPUTIME_ID: i32 = 2;
    let mut time = Timespec {
        seconds: 0,
        nanoseconds: 0,
    };
    // SAFETY: the C library that the standard library links, on 64-bit Linux; `time` is its `struct timespec`.
    assert_eq!(unsafe { clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &raw mut time) }, 0);
    time.seconds as f64 + time.nanoseconds as f64 / 1e9
}
