# SPDX-License-Identifier: Apache-2.0
"""Texts that bring out differences between tokenizers: from a seed, so that a failure comes again."""

from __future__ import annotations

import random
import sys
import unicodedata
from collections.abc import Iterator

SPECIAL = "<|endoftext|>"
SURROGATES = range(0xD800, 0xE000)
PLAIN = {"Lo", "Cn", "Co"}  # ideographs and other letters without case, unassigned, private

# Every alternative of the splitting rule, and what lies on its edges.
_AWKWARD = [
    *(
        " ",
        " ",
        " ",
        "  ",
        "\t",
        "\n",
        "\n\n",
        "\r\n",
        "\x0b",
        "\x1c",
        "\x85",
        "\xa0",
        "\u2003",
        "\u3000",
        "\u200b",
        "\ufeff",
    ),
    *(
        "'",
        "'s",
        "'t",
        "'re",
        "'ve",
        "'m",
        "'ll",
        "'d",
        "'S",
        "'l",
        "'r",
        "’s",
        "''",
        "'Re",
        "'ſ",
        "ſ",
        "/",
        ";\n",
        "AB",
    ),
    *(
        "a",
        "B",
        "the",
        "The",
        "ing",
        "self",
        "return",
        "é",
        "ß",
        "ñ",
        "я",
        "ж",
        "中",
        "文字",
        "한국",
        "ア",
        "𝒳",
        "ﬁ",
        "ǅ",
        "ʰ",
    ),
    *("0", "1", "42", "2024", "²", "½", "٣", "Ⅷ", "一"),
    *("!", "...", "--", "==", "_", "__", "#", "€", "™", "🙂", "👩‍👩‍👧", "\u0301", "\u20dd", "\0", "\x7f", "\ufffd"),
    *(SPECIAL, "<|endoftext", "|>", "<", "<|", "<|endof<|endoftext|>text|>"),
]


def fuzzed(count: int, seed: int = 20260101) -> list[str]:
    """A mixture: awkward parts, random code points of any plane, random letters, runs of one character."""
    chance = random.Random(seed)
    makers = (_parts, _code_points, _letters, _runs)
    return [chance.choice(makers)(chance) for _ in range(count)]


def scalars_in_context(scalars_per_text: int = 4096) -> Iterator[str]:
    """Every Unicode scalar value behind a letter, and behind a space."""
    scalars = [chr(code) for code in range(sys.maxunicode + 1) if code not in SURROGATES]
    for start in range(0, len(scalars), scalars_per_text):
        yield "".join(f"a{one} {one}" for one in scalars[start : start + scalars_per_text])


def scalars_in_many_contexts(every: int, every_plain: int, scalars_per_text: int = 1024) -> Iterator[str]:
    """Unicode scalar values behind an apostrophe, between letters of either case, numbers, and line ends.

    `every`: of those within a run of one category, only each n-th; those at the ends of a run always.
    `every_plain`: the same of the categories that have all but 40,000 of them.
    """
    kinds = [unicodedata.category(chr(code)) for code in range(sys.maxunicode + 1)]
    scalars = [
        chr(code)
        for code, kind in enumerate(kinds)
        if code not in SURROGATES
        and (
            code % (every_plain if kind in PLAIN else every) == 0
            or kinds[code - 1] != kind
            or kinds[(code + 1) % len(kinds)] != kind
        )
    ]
    contexts = "'{0} A{0}b{0}1{0}\n{0}!{0}a\t{0}{0}C"
    for start in range(0, len(scalars), scalars_per_text):
        yield "".join(contexts.format(one) for one in scalars[start : start + scalars_per_text])


def _parts(chance: random.Random) -> str:
    return "".join(chance.choice(_AWKWARD) for _ in range(chance.randrange(30)))


def _code_points(chance: random.Random) -> str:
    limit = chance.choice((0x100, 0x800, 0x3000, 0x10000, sys.maxunicode + 1))
    codes = (chance.randrange(limit) for _ in range(chance.randrange(30)))
    return "".join(chr(code) if code not in SURROGATES else " " for code in codes)


def _letters(chance: random.Random) -> str:
    alphabet = chance.choice(("abcdefghijklmnopqrstuvwxyz", "etaoin ", "ab", "ABC abc 123 ,.", "абвг ", "的一是 "))
    return "".join(chance.choice(alphabet) for _ in range(chance.randrange(80)))


def _runs(chance: random.Random) -> str:
    runs = (chance.choice(_AWKWARD) * chance.choice((1, 2, 3, 15, 16, 17, 31, 64)) for _ in range(chance.randrange(4)))
    return "".join(runs)
