// SPDX-License-Identifier: Apache-2.0
//! Tables that begin small and grow to a bound, each step by all of `GROWTH`, the last one too: while a table moves, the
//! one that it comes from takes a quarter of what it goes to.

/// By how much a table grows at a time.
const GROWTH: usize = 4;

/// The size to begin with: at most `largest`, and a number of whole steps below the bound, a power of two.
pub fn first(bound: usize, largest: usize) -> usize {
    let mut size = bound;
    while size > largest {
        size /= GROWTH;
    }
    size
}

/// The size after one step.
pub fn next(size: usize) -> usize {
    size * GROWTH
}

/// How much there is at most at one time, of a table that begins at `first(bound, largest)`.
pub fn most_at_once(bound: usize, largest: usize) -> usize {
    if bound > largest { bound + bound / GROWTH } else { bound }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_step_takes_more_than_is_stated_and_the_last_one_ends_at_the_bound() {
        for largest in [1 << 8, 1 << 11] {
            for bound in (0..20).map(|power| 1 << power).chain([0]) {
                let mut size = first(bound, largest);
                assert!(size <= largest && (size > 0) == (bound > 0));
                while size < bound {
                    assert!(size + next(size) <= most_at_once(bound, largest));
                    size = next(size);
                }
                assert_eq!(size, bound);
            }
        }
    }
}
