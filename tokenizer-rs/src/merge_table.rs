// SPDX-License-Identifier: Apache-2.0
//! From a pair of neighbouring ids to the id of their product. It is a perfect hash table, so that a look-up is two
//! loads and no branch, whether the pair has a merge or not.
//!
//! Hash and displace (Belazzougui, Botelho and Dietzfelbinger 2009): a first hash picks one of few buckets, whose
//! displacement, found when the table is built, moves its pairs to places that no other pair takes. Open addressing
//! needs less work to build, but how far it searches is for the branch predictor to guess.

/// Stands for "this pair has no merge": larger than any id.
pub const NO_ID: u32 = u32::MAX;

/// Ids take 21 bits, so that a pair and its product fit one slot of 64 bits. The last one is kept for `EDGE`.
pub const ID_BITS: u32 = 21;

/// What stands before the first and behind the last symbol of a word: it merges with nothing.
pub const EDGE: u32 = (1 << ID_BITS) - 1;

const ID_MASK: u64 = (1 << ID_BITS) - 1;
/// No slot that is taken reads so: a pair and its product fill 63 bits.
const EMPTY: u64 = u64::MAX;
const PAIRS_PER_BUCKET: usize = 4;
const SEEDS_PER_SIZE: u64 = 16;

/// The merges of a model.
pub struct MergeTable {
    slots: Box<[u64]>,
    displacements: Box<[u16]>,
    seed: u64,
    bucket_shift: u32,
    byte_ids: [u32; 256],
    /// Products of all pairs of bytes, `0xffff` where there is none: how every word begins.
    byte_pairs: Option<Box<[u16]>>,
}

impl MergeTable {
    /// `byte_ids`: the id of each byte. `merges`: left, right, product; no pair twice; every id below `EDGE`.
    pub fn new(byte_ids: [u32; 256], merges: &[(u32, u32, u32)]) -> Self {
        // One slot in eight stays free: fewer, and the last buckets search long for their displacement.
        let capacity = (merges.len() + merges.len() / 7).max(4);
        let mut table = (0..)
            .find_map(|attempt: u64| {
                let capacity = capacity + capacity / 2 * (attempt / SEEDS_PER_SIZE) as usize;
                Self::placed(byte_ids, merges, capacity, attempt)
            })
            .unwrap_or_else(|| unreachable!("a table that is large enough has room"));
        table.byte_pairs = table.pairs_of_bytes(merges);
        table
    }

    /// The table with that many slots, unless some bucket finds no displacement.
    fn placed(byte_ids: [u32; 256], merges: &[(u32, u32, u32)], capacity: usize, attempt: u64) -> Option<Self> {
        let bucket_count = (merges.len() / PAIRS_PER_BUCKET).next_power_of_two().max(2);
        let mut table = Self {
            slots: vec![EMPTY; capacity].into_boxed_slice(),
            displacements: vec![0; bucket_count].into_boxed_slice(),
            // Any odd number; these are multiples of the golden ratio.
            seed: 0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(2 * attempt + 1),
            bucket_shift: 64 - bucket_count.trailing_zeros(),
            byte_ids,
            byte_pairs: None,
        };
        let mut buckets = vec![Vec::new(); bucket_count];
        for &(left, right, product) in merges {
            let pair = pair_key(left, right);
            buckets[table.bucket(table.hash(pair))].push((pair, product));
        }
        let mut order: Vec<usize> = (0..bucket_count).collect();
        // The fullest first, while there is room.
        order.sort_by_key(|&bucket| std::cmp::Reverse(buckets[bucket].len()));
        for bucket in order {
            table.place(bucket, &buckets[bucket])?;
        }
        Some(table)
    }

    fn place(&mut self, bucket: usize, pairs: &[(u64, u32)]) -> Option<()> {
        let displacement = (0..u16::MAX).find(|&displacement| {
            pairs.iter().enumerate().all(|(index, &(pair, _))| {
                let slot = self.slot(self.hash(pair), displacement);
                let is_earlier = |&(other, _): &(u64, u32)| self.slot(self.hash(other), displacement) == slot;
                self.slots[slot] == EMPTY && !pairs[..index].iter().any(is_earlier)
            })
        })?;
        self.displacements[bucket] = displacement;
        for &(pair, product) in pairs {
            let slot = self.slot(self.hash(pair), displacement);
            self.slots[slot] = pair << ID_BITS | u64::from(product);
        }
        Some(())
    }

    fn pairs_of_bytes(&self, merges: &[(u32, u32, u32)]) -> Option<Box<[u16]>> {
        if merges.iter().any(|&(_, _, product)| product >= u32::from(u16::MAX)) {
            return None;
        }
        let pairs = (0..=u16::MAX).map(|pair| {
            let [left, right] = pair.to_be_bytes();
            self.product(self.byte_id(left), self.byte_id(right)) as u16
        });
        Some(pairs.collect())
    }

    /// For each two bytes, the first in the high half of the index, their product or `0xffff`; `None` when a product
    /// does not fit 16 bits.
    pub fn byte_pairs(&self) -> Option<&[u16; 1 << 16]> {
        self.byte_pairs.as_deref()?.try_into().ok()
    }

    /// The id of one byte.
    #[inline(always)]
    pub fn byte_id(&self, byte: u8) -> u32 {
        self.byte_ids[usize::from(byte)]
    }

    /// The id that `left` and `right`, at most `EDGE` each, merge into, or `NO_ID`.
    #[inline(always)]
    pub fn product(&self, left: u32, right: u32) -> u32 {
        let pair = pair_key(left, right);
        let hash = self.hash(pair);
        let bucket = self.bucket(hash);
        debug_assert!(bucket < self.displacements.len());
        // SAFETY: `bucket` is what remains of 64 bits behind a shift by 64 less the logarithm of the number of buckets.
        let displacement = unsafe { *self.displacements.get_unchecked(bucket) };
        let slot = self.slot(hash, displacement);
        debug_assert!(slot < self.slots.len());
        // SAFETY: `slot` is a part of the number of slots that is less than one.
        let found = unsafe { *self.slots.get_unchecked(slot) };
        // All ones when the pair is another's, and so no product.
        let is_other = opaque(u64::from(found >> ID_BITS != pair)).wrapping_neg();
        ((found & ID_MASK) | is_other) as u32
    }

    /// Bytes of memory that the table holds.
    pub fn bytes(&self) -> usize {
        let byte_pairs = self.byte_pairs.as_deref().map_or(0, size_of_val);
        size_of::<Self>() + size_of_val(&*self.slots) + size_of_val(&*self.displacements) + byte_pairs
    }

    #[inline(always)]
    fn hash(&self, pair: u64) -> u64 {
        let hash = pair.wrapping_mul(self.seed);
        hash ^ hash >> 29
    }

    #[inline(always)]
    fn bucket(&self, hash: u64) -> usize {
        (hash >> self.bucket_shift) as usize
    }

    #[inline(always)]
    fn slot(&self, hash: u64, displacement: u16) -> usize {
        let moved = (hash as u32) ^ u32::from(displacement).wrapping_mul(0x9E37_79B1);
        // The moved hash as a part of 1, times the number of slots (Lemire 2019).
        ((u64::from(moved) * self.slots.len() as u64) >> 32) as usize
    }
}

/// The same number, of which the compiler knows nothing. It would make a branch of it, for the processor to guess, and
/// whether two ids have a merge is a coin toss.
#[inline(always)]
fn opaque(number: u64) -> u64 {
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
    let number = {
        let mut same = number;
        // SAFETY: there is no instruction.
        unsafe { std::arch::asm!("/* {0} */", inout(reg) same, options(pure, nomem, nostack, preserves_flags)) };
        same
    };
    number
}

fn pair_key(left: u32, right: u32) -> u64 {
    u64::from(left) << ID_BITS | u64::from(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_is_found_and_no_other() {
        // Products beyond 16 bits spare Miri a table of all pairs of bytes.
        let first_id = if cfg!(miri) { 70_000 } else { 256 };
        for count in if cfg!(miri) {
            // 3 take a million tries, because 4 places keep pairs apart or not whatever the displacement; 100 take 520.
            &[1, 2, 100][..]
        } else {
            &[0, 1, 2, 3, 100, 5_000, 70_000]
        } {
            let merges: Vec<_> = (0..*count)
                .map(|n: u32| (n * 7 % 65_521, n / 3, first_id + n))
                .collect();
            let table = MergeTable::new(std::array::from_fn(|byte| byte as u32), &merges);
            for &(left, right, product) in &merges {
                assert_eq!(table.product(left, right), product);
            }
            let known: std::collections::HashSet<_> = merges.iter().map(|&(left, right, _)| (left, right)).collect();
            let side = if cfg!(miri) { 20 } else { 300 };
            for left in 0..side {
                for right in 0..side {
                    assert_eq!(table.product(left, right) != NO_ID, known.contains(&(left, right)));
                }
            }
            assert_eq!(table.product(EDGE, EDGE), NO_ID);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "65,536 look-ups take it minutes")]
    fn products_that_need_more_than_16_bits_leave_no_table_of_byte_pairs() {
        let byte_ids = std::array::from_fn(|byte| byte as u32);
        assert!(MergeTable::new(byte_ids, &[(1, 2, 65_535)]).byte_pairs().is_none());
        let table = MergeTable::new(byte_ids, &[(1, 2, 65_534)]);
        assert_eq!(table.byte_pairs().unwrap()[0x0102], 65_534);
    }
}
