// SPDX-License-Identifier: Apache-2.0
//! How byte-level BPE writes bytes as characters: printable ones as themselves, the others from U+0100 on.
//!
//! Source: `bytes_to_unicode` of GPT-2's `encoder.py`.

use std::collections::HashMap;

/// The character of each byte.
pub fn byte_characters() -> [char; 256] {
    let mut shifted = '\u{100}'..;
    std::array::from_fn(|byte| match byte as u8 {
        byte @ (b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF) => char::from(byte),
        // 68 of them: the range has no end to reach.
        _ => shifted.next().unwrap_or_default(),
    })
}

/// The byte of each such character.
pub fn bytes_by_character() -> HashMap<char, u8> {
    byte_characters().into_iter().zip(0..=255).collect()
}

/// The bytes that a text stands for, `None` where a character of it stands for none.
pub fn read(text: &str, byte_of: &HashMap<char, u8>) -> Option<Vec<u8>> {
    text.chars().map(|character| byte_of.get(&character).copied()).collect()
}

/// Bytes as text.
pub fn written(bytes: &[u8], characters: &[char; 256]) -> String {
    bytes.iter().map(|&byte| characters[usize::from(byte)]).collect()
}
