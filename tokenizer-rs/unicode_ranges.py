# SPDX-License-Identifier: Apache-2.0
"""Writes the Unicode classes of the splitting rules for Rust and for Python, as Hugging Face tokenizers has them.

GPT-2's rule needs three classes: letters (\\p{L}), numbers (\\p{N}) and white space (\\s). o200k's tells lower-case
letters, upper-case ones and marks apart, too; Python implements GPT-2's only. Every Unicode version moves some code
points between them, so neither Python's `unicodedata` nor the Rust standard library decides here. The installed
`tokenizers` is asked about every code point, with the very regular expressions that it uses.

    python tokenizer-rs/unicode_ranges.py          writes both tables
    python tokenizer-rs/unicode_ranges.py --check  exits 1 when a committed table differs from what it would write

It does not download the Unicode database and knows no Unicode version of its own.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import tokenizers
from tokenizers import Regex, pre_tokenizers

ROOT = Path(__file__).resolve().parent.parent
RUST_TABLE = ROOT / "tokenizer-rs/src/unicode_ranges.rs"
PYTHON_TABLE = ROOT / "pybench/preprocess/unicode_classes.py"
CLASSES = {"LETTERS": r"\p{L}", "NUMBERS": r"\p{N}", "WHITE_SPACE": r"\s"}
CLASSES_OF_RUST = {"LOWER": r"\p{Ll}", "UPPER": r"[\p{Lu}\p{Lt}]", "MARKS": r"\p{M}"}
SURROGATES = range(0xD800, 0xE000)
Ranges = list[tuple[int, int]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    ranges = {name: ask_ranges(expression) for name, expression in CLASSES.items()}
    more = {name: ask_ranges(expression) for name, expression in CLASSES_OF_RUST.items()}
    tables = {RUST_TABLE: rust_table(ranges | more), PYTHON_TABLE: python_table(ranges)}
    stale = [path for path, text in tables.items() if not path.exists() or path.read_text("utf-8") != text]
    if check:
        for path in stale:
            print(
                f"{path.relative_to(ROOT)} differs from what tokenizers {tokenizers.__version__} says", file=sys.stderr
            )
        return 1 if stale else 0
    for path in stale:
        path.write_text(tables[path], "utf-8")
    return 0


def ask_ranges(expression: str) -> Ranges:
    """The code points that `expression` matches, as inclusive ranges, found by splitting text that holds them all."""
    characters = [chr(code) for code in range(sys.maxunicode + 1) if code not in SURROGATES]
    splitter = pre_tokenizers.Split(Regex(expression), behavior="removed", invert=True)
    matched: list[int] = []
    for start in range(0, len(characters), 4096):
        chunk = "".join(characters[start : start + 4096])
        matched += [ord(character) for piece, _ in splitter.pre_tokenize_str(chunk) for character in piece]
    ranges: Ranges = []
    for code in matched:
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1] = (ranges[-1][0], code)
        else:
            ranges.append((code, code))
    return ranges


def wrapped(items: list[str], separator: str, indent: str) -> str:
    lines, line = [], indent
    for item in items:
        if len(line) + len(item) + len(separator) > 118:
            lines.append(line.rstrip())
            line = indent
        line += item + separator
    return "\n".join([*lines, line.rstrip()])


def rust_table(ranges: dict[str, Ranges]) -> str:
    text = (
        "// SPDX-License-Identifier: Apache-2.0\n"
        "//! Written by `unicode_ranges.py`, which asked Hugging Face tokenizers about every code point; not edited\n"
        "//! by hand. Inclusive ranges of code points, ascending.\n"
    )
    for name, pairs in ranges.items():
        body = wrapped([f"(0x{first:x}, 0x{last:x})" for first, last in pairs], ", ", "    ")
        text += f"\n#[rustfmt::skip]\npub const {name}: &[(u32, u32)] = &[\n{body}\n];\n"
    return text


def python_table(ranges: dict[str, Ranges]) -> str:
    text = (
        "# SPDX-License-Identifier: Apache-2.0\n"
        '"""The characters of each class of the GPT-2 splitting rule, as ranges for a character class of `re`.\n\n'
        "Written by `tokenizer-rs/unicode_ranges.py`, which asked Hugging Face tokenizers about every code point; not\n"
        "edited by hand. `first-last` in hexadecimal, inclusive, ascending.\n"
        '"""\n'
    )
    for name, pairs in ranges.items():
        body = wrapped([f"{first:x}-{last:x}" for first, last in pairs], " ", "")
        text += f'\n{name} = """\n{body}\n"""\n'
    return text


if __name__ == "__main__":
    raise SystemExit(main())
