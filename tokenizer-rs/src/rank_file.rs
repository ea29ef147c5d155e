// SPDX-License-Identifier: Apache-2.0
//! The loader of tiktoken's rank files: a token in base64 and its rank, which is its id, on each line.
//!
//! Such a file says neither how text is split nor which tokens are special: the caller does. tiktoken merges any two
//! neighbours whose bytes together are a token, the one of the lowest rank first, and a word that is a token becomes
//! it at once. Such a file is refused unless every token is what merging its own bytes makes, which is checked here.
//! Then that is the same as merging the one pair that makes each token (see [`crate::reachable`]).

use crate::family::Family;
use crate::model::{LoadError, Model, Parts, check_size, malformed, quoted, unsupported};
use crate::reachable::Ranks;
use crate::special::SpecialTokens;
use std::collections::HashMap;

impl Model {
    /// Loads a rank file from memory. `specials`: text and id of the tokens that are cut out of the text first; with
    /// none of them a model gives what tiktoken's `encode_ordinary` gives.
    pub fn from_ranks(file: &[u8], family: Family, specials: &[(&str, u32)]) -> Result<Self, LoadError> {
        let mut tokens = read_lines(file)?;
        let byte_ids = byte_ids(&tokens)?;
        let merges = merges_of_tokens(byte_ids, &tokens)?;
        let mut ids: HashMap<Box<[u8]>, u32> = (0..)
            .zip(&tokens)
            .map(|(id, token)| (token.as_slice().into(), id))
            .collect();
        for &(text, id) in specials {
            add_special(&mut tokens, &mut ids, text, id)?;
        }
        let specials = specials.iter().map(|&(text, id)| (text.into(), id)).collect::<Vec<_>>();
        Model::of_parts(Parts {
            family,
            byte_ids,
            merges,
            token_bytes: tokens,
            ids,
            specials: if specials.is_empty() {
                Vec::new()
            } else {
                vec![SpecialTokens::new(specials)]
            },
        })
    }
}

/// Tokens by rank.
fn read_lines(file: &[u8]) -> Result<Vec<Vec<u8>>, LoadError> {
    let mut tokens = Vec::new();
    for (number, line) in (1..).zip(file.split(|&byte| byte == b'\n')) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            continue;
        }
        let parts = std::str::from_utf8(line).ok().and_then(|line| line.split_once(' '));
        let parsed = parts.and_then(|(token, rank)| Some((decode_base64(token)?, rank.parse::<usize>().ok()?)));
        match parsed {
            Some((token, rank)) if !token.is_empty() => tokens.push((rank, number, token)),
            _ => return malformed(format!("line {number} is not a token in base64 and its rank")),
        }
    }
    check_size(tokens.len())?;
    tokens.sort();
    for (expected, &(rank, number, _)) in tokens.iter().enumerate() {
        if rank < expected {
            return malformed(format!("line {number} gives rank {rank} a second time"));
        }
        if rank > expected {
            return unsupported(format!("ranks with holes: no token has rank {expected}"));
        }
    }
    Ok(tokens.into_iter().map(|(_, _, token)| token).collect())
}

/// Base64 with padding (RFC 4648, section 4).
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let digits = text.trim_end_matches('=');
    if text.len() % 4 != 0 || text.len() - digits.len() > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    let (mut bits, mut held) = (0_u32, 0);
    for byte in digits.bytes() {
        bits = bits << 6 | u32::from(value(byte)?);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    Some(bytes)
}

fn byte_ids(tokens: &[Vec<u8>]) -> Result<[u32; 256], LoadError> {
    let mut ids = [None; 256];
    for (id, token) in (0_u32..).zip(tokens) {
        if let &[byte] = token.as_slice() {
            if ids[usize::from(byte)].replace(id).is_some() {
                return malformed(format!("byte 0x{byte:02x} has two ranks"));
            }
        }
    }
    match ids.iter().position(Option::is_none) {
        Some(byte) => unsupported(format!("ranks without a token for byte 0x{byte:02x}")),
        None => Ok(ids.map(|id| id.unwrap_or_default())),
    }
}

/// The one merge that makes each token of two bytes and more.
fn merges_of_tokens(byte_ids: [u32; 256], tokens: &[Vec<u8>]) -> Result<Vec<(u32, u32, u32)>, LoadError> {
    let mut ranks = Ranks::new(byte_ids, &[]);
    let mut merges = Vec::with_capacity(tokens.len());
    for (id, token) in (0..).zip(tokens).filter(|(_, token)| token.len() > 1) {
        let &[left, right] = ranks.merge(token, 1)?.as_slice() else {
            return unsupported(format!(
                "a vocabulary that is not self-consistent: no two tokens of lower rank make {} (rank {id})",
                quoted(&String::from_utf8_lossy(token))
            ));
        };
        ranks.push(left, right, id);
        merges.push((left, right, id));
    }
    Ok(merges)
}

/// Ids between the ranks and a special token stay without a token.
fn add_special(
    tokens: &mut Vec<Vec<u8>>,
    ids: &mut HashMap<Box<[u8]>, u32>,
    text: &str,
    id: u32,
) -> Result<(), LoadError> {
    let place = id as usize;
    check_size(place.saturating_add(1))?;
    if text.is_empty() {
        return malformed("a special token is empty".into());
    }
    if tokens.get(place).is_some_and(|token| !token.is_empty()) {
        return malformed(format!(
            "special token {} with id {id}, which another token has",
            quoted(text)
        ));
    }
    if ids.insert(text.as_bytes().into(), id).is_some() {
        return malformed(format!("special token {} is a token already", quoted(text)));
    }
    if tokens.len() <= place {
        tokens.resize(place + 1, Vec::new());
    }
    tokens[place] = text.as_bytes().to_vec();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_decoded_as_the_rfc_has_it() {
        for (text, bytes) in [
            ("", ""),
            ("Zg==", "f"),
            ("Zm8=", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYmFy", "foobar"),
        ] {
            assert_eq!(decode_base64(text).as_deref(), Some(bytes.as_bytes()));
        }
        assert_eq!(decode_base64("+/8="), Some(vec![0xfb, 0xff]));
        for text in ["Zg=", "Zg", "Z===", "Zm9?", "====", "Zm9v\n"] {
            assert_eq!(decode_base64(text), None, "{text:?}");
        }
    }
}
