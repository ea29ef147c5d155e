// SPDX-License-Identifier: Apache-2.0
//! From counted words to merges: the most frequent pair of neighbours becomes a token, again and again.
//!
//! Definition: a word starts as the ids of its bytes, and counts as often as it occurs. The count of a pair is the
//! number of places where it stands, those that overlap (`aaa` has `aa` twice) included. Of the pairs with the largest
//! count, the one with the smallest left id, then right id, is merged in all words from left to right.
//!
//! Counts are kept, not counted anew: merging a pair takes as much from the counts of the pairs around as it gives to
//! those of the product. A pair's count never rises once it exists, so the heap may hold outdated ones: they are put
//! right when their turn comes. Where a pair stands is kept as the numbers of words that have had it.

use crate::byte_level::{byte_characters, bytes_by_character, read};
use crate::training::Recipe;
use crate::training::word_counts::WordCounts;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

const NONE: u32 = u32::MAX;

/// Tokens and merges.
pub struct Vocabulary {
    /// The bytes of each token; of special tokens that are not written in byte-level characters, nothing.
    token_bytes: Vec<Vec<u8>>,
    byte_ids: [u32; 256],
    /// Special tokens that text could merge into, as Hugging Face compares them: by how they are written.
    written_specials: HashMap<Vec<u8>, u32>,
    merges: Vec<(u32, u32)>,
}

impl Vocabulary {
    /// Special tokens, then bytes in the order of the characters that stand for them.
    pub fn new(specials: &[&str]) -> Self {
        let characters = byte_characters();
        let byte_of = bytes_by_character();
        let token_bytes: Vec<Vec<u8>> = specials
            .iter()
            .map(|special| read(special, &byte_of).unwrap_or_default())
            .collect();
        let mut vocabulary = Self {
            written_specials: token_bytes
                .iter()
                .cloned()
                .zip(0..)
                .filter(|(bytes, _)| !bytes.is_empty())
                .collect(),
            token_bytes,
            byte_ids: [0; 256],
            merges: Vec::new(),
        };
        let mut bytes: Vec<u8> = (0..=255).collect();
        bytes.sort_by_key(|&byte| characters[usize::from(byte)]);
        for byte in bytes {
            vocabulary.byte_ids[usize::from(byte)] = vocabulary.id_of(vec![byte]);
        }
        vocabulary
    }

    /// Tokens.
    pub fn size(&self) -> usize {
        self.token_bytes.len()
    }

    /// The bytes of a token; of a special one, those that its characters stand for.
    pub fn bytes_of(&self, id: u32) -> &[u8] {
        &self.token_bytes[id as usize]
    }

    /// Left and right of each merge by rank.
    pub fn merges(&self) -> &[(u32, u32)] {
        &self.merges
    }

    /// The special token that is written so, else a new one.
    fn id_of(&mut self, bytes: Vec<u8>) -> u32 {
        if let Some(&id) = self.written_specials.get(&bytes) {
            return id;
        }
        self.token_bytes.push(bytes);
        self.token_bytes.len() as u32 - 1
    }

    /// Adds merges until the vocabulary is as large as asked, or no pair is frequent enough.
    pub(super) fn learn(&mut self, counts: &WordCounts, recipe: &Recipe) {
        let mut words = Words::new(counts, &self.byte_ids);
        let mut pairs = Pairs::of_words(&words);
        let mut around = Neighbours::new(recipe.vocabulary_size);
        while self.size() < recipe.vocabulary_size {
            let Some((left, right)) = pairs.pop_most_frequent(recipe.frequency_min.max(1)) else {
                break;
            };
            let bytes = [self.bytes_of(left), self.bytes_of(right)].concat();
            let product = self.id_of(bytes);
            self.merges.push((left, right));
            for number in pairs.take_positions(left, right) {
                words.merge(number, [left, right, product], &mut around);
            }
            pairs.settle([left, right, product], &mut around);
        }
    }
}

/// Distinct words as ids, which merging shortens in place.
struct Words {
    ids: Vec<u32>,
    starts: Vec<usize>,
    lengths: Vec<u32>,
    counts: Vec<u64>,
}

impl Words {
    fn new(counts: &WordCounts, byte_ids: &[u32; 256]) -> Self {
        let mut words = Self {
            ids: Vec::new(),
            starts: Vec::with_capacity(counts.len()),
            lengths: Vec::with_capacity(counts.len()),
            counts: Vec::with_capacity(counts.len()),
        };
        // A word of one byte has no pair.
        for (word, count) in counts.iter().filter(|(word, _)| word.len() > 1) {
            words.starts.push(words.ids.len());
            words.lengths.push(word.len() as u32);
            words.counts.push(count);
            words.ids.extend(word.iter().map(|&byte| byte_ids[usize::from(byte)]));
        }
        words
    }

    fn ids_of(&self, number: u32) -> &[u32] {
        let (start, length) = (self.starts[number as usize], self.lengths[number as usize]);
        &self.ids[start..start + length as usize]
    }

    /// Merges a pair in one word, from left to right, and notes what stands around.
    fn merge(&mut self, number: u32, [left, right, product]: [u32; 3], around: &mut Neighbours) {
        let (start, length) = (self.starts[number as usize], self.lengths[number as usize] as usize);
        let count = self.counts[number as usize];
        let ids = &mut self.ids[start..start + length];
        let (mut from, mut kept) = (0, 0);
        while from < length {
            if ids[from] != left || from + 1 == length || ids[from + 1] != right {
                ids[kept] = ids[from];
                (from, kept) = (from + 1, kept + 1);
                continue;
            }
            if kept > 0 {
                around.before.note(ids[kept - 1], number, count);
            }
            if let Some(&next) = ids.get(from + 2) {
                around.after.note(next, number, count);
            }
            ids[kept] = product;
            (from, kept) = (from + 2, kept + 1);
        }
        self.lengths[number as usize] = kept as u32;
    }
}

/// A pair of neighbours. Words may have lost it since.
#[derive(Default)]
struct Pair {
    count: u64,
    positions: Vec<u32>,
}

/// All pairs, and a heap of what their counts were at some time.
struct Pairs {
    of_key: HashMap<u64, Pair, BuildHasherDefault<KeyHasher>>,
    heap: BinaryHeap<(u64, Reverse<u64>)>,
}

impl Pairs {
    fn of_words(words: &Words) -> Self {
        let mut of_key = HashMap::<u64, Pair, BuildHasherDefault<KeyHasher>>::default();
        for number in 0..words.starts.len() as u32 {
            for neighbours in words.ids_of(number).windows(2) {
                let pair = of_key.entry(key_of(neighbours[0], neighbours[1])).or_default();
                pair.count += words.counts[number as usize];
                if pair.positions.last() != Some(&number) {
                    pair.positions.push(number);
                }
            }
        }
        let heap = of_key.iter().map(|(&key, pair)| (pair.count, Reverse(key))).collect();
        Self { of_key, heap }
    }

    /// Left and right of the pair that comes next, unless it is rarer than that.
    fn pop_most_frequent(&mut self, frequency_min: u64) -> Option<(u32, u32)> {
        while let Some((count, Reverse(key))) = self.heap.pop() {
            let now = self.of_key.get(&key).map_or(0, |pair| pair.count);
            if now == count {
                return (count >= frequency_min).then_some(((key >> 32) as u32, key as u32));
            }
            if now > 0 {
                self.heap.push((now, Reverse(key)));
            } else {
                self.of_key.remove(&key);
            }
        }
        None
    }

    /// The numbers of the words that have had the pair. It is gone then: nothing makes it again.
    fn take_positions(&mut self, left: u32, right: u32) -> Vec<u32> {
        self.of_key.remove(&key_of(left, right)).unwrap_or_default().positions
    }

    /// Moves counts from the pairs around a merged one to those of its product.
    fn settle(&mut self, [left, right, product]: [u32; 3], around: &mut Neighbours) {
        let (before, after) = (around.before.take(), around.after.take());
        // The product's pairs first: where it follows itself, it has taken the place of one of these already.
        let mut taken = Vec::with_capacity(before.len() + after.len());
        let made = before
            .into_iter()
            .map(|(other, pair)| (other, pair, key_of(other, left), key_of(other, product)))
            .chain(
                after
                    .into_iter()
                    .map(|(other, pair)| (other, pair, key_of(right, other), key_of(product, other))),
            );
        for (_, pair, old, new) in made {
            taken.push((old, new, pair.count));
            self.of_key.insert(new, pair);
        }
        for &(old, _, count) in &taken {
            // The merged pair itself is not there any more.
            if let Some(pair) = self.of_key.get_mut(&old) {
                pair.count -= count;
            }
        }
        for (_, new, _) in taken {
            let count = self.of_key[&new].count;
            if count > 0 {
                self.heap.push((count, Reverse(new)));
            } else {
                self.of_key.remove(&new);
            }
        }
    }
}

/// What stands beside the places that are merged at the moment.
struct Neighbours {
    before: Side,
    after: Side,
}

impl Neighbours {
    fn new(vocabulary_size: usize) -> Self {
        let side = || Side {
            places: vec![NONE; vocabulary_size],
            found: Vec::new(),
        };
        Self {
            before: side(),
            after: side(),
        }
    }
}

/// The neighbours on one side, with the pairs that they make with the product.
struct Side {
    /// Where in `found` each id is.
    places: Vec<u32>,
    found: Vec<(u32, Pair)>,
}

impl Side {
    #[inline(always)]
    fn note(&mut self, id: u32, word: u32, count: u64) {
        let place = &mut self.places[id as usize];
        if *place == NONE {
            *place = self.found.len() as u32;
            self.found.push((id, Pair::default()));
        }
        let pair = &mut self.found[*place as usize].1;
        pair.count += count;
        if pair.positions.last() != Some(&word) {
            pair.positions.push(word);
        }
    }

    fn take(&mut self) -> Vec<(u32, Pair)> {
        for (id, _) in &self.found {
            self.places[*id as usize] = NONE;
        }
        std::mem::take(&mut self.found)
    }
}

fn key_of(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}

/// One multiplication: keys are pairs of small numbers, which nobody chooses to collide.
#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(self.0 ^ u64::from(byte));
        }
    }

    #[inline(always)]
    fn write_u64(&mut self, key: u64) {
        let product = u128::from(key) * 0x9E37_79B9_7F4A_7C15;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
}
