// SPDX-License-Identifier: Apache-2.0
//! Finding special (added) tokens in the text: leftmost first, longest among those that begin at one place, as the
//! Aho-Corasick automaton of Hugging Face tokenizers does. Here a search for the first bytes and a comparison suffice:
//! there are few such tokens, and text rarely holds even their first byte.

/// Where a special token was found.
#[derive(Debug, PartialEq, Eq)]
pub struct Found {
    /// Byte offset of its beginning.
    pub start: usize,
    /// Byte offset behind it.
    pub end: usize,
    /// Its id.
    pub id: u32,
}

/// Special tokens that are looked for in one pass.
pub struct SpecialTokens {
    /// Longest first.
    tokens: Vec<(Box<str>, u32)>,
    begins: [bool; 256],
    only_first_byte: Option<u8>,
}

impl SpecialTokens {
    /// `tokens`: text, not empty, and id.
    pub fn new(mut tokens: Vec<(Box<str>, u32)>) -> Self {
        tokens.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        let mut begins = [false; 256];
        for (text, _) in &tokens {
            begins[usize::from(text.as_bytes()[0])] = true;
        }
        let mut firsts = (0..=255_u8).filter(|&byte| begins[usize::from(byte)]);
        let only_first_byte = firsts.next().filter(|_| firsts.next().is_none());
        Self {
            tokens,
            begins,
            only_first_byte,
        }
    }

    /// The first special token of `text` that begins at `from` or later; `from` is a character boundary.
    pub fn find(&self, text: &str, from: usize) -> Option<Found> {
        let bytes = text.as_bytes();
        let mut start = from;
        while let Some(distance) = self.next_candidate(&bytes[start..]) {
            start += distance;
            if let Some((token, id)) = self
                .tokens
                .iter()
                .find(|(token, _)| bytes[start..].starts_with(token.as_bytes()))
            {
                return Some(Found {
                    start,
                    end: start + token.len(),
                    id: *id,
                });
            }
            start += 1;
        }
        None
    }

    fn next_candidate(&self, bytes: &[u8]) -> Option<usize> {
        match self.only_first_byte {
            Some(byte) => memchr::memchr(byte, bytes),
            None => bytes.iter().position(|&byte| self.begins[usize::from(byte)]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(texts: &[&str]) -> SpecialTokens {
        SpecialTokens::new(texts.iter().zip(0..).map(|(&text, id)| (text.into(), id)).collect())
    }

    #[test]
    fn the_longest_of_those_that_begin_first_is_found() {
        let special = tokens(&["<a", "<a>", "a>b", "é<"]);
        assert_eq!(
            special.find("x<a>b", 0),
            Some(Found {
                start: 1,
                end: 4,
                id: 1
            })
        );
        assert_eq!(
            special.find("x<a>b", 2),
            Some(Found {
                start: 2,
                end: 5,
                id: 2
            })
        );
        assert_eq!(
            special.find("<<<aé<", 0),
            Some(Found {
                start: 2,
                end: 4,
                id: 0
            })
        );
        assert_eq!(
            special.find("<<<aé<", 4),
            Some(Found {
                start: 4,
                end: 7,
                id: 3
            })
        );
        assert_eq!(special.find("<b>", 0), None);
    }

    #[test]
    fn one_first_byte_and_none_are_searched_alike() {
        assert_eq!(
            tokens(&["<x>", "<y>"]).find("<<y>", 0),
            Some(Found {
                start: 1,
                end: 4,
                id: 1
            })
        );
        assert_eq!(tokens(&[]).find("<<y>", 0), None);
    }
}
