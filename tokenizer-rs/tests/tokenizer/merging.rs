// SPDX-License-Identifier: Apache-2.0
//! Merging with vector instructions against merging by the definition, over vocabularies that leave nothing unmerged.

use crate::twin::Random;
use pybench_tokenizer::cache::Key;
use pybench_tokenizer::merge::Merger;
use pybench_tokenizer::merge_table::MergeTable;
use pybench_tokenizer::simd::Level;

/// Left, right and product of each merge.
type Merges = Vec<(u32, u32, u32)>;

/// Merges of random tokens made so far over few letters, so that they overlap; products from `first_id` on.
fn random_merges(random: &mut Random, count: u32, first_id: u32) -> Merges {
    let mut symbols: Vec<u32> = (97..101).collect();
    let mut merges = Merges::new();
    while (merges.len() as u32) < count {
        let (left, right) = (*random.pick(&symbols), *random.pick(&symbols));
        if merges.iter().any(|&(a, b, _)| (a, b) == (left, right)) {
            continue;
        }
        let product = first_id + merges.len() as u32;
        merges.push((left, right, product));
        symbols.push(product);
    }
    merges
}

/// The definition.
fn merged(merges: &[(u32, u32, u32)], word: &[u8]) -> Vec<u32> {
    let mut ids: Vec<u32> = word.iter().map(|&byte| u32::from(byte)).collect();
    loop {
        let product = |pair: &[u32]| merges.iter().find(|merge| (merge.0, merge.1) == (pair[0], pair[1]));
        let lowest = ids
            .windows(2)
            .enumerate()
            .filter_map(|(at, pair)| Some((product(pair)?.2, at)))
            .min();
        let Some((product, at)) = lowest else { return ids };
        ids[at] = product;
        ids.remove(at + 1);
    }
}

fn random_word(random: &mut Random, length: usize) -> Vec<u8> {
    (0..length).map(|_| b"aaabbcd"[random.below(7)]).collect()
}

fn tables(random: &mut Random) -> Vec<(MergeTable, Merges)> {
    // The second needs more than 16 bits, so that it has lanes of 32.
    [(40, 256), (40, 70_000), (6, 256), (0, 256)]
        .map(|(count, first_id)| {
            let merges = random_merges(random, count, first_id);
            (
                MergeTable::new(std::array::from_fn(|byte| byte as u32), &merges),
                merges,
            )
        })
        .into()
}

#[test]
fn words_of_any_length_are_merged_by_the_definition_at_every_level() {
    let mut random = Random(8);
    for _ in 0..12 {
        for (table, merges) in tables(&mut random) {
            for level in Level::available() {
                let mut merger = Merger::new(level);
                for length in (1..40).chain([47, 48, 49, 63, 64, 65, 127, 128, 129, 140]) {
                    let word = random_word(&mut random, length);
                    assert_eq!(
                        merger.merge(&table, &word),
                        merged(&merges, &word),
                        "{level:?} {word:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn words_with_bytes_outside_the_merges_keep_them() {
    let mut random = Random(9);
    for (table, _) in tables(&mut random) {
        let mut merger = Merger::new(Level::best());
        let word: Vec<u8> = (0..=255).filter(|byte| !(97..101).contains(byte)).take(120).collect();
        let expected: Vec<u32> = word.iter().map(|&byte| u32::from(byte)).collect();
        assert_eq!(merger.merge(&table, &word), expected);
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn words_merged_in_step_are_merged_by_the_definition() {
    use pybench_tokenizer::simd::lanes::{Narrow8, Narrow16, Symbols, Wide8, Wide16, merge_group};

    if !pybench_tokenizer::simd::avx2::is_available() {
        eprintln!("NOT TESTED: this machine has no AVX2");
        return;
    }
    let mut random = Random(10);
    let every: Vec<_> = (0..30).flat_map(|_| tables(&mut random)).collect();
    for (table, merges) in every {
        for most in [8, 15] {
            let words: [Vec<u8>; 4] = std::array::from_fn(|_| {
                let length = 1 + random.below(most);
                random_word(&mut random, length)
            });
            let keys = [0, 1, 2, 3].map(|at: usize| Key::of(&words[at]));
            // SAFETY: the machine has the instructions; lanes of 16 bits are used with byte pairs only.
            let groups: [[Symbols; 4]; 2] = unsafe {
                match (table.byte_pairs().is_some(), most) {
                    (true, 8) => [
                        merge_group::<Narrow8, 4>(&table, &keys),
                        merge_group::<Narrow16, 4>(&table, &keys),
                    ],
                    (true, _) => [merge_group::<Narrow16, 4>(&table, &keys); 2],
                    (false, 8) => [
                        merge_group::<Wide8, 4>(&table, &keys),
                        merge_group::<Wide16, 4>(&table, &keys),
                    ],
                    (false, _) => [merge_group::<Wide16, 4>(&table, &keys); 2],
                }
            };
            for (symbols, word) in groups.iter().flat_map(|group| group.iter().zip(&words)) {
                let (ids, count) = symbols.first_ids();
                let expected = merged(&merges, word);
                assert_eq!(count, expected.len(), "{word:?}");
                assert_eq!(ids[..count.min(8)], expected[..count.min(8)], "{word:?}");
            }
        }
    }
}
