// SPDX-License-Identifier: Apache-2.0
//! Encodes texts whose ids somebody else worked out, at every level of instructions that the machine has and with three
//! sizes of cache. All of them are encoded once, and one in fifty at every one of 64 alignments. Says how many differ.
//! `bench/tokenizer/exactness.py` writes the files.
//!
//!     check_ids VOCABULARY TEXTS IDS
//!
//! Each file of texts and ids begins with the number of texts and where each ends, all 64-bit and little-endian; behind
//! that lie bytes, and ids of 32 bits.

use pybench_tokenizer::simd::Level;
use pybench_tokenizer::token_id::TokenId;
use pybench_tokenizer::{Encoder, Model};
use std::mem::MaybeUninit;
use std::sync::Arc;

/// None; the smallest, which is one line; and the Python package's, which grows to that while texts come.
const CACHE_ENTRIES: [usize; 3] = [0, 2, 1 << 19];
/// Of a block, and of a cache line.
const ALIGNMENTS: usize = 64;
/// One text in so many is encoded at every alignment. The others lie at any, as they come one behind the other.
const ALIGNED_EVERY: usize = 50;

struct Texts {
    bytes: Vec<u8>,
    offsets: Vec<u64>,
    ids: Vec<u32>,
    id_offsets: Vec<u64>,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [vocabulary, texts, ids] = arguments.as_slice() else {
        panic!("three arguments: VOCABULARY TEXTS IDS");
    };
    let read = |path: &String| std::fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let model = Arc::new(Model::from_json(&read(vocabulary)).unwrap_or_else(|error| panic!("{error}")));
    let (offsets, bytes) = split(&read(texts));
    let (id_offsets, ids) = split(&read(ids));
    let texts = Texts {
        bytes,
        offsets,
        ids: ids
            .chunks_exact(4)
            .map(|id| u32::from_le_bytes([id[0], id[1], id[2], id[3]]))
            .collect(),
        id_offsets,
    };
    let different = match model.has_narrow_ids() {
        true => check::<u16>(&model, &texts),
        false => check::<u32>(&model, &texts),
    };
    std::process::exit(i32::from(different > 0));
}

impl Texts {
    fn count(&self) -> usize {
        self.offsets.len() - 1
    }

    fn one_in(&self, every: usize) -> Self {
        let mut few = Self {
            bytes: Vec::new(),
            offsets: vec![0],
            ids: Vec::new(),
            id_offsets: vec![0],
        };
        for at in (0..self.count()).step_by(every) {
            few.bytes.extend_from_slice(&self.bytes[part(&self.offsets, at)]);
            few.ids.extend_from_slice(&self.ids[part(&self.id_offsets, at)]);
            few.offsets.push(few.bytes.len() as u64);
            few.id_offsets.push(few.ids.len() as u64);
        }
        few
    }
}

fn part(offsets: &[u64], at: usize) -> std::ops::Range<usize> {
    offsets[at] as usize..offsets[at + 1] as usize
}

/// Where each begins and ends, and what lies behind.
fn split(file: &[u8]) -> (Vec<u64>, Vec<u8>) {
    let number = |at: usize| u64::from_le_bytes(file[8 * at..8 * at + 8].try_into().expect("eight bytes"));
    let count = number(0) as usize;
    let ends = (1..=count).map(number);
    (std::iter::once(0).chain(ends).collect(), file[8 * count + 8..].to_vec())
}

fn check<I: TokenId>(model: &Arc<Model>, texts: &Texts) -> usize {
    let mut different = 0;
    let few = texts.one_in(ALIGNED_EVERY);
    for level in Level::available() {
        for entries in CACHE_ENTRIES {
            let mut encoder = Encoder::<I>::with_level(model, entries, level);
            let once = differences(&mut encoder, texts, 0);
            let aligned: usize = (0..ALIGNMENTS)
                .map(|shift| differences(&mut encoder, &few, shift))
                .sum();
            println!(
                "  {} with a cache of {entries}: {} texts, {once} different; {} at {ALIGNMENTS} alignments, {aligned} different",
                level.name(),
                texts.count(),
                few.count(),
            );
            different += once + aligned;
        }
    }
    different
}

/// Texts that get other ids when they lie `shift` bytes further on.
fn differences<I: TokenId>(encoder: &mut Encoder<I>, texts: &Texts, shift: usize) -> usize {
    let mut memory = vec![b'x'; texts.bytes.len() + 2 * ALIGNMENTS];
    let first = memory.as_ptr().align_offset(ALIGNMENTS) + shift;
    memory[first..first + texts.bytes.len()].copy_from_slice(&texts.bytes);
    let offsets: Vec<u64> = texts.offsets.iter().map(|&offset| offset + first as u64).collect();
    let mut ids = vec![MaybeUninit::new(I::default()); texts.bytes.len()];
    let mut id_offsets = vec![MaybeUninit::new(0_u64); offsets.len()];
    encoder
        .encode_batch(&memory, &offsets, &mut ids, &mut id_offsets)
        .expect("good text, and room for an id a byte");
    // SAFETY: initialized above.
    let (ids, ends) = unsafe { (ids.assume_init_all(), id_offsets.assume_init_all()) };
    (0..texts.count())
        .filter(|&at| {
            let (ours, theirs) = (&ids[part(&ends, at)], &texts.ids[part(&texts.id_offsets, at)]);
            ours.len() != theirs.len() || ours.iter().zip(theirs).any(|(our, &their)| our.index() as u32 != their)
        })
        .count()
}

/// Vectors whose places are all initialized.
trait Initialized<T> {
    /// # Safety
    /// Every place is initialized.
    unsafe fn assume_init_all(self) -> Vec<T>;
}

impl<T: Copy> Initialized<T> for Vec<MaybeUninit<T>> {
    unsafe fn assume_init_all(self) -> Vec<T> {
        // SAFETY: by the contract of this function.
        self.into_iter().map(|place| unsafe { place.assume_init() }).collect()
    }
}
