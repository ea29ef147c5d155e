// SPDX-License-Identifier: Apache-2.0
//! Which merges and tokens can ever happen, found by merging the bytes of each token by the definition.
//!
//! Two neighbours that merge into a token hold exactly its bytes, and no merge before has crossed their outer edges. So
//! what has happened between those is what happens to the bytes of the token alone, one merge at a time from the lowest
//! rank. That is a single state with two symbols. Of several merges with one product, only the one that this state has
//! can ever happen, in any text; the others may be left out. (Files made from tiktoken's list every split of a token.)

use crate::model::{LoadError, quoted, unsupported};
use std::collections::HashMap;

/// The definition is quadratic in the length of a token; real ones have a few hundred bytes at most.
const TOKEN_BYTES_MAX: usize = 4096;

/// Rank and product of each pair that has a merge.
pub struct Ranks {
    byte_ids: [u32; 256],
    of_pair: HashMap<(u32, u32), (u32, u32)>,
}

impl Ranks {
    /// `merges`: left, right and product by rising rank. Of a pair that comes twice, the last counts, as in Hugging
    /// Face tokenizers.
    pub fn new(byte_ids: [u32; 256], merges: &[(u32, u32, u32)]) -> Self {
        let ranked = merges.iter().zip(0..);
        Self {
            byte_ids,
            of_pair: ranked
                .map(|(&(left, right, product), rank)| ((left, right), (rank, product)))
                .collect(),
        }
    }

    /// Adds a merge behind all others.
    pub fn push(&mut self, left: u32, right: u32, product: u32) {
        let rank = self.of_pair.len() as u32;
        self.of_pair.insert((left, right), (rank, product));
    }

    /// Merges the bytes of a token until `symbols` are left, or no two neighbours have a merge.
    pub fn merge(&self, token: &[u8], symbols: usize) -> Result<Vec<u32>, LoadError> {
        if token.len() > TOKEN_BYTES_MAX {
            let name = quoted(&String::from_utf8_lossy(token));
            return unsupported(format!(
                "token {name} of {} bytes; at most {TOKEN_BYTES_MAX} are",
                token.len()
            ));
        }
        let mut ids: Vec<u32> = token.iter().map(|&byte| self.byte_ids[usize::from(byte)]).collect();
        while ids.len() > symbols {
            let ranked = ids.windows(2).enumerate().filter_map(|(at, pair)| {
                let &(rank, product) = self.of_pair.get(&(pair[0], pair[1]))?;
                Some((rank, at, product))
            });
            let Some((_, at, product)) = ranked.min() else { break };
            ids[at] = product;
            ids.remove(at + 1);
        }
        Ok(ids)
    }
}

/// The merges without those that can never happen because another makes the same product first.
pub fn reachable_merges(
    ranks: &Ranks,
    merges: Vec<(u32, u32, u32)>,
    token_bytes: &[Vec<u8>],
) -> Result<Vec<(u32, u32, u32)>, LoadError> {
    let mut makers = vec![0_u32; token_bytes.len()];
    for &(_, _, product) in &merges {
        makers[product as usize] += 1;
    }
    let mut kept = Vec::with_capacity(merges.len());
    for (rank, (left, right, product)) in (0..).zip(merges) {
        // A pair that comes again later counts there.
        let counts = ranks
            .of_pair
            .get(&(left, right))
            .is_some_and(|&(found, _)| found == rank);
        let is_only = makers[product as usize] == 1;
        if counts && (is_only || ranks.merge(&token_bytes[product as usize], 2)? == [left, right]) {
            kept.push((left, right, product));
        }
    }
    Ok(kept)
}

/// The first of the tokens that the merges do not make of its bytes; those that are not bytes are passed over.
pub fn token_out_of_reach(
    ranks: &Ranks,
    tokens: impl Iterator<Item = Option<Vec<u8>>>,
) -> Result<Option<usize>, LoadError> {
    for (id, token) in tokens.enumerate() {
        if let Some(token) = token {
            if ranks.merge(&token, 1)? != [id as u32] {
                return Ok(Some(id));
            }
        }
    }
    Ok(None)
}
