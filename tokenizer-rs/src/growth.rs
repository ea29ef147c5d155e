// SPDX-License-Identifier: Apache-2.0
//! Tables that begin small and grow to a bound with the words that they are given. Each step is by all of `GROWTH`, the
//! last one too: while a table moves, the one that it comes from takes a quarter of what it goes to.

use crate::memory::{Table, Zeroed};
use std::ops::{Deref, DerefMut};

/// By how much a table grows at a time.
const GROWTH: usize = 4;

/// A table of zeros that grows, when its owner says so, into a larger one of zeros.
pub struct GrowingTable<T: Zeroed> {
    table: Table<T>,
    bound: usize,
    bytes_max: usize,
    /// Words that may still come before the table is too crowded for its size.
    room: isize,
}

impl<T: Zeroed> GrowingTable<T> {
    /// `bound`: the length that it has in the end, 0 or a power of two. `largest_first`: what it has at most to begin
    /// with, a power of two.
    pub fn new(bound: usize, largest_first: usize) -> Self {
        let mut first = bound;
        while first > largest_first {
            first /= GROWTH;
        }
        let most_at_once = if bound > first { bound + bound / GROWTH } else { bound };
        Self {
            table: Table::new(first),
            bound,
            bytes_max: size_of::<T>() * most_at_once,
            room: room_of(first, bound),
        }
    }

    /// Bytes that it holds at most, those included that are held only while it grows.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Takes note of a word that was put into the table.
    #[inline(always)]
    pub fn count_word(&mut self) {
        self.room -= 1;
    }

    /// Whether it is time to grow.
    #[inline(always)]
    pub fn is_crowded(&self) -> bool {
        self.room < 0
    }

    /// Becomes a larger table of zeros, and hands over what it was: its words are for the owner to put in anew. Only for
    /// one that is crowded, as none at its bound ever is.
    pub fn grow(&mut self) -> Table<T> {
        debug_assert!(self.is_crowded());
        let length = self.table.len() * GROWTH;
        self.room = room_of(length, self.bound);
        std::mem::replace(&mut self.table, Table::new(length))
    }
}

/// One word for each place, of which each has room for two: by chance more than two words would then share 8 % of the
/// places. At the bound there is nothing to wait for.
fn room_of(length: usize, bound: usize) -> isize {
    if length < bound { length as isize } else { isize::MAX }
}

impl<T: Zeroed> Deref for GrowingTable<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        &self.table
    }
}

impl<T: Zeroed> DerefMut for GrowingTable<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_step_takes_more_than_is_stated_and_the_last_one_ends_at_the_bound() {
        for largest_first in [1 << 4, 1 << 7] {
            for bound in (0..12).map(|power| 1 << power).chain([0]) {
                let mut table = GrowingTable::<u64>::new(bound, largest_first);
                let mut most = size_of_val(&*table);
                assert!(table.len() <= largest_first && table.is_empty() == (bound == 0));
                while table.len() < bound {
                    for _ in 0..table.len() {
                        assert!(!table.is_crowded());
                        table.count_word();
                    }
                    assert!(!table.is_crowded());
                    table.count_word();
                    assert!(table.is_crowded());
                    table[0] = 7;
                    let old = table.grow();
                    assert!(!table.is_crowded() && old[0] == 7 && table.iter().all(|&number| number == 0));
                    most = size_of_val(&*old) + size_of_val(&*table);
                }
                assert_eq!((table.len(), table.bytes_max()), (bound, most));
            }
        }
    }
}
