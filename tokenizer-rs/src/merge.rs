// SPDX-License-Identifier: Apache-2.0
//! Merging the bytes of one word by rank: byte-pair encoding proper.
//!
//! Definition: of all neighbouring pairs that have a merge, the one of the lowest rank, leftmost among equals, is
//! replaced by its product, until no neighbours have one. Where products are unique and their ids rise with the rank
//! (the loader sees to both), the id of the product can stand for the rank.
//!
//! Short words: the products lie in an array whose minimum is searched; quadratic, but in nanoseconds. Long words: a
//! heap over a linked list, O(n log n), so that a megabyte of one letter is no trap.

use crate::merge_table::{MergeTable, NO_ID};
use crate::simd::Level;
#[cfg(target_arch = "x86_64")]
use crate::simd::row::{ROW_BYTES, merge_row};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Words of up to this many bytes are merged by searching the minimum: where the two ways take about as long.
const SHORT_BYTES: usize = 48;

/// Scratch memory that a worker keeps between long words, in symbols.
pub const LONG_RETAINED: usize = 4096;

/// Scratch memory of one thread.
#[derive(Default)]
pub struct Merger {
    ids: Vec<u32>,
    long: LongScratch,
    #[cfg(target_arch = "x86_64")]
    has_rows: bool,
}

impl Merger {
    /// One that uses the instructions of a level, which the machine has.
    pub fn new(level: Level) -> Self {
        let _ = level;
        Self {
            #[cfg(target_arch = "x86_64")]
            has_rows: level != Level::Scalar,
            ..Self::default()
        }
    }

    /// The ids of one word. Valid until the next call.
    pub fn merge(&mut self, table: &MergeTable, word: &[u8]) -> &[u32] {
        self.ids.clear();
        self.ids.extend(word.iter().map(|&byte| table.byte_id(byte)));
        #[cfg(target_arch = "x86_64")]
        if self.has_rows && word.len() <= ROW_BYTES {
            // SAFETY: `has_rows` says that the machine has the instructions.
            let count = unsafe {
                match table.byte_pairs() {
                    Some(_) => merge_row::<u16>(table, &mut self.ids),
                    None => merge_row::<u32>(table, &mut self.ids),
                }
            };
            self.ids.truncate(count);
            return &self.ids;
        }
        if word.len() <= SHORT_BYTES {
            let count = merge_short(table, &mut self.ids);
            self.ids.truncate(count);
        } else {
            self.long.merge(table, &mut self.ids);
        }
        &self.ids
    }

    /// Gives back what a very long word made this scratch grow to, beyond `LONG_RETAINED` symbols.
    pub fn shrink(&mut self) {
        self.ids.clear();
        self.ids.shrink_to(LONG_RETAINED);
        self.long.shrink();
    }

    /// Bytes held now.
    pub fn held_bytes(&self) -> usize {
        self.ids.capacity() * size_of::<u32>()
            + self.long.links.capacity() * size_of::<Link>()
            + self.long.heap.capacity() * size_of::<Reverse<Candidate>>()
    }

    /// Bytes that stay held between documents, at most.
    pub const fn retained_bytes() -> usize {
        LONG_RETAINED * (size_of::<u32>() + size_of::<Link>() + 2 * size_of::<Reverse<Candidate>>())
    }
}

/// Merges in place; returns how many ids are left at the front.
fn merge_short(table: &MergeTable, ids: &mut [u32]) -> usize {
    let mut products = [NO_ID; SHORT_BYTES];
    let mut count = ids.len();
    for (product, pair) in products.iter_mut().zip(ids.windows(2)) {
        *product = table.product(pair[0], pair[1]);
    }
    while count > 1 {
        let candidates = &products[..count - 1];
        let lowest = candidates.iter().copied().fold(NO_ID, u32::min);
        if lowest == NO_ID {
            break;
        }
        let Some(at) = candidates.iter().position(|&product| product == lowest) else {
            break;
        };
        ids[at] = lowest;
        ids.copy_within(at + 2..count, at + 1);
        products.copy_within(at + 1..count - 1, at);
        count -= 1;
        products[count - 1] = NO_ID;
        if at + 1 < count {
            products[at] = table.product(ids[at], ids[at + 1]);
        }
        if at > 0 {
            products[at - 1] = table.product(ids[at - 1], ids[at]);
        }
    }
    count
}

/// Product and place of a pair that was seen when it was pushed; ordered as merges have to happen.
type Candidate = (u32, u32);

/// Neighbours of a symbol, as indices; `NO_ID` at the ends.
#[derive(Clone, Copy)]
struct Link {
    previous: u32,
    next: u32,
}

#[derive(Default)]
struct LongScratch {
    links: Vec<Link>,
    heap: BinaryHeap<Reverse<Candidate>>,
}

impl LongScratch {
    /// Merges `ids` in place. A document is shorter than 2^32 bytes, so places fit 32 bits.
    fn merge(&mut self, table: &MergeTable, ids: &mut Vec<u32>) {
        self.link_up(table, ids);
        while let Some(Reverse((product, at))) = self.heap.pop() {
            // A candidate is stale when its left symbol is gone or either symbol has changed since.
            let left = at as usize;
            let right = self.links[left].next;
            if ids[left] == NO_ID || right == NO_ID || table.product(ids[left], ids[right as usize]) != product {
                continue;
            }
            self.replace(table, ids, left, right as usize, product);
        }
        self.links.clear();
        ids.retain(|&id| id != NO_ID);
    }

    fn link_up(&mut self, table: &MergeTable, ids: &[u32]) {
        let count = ids.len() as u32;
        self.links.clear();
        self.links.extend((0..count).map(|at| Link {
            previous: at.wrapping_sub(1),
            next: if at + 1 < count { at + 1 } else { NO_ID },
        }));
        // Built in one go: heapifying is linear, pushing one by one is not.
        let mut candidates = std::mem::take(&mut self.heap).into_vec();
        candidates.clear();
        candidates.extend(ids.windows(2).zip(0..).filter_map(|(pair, at)| {
            let product = table.product(pair[0], pair[1]);
            (product != NO_ID).then_some(Reverse((product, at)))
        }));
        self.heap = BinaryHeap::from(candidates);
    }

    fn replace(&mut self, table: &MergeTable, ids: &mut [u32], left: usize, right: usize, product: u32) {
        ids[left] = product;
        ids[right] = NO_ID;
        let next = self.links[right].next;
        self.links[left].next = next;
        if next != NO_ID {
            self.links[next as usize].previous = left as u32;
            self.push(table.product(product, ids[next as usize]), left as u32);
        }
        let previous = self.links[left].previous;
        if previous != NO_ID {
            self.push(table.product(ids[previous as usize], product), previous);
        }
    }

    fn push(&mut self, product: u32, at: u32) {
        if product != NO_ID {
            self.heap.push(Reverse((product, at)));
        }
    }

    fn shrink(&mut self) {
        self.links.shrink_to(LONG_RETAINED);
        self.heap.clear();
        self.heap.shrink_to(2 * LONG_RETAINED);
    }
}
