// SPDX-License-Identifier: Apache-2.0
//! The scanners against their regular expressions, and against cases worked by hand.

use crate::regex_twin;
use crate::twin::Random;
use pybench_tokenizer::family::Family;
use pybench_tokenizer::scanner::word_end_of;
use pybench_tokenizer::simd::Level;
use pybench_tokenizer::word_ends::word_ends_of;

const FAMILIES: [Family; 4] = [Family::Gpt2, Family::Llama3, Family::Cl100k, Family::O200k];

fn words(family: Family, text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut start = 0;
    while start < text.len() {
        let end = word_end_of(family, text, start);
        words.push(&text[start..end]);
        start = end;
    }
    words
}

/// Text from an alphabet that provokes every alternative of the splitting rule.
pub fn awkward_text(random: &mut Random) -> String {
    const PARTS: &[&str] = &[
        " ", " ", "  ", "\t", "\n", "\r\n", "\u{a0}", "\u{3000}", "\u{85}", "'", "'s", "'ll", "'re", "'l", "'v", "a",
        "the", "The", "é", "ß", "я", "中文", "𝒳", "1", "42", "²", "٣", "Ⅷ", "!", "--", "…", "€", "🙂", "\u{200b}",
        "\u{301}", "\0", "\u{1c}", "_", "ing", "self", "'S", "'LL", "'ſ", "ſ", "A", "HTML", "ǅ", "ʰ", "\u{903}", "/",
        "//", "\n", "\n/", "1234567", "Я", "\u{2028}", "\r",
    ];
    (0..random.below(24)).map(|_| *random.pick(PARTS)).collect()
}

#[test]
fn gpt2_words_are_cut_as_worked_out_by_hand() {
    let words = |text| words(Family::Gpt2, text);
    assert_eq!(words("it's  we'll 'tis"), ["it", "'s", " ", " we", "'ll", " '", "tis"]);
    assert_eq!(words("a\n\n b \t"), ["a", "\n\n", " b", " \t"]);
    assert_eq!(words("x=\t\ty 12ab"), ["x", "=", "\t", "\t", "y", " 12", "ab"]);
    assert_eq!(words("  \u{a0}é!?"), ["  ", "\u{a0}", "é", "!?"]);
    assert_eq!(words("''s'"), ["''", "s", "'"]);
    assert_eq!(words(""), [""; 0]);
}

#[test]
fn llama3_words_are_cut_as_worked_out_by_hand() {
    let words = |text| words(Family::Llama3, text);
    assert_eq!(words("It'Stoo"), ["It", "'S", "too"]);
    assert_eq!(
        words("(a 12345 b);\n\n  x"),
        ["(a", " ", "123", "45", " b", ");\n\n", " ", " x"]
    );
    assert_eq!(words("\n  \n\t y\n  "), ["\n  \n", "\t", " y", "\n", "  "]);
}

#[test]
fn cl100k_keeps_the_white_space_at_the_end_together() {
    assert_eq!(words(Family::Cl100k, "y\n  "), ["y", "\n  "]);
    assert_eq!(words(Family::Cl100k, "y\n  z"), ["y", "\n", " ", " z"]);
    assert_eq!(words(Family::Cl100k, "y;\n  "), ["y", ";\n", "  "]);
}

#[test]
fn o200k_words_are_cut_as_worked_out_by_hand() {
    let words = |text| words(Family::O200k, text);
    assert_eq!(
        words("camelCase HTMLParser's ABC"),
        ["camel", "Case", " HTMLParser's", " ABC"]
    );
    assert_eq!(words("it's's's x//\n/y"), ["it's", "'s's", " x", "//\n/", "y"]);
    assert_eq!(words("中A中AB"), ["中A中", "AB"]);
    assert_eq!(words("AB中CD中"), ["AB中CD中"]);
}

#[test]
fn words_are_cut_as_the_regular_expressions_cut_them() {
    let mut random = Random(1);
    for _ in 0..20_000 {
        let text = awkward_text(&mut random);
        for family in FAMILIES {
            assert_eq!(
                words(family, &text),
                regex_twin::words(family, &text),
                "{family:?} {text:?}"
            );
        }
    }
}

/// Where words end, by the blocks of a level, against one by one.
fn check_blocks(family: Family, text: &str) {
    let mut expected = Vec::new();
    while expected.last().copied().unwrap_or(0) < text.len() {
        expected.push(word_end_of(family, text, expected.last().copied().unwrap_or(0)));
    }
    for level in Level::available() {
        let found = word_ends_of(family, level, text);
        assert_eq!(found, expected, "{family:?} {level:?} {text:?}");
    }
}

#[test]
fn blocks_find_the_words_that_the_scanner_finds() {
    let mut random = Random(4);
    for _ in 0..6_000 {
        let text: String = (0..8).map(|_| awkward_text(&mut random)).collect();
        for family in FAMILIES {
            check_blocks(family, &text);
        }
    }
}

#[test]
fn blocks_find_the_same_words_at_every_alignment_and_every_cut() {
    let mut random = Random(5);
    for _ in 0..12 {
        let text: String = (0..16).map(|_| awkward_text(&mut random)).collect();
        for family in FAMILIES {
            for shift in 0..64 {
                // Letters, then a change of class: the words behind are the same, at another place.
                check_blocks(family, &format!("{}+{text}", "a".repeat(shift)));
            }
            for (cut, _) in text.char_indices() {
                check_blocks(family, &text[..cut]);
                check_blocks(family, &text[cut..]);
            }
        }
    }
}

#[test]
fn blocks_find_the_same_words_in_text_that_repeats_few_parts() {
    const PARTS: [&str; 24] = [
        " ", "  ", "\n", "\n\n", "\r\n", "\t", "a", "bc", "D", "EF", "1", "234", "!", "--", "/", "'s", "'LL", "'", "é",
        "Я", "中", "\u{301}", "…", "\u{a0}",
    ];
    let mut random = Random(6);
    for _ in 0..6_000 {
        let few: Vec<&str> = (0..1 + random.below(5)).map(|_| *random.pick(&PARTS)).collect();
        let text: String = (0..random.below(120)).map(|_| *random.pick(&few)).collect();
        for family in FAMILIES {
            check_blocks(family, &text);
        }
    }
}
