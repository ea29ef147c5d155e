// SPDX-License-Identifier: Apache-2.0
//! How often each distinct word occurs: the only thing that training keeps of a text.
//!
//! A hash table of numbers of words beside the words themselves, which lie end to end. Its memory is the text's to
//! decide, but for a limit that is kept while it grows, too: then it says that it is full, and counts no more words.

use crate::memory::prefetch;

/// A distinct word.
#[derive(Clone, Copy)]
struct Entry {
    count: u64,
    start: usize,
    length: u32,
    hash: u32,
}

/// What the parts of the table grow by at the least: half as many entries, as many bytes, twice as many slots.
const GROWTH_LEAST: usize = 1 << 10;
/// Words for which memory is asked ahead of their turn.
const AHEAD: usize = 16;
const FREE: u32 = u32::MAX;

/// The table.
pub struct WordCounts {
    /// Numbers of entries; a power of two of them, at most half of which are taken.
    slots: Vec<u32>,
    entries: Vec<Entry>,
    bytes: Vec<u8>,
    bytes_max: usize,
}

impl WordCounts {
    /// `bytes_max`: what the table may take.
    pub fn new(bytes_max: usize) -> Self {
        Self {
            slots: Vec::new(),
            entries: Vec::new(),
            bytes: Vec::new(),
            bytes_max,
        }
    }

    /// Distinct words.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no word.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of memory that the table holds.
    pub fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<u32>() + self.entries.capacity() * size_of::<Entry>() + self.bytes.capacity()
    }

    /// Words and how often each occurred, in the order of their first occurrence.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], u64)> {
        self.entries.iter().map(|entry| (self.word(entry), entry.count))
    }

    /// Counts the words of a text that end at `ends`, the first of which begins at `start`; returns where the last ends,
    /// or `None` when the table is full.
    pub fn add_all(&mut self, text: &[u8], mut start: usize, ends: &[u32]) -> Option<usize> {
        for ends in ends.chunks(AHEAD) {
            let mut hashes = [0; AHEAD];
            let mut from = start;
            for (&end, hash) in ends.iter().zip(&mut hashes) {
                *hash = hash_of(&text[from..end as usize]);
                prefetch(self.slots.as_ptr().wrapping_add(self.first_slot(*hash)));
                from = end as usize;
            }
            for (&end, hash) in ends.iter().zip(hashes) {
                self.add(&text[start..end as usize], hash)?;
                start = end as usize;
            }
        }
        Some(start)
    }

    fn add(&mut self, word: &[u8], hash: u32) -> Option<()> {
        let mut slot = self.first_slot(hash);
        while let Some(&number) = self.slots.get(slot) {
            if number == FREE {
                break;
            }
            let entry = &self.entries[number as usize];
            if entry.hash == hash && self.word(entry) == word {
                self.entries[number as usize].count += 1;
                return Some(());
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        self.insert(word, hash)
    }

    #[cold]
    fn insert(&mut self, word: &[u8], hash: u32) -> Option<()> {
        self.make_room(word.len())?;
        let number = u32::try_from(self.entries.len())
            .ok()
            .filter(|&number| number != FREE)?;
        self.entries.push(Entry {
            count: 1,
            start: self.bytes.len(),
            length: u32::try_from(word.len()).ok()?,
            hash,
        });
        self.bytes.extend_from_slice(word);
        self.take_slot(number, hash);
        Some(())
    }

    /// Room for one more word; `None` when that would take more than was granted.
    fn make_room(&mut self, word_bytes: usize) -> Option<()> {
        if self.entries.len() == self.entries.capacity() {
            let more = self.entries.len().max(GROWTH_LEAST) / 2;
            self.check_growth((self.entries.len() + more).checked_mul(size_of::<Entry>())?)?;
            self.entries.reserve_exact(more);
        }
        if self.bytes.capacity() - self.bytes.len() < word_bytes {
            let more = (self.bytes.len() / 2).max(GROWTH_LEAST).max(word_bytes);
            self.check_growth(self.bytes.len() + more)?;
            self.bytes.reserve_exact(more);
        }
        if self.slots.len() < 2 * (self.entries.len() + 1) {
            let length = (2 * self.slots.len()).max(2 * GROWTH_LEAST);
            self.check_growth(length * size_of::<u32>())?;
            self.slots = vec![FREE; length];
            for number in 0..self.entries.len() {
                self.take_slot(number as u32, self.entries[number].hash);
            }
        }
        Some(())
    }

    /// While a part grows, both the old and the new one are there.
    fn check_growth(&self, new_bytes: usize) -> Option<()> {
        (self.bytes().checked_add(new_bytes)? <= self.bytes_max).then_some(())
    }

    fn take_slot(&mut self, number: u32, hash: u32) {
        let mut slot = self.first_slot(hash);
        while self.slots[slot] != FREE {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        self.slots[slot] = number;
    }

    #[inline(always)]
    fn first_slot(&self, hash: u32) -> usize {
        hash as usize & self.slots.len().wrapping_sub(1)
    }

    #[inline(always)]
    fn word(&self, entry: &Entry) -> &[u8] {
        &self.bytes[entry.start..entry.start + entry.length as usize]
    }
}

/// Eight bytes at a time, by the whole product of each with an odd constant, which folds high bits into low ones.
#[inline(always)]
fn hash_of(word: &[u8]) -> u32 {
    const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
    let fold = |hash: u64, number: u64| {
        let product = u128::from(hash ^ number) * u128::from(MULTIPLIER);
        product as u64 ^ (product >> 64) as u64
    };
    let number = |bytes: &[u8]| {
        let mut padded = [0; 8];
        padded[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(padded)
    };
    let parts = word.chunks_exact(8);
    let last = number(parts.remainder());
    let hash = parts.fold(word.len() as u64, |hash, part| fold(hash, number(part)));
    let hash = fold(hash, last);
    (hash ^ hash >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(counts: &mut WordCounts, words: &[&str]) -> Option<usize> {
        let ends: Vec<u32> = words
            .iter()
            .scan(0, |end, word| {
                *end += word.len() as u32;
                Some(*end)
            })
            .collect();
        counts.add_all(words.concat().as_bytes(), 0, &ends)
    }

    #[test]
    fn words_are_told_apart_and_counted_in_the_order_of_their_coming() {
        let mut counts = WordCounts::new(1 << 20);
        let long = "x".repeat(1000);
        assert_eq!(count(&mut counts, &["a", "b", "a", &long, "ab", "a"]), Some(1006));
        let found: Vec<_> = counts.iter().map(|(word, count)| (word.len(), count)).collect();
        assert_eq!(found, [(1, 3), (1, 1), (1000, 1), (2, 1)]);
    }

    #[test]
    fn what_was_granted_is_kept_and_known_words_still_count_when_it_is_used_up() {
        let mut counts = WordCounts::new(200_000);
        let words: Vec<String> = (0..4_000).map(|number| format!("w{number}")).collect();
        let full = words
            .iter()
            .position(|word| count(&mut counts, &[word]).is_none())
            .unwrap();
        assert!(counts.bytes() <= 200_000);
        assert!(full > 1_000, "{full}");
        assert_eq!((counts.len(), count(&mut counts, &["w7", "w7"])), (full, Some(4)));
        assert_eq!(counts.iter().nth(7).unwrap().1, 3);
    }
}
