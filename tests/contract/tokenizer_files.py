# SPDX-License-Identifier: Apache-2.0
"""Vocabularies that show every boundary between words: any two bytes merge, in a random order.

A vocabulary trained on text never merges across most boundaries, so it hides where a text was cut wrongly.
"""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path
from typing import Any

from pybench.preprocess.python_bpe import byte_characters

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# tiktoken 0.14
CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$"
    r"|\s*[\r\n]|\s+(?!\S)|\s"
)
REGEXES = {"gpt2": None, "llama3": LLAMA3, "o200k": O200K}
# As many as leave every id in 16 bits.
NARROW_PAIRS = 65_535 - 256
# Fits only 32 bits.
WIDE_PAIRS = 256 * 256


def pre_tokenizer(family: str) -> dict[str, Any]:
    """That part of a tokenizer.json, as its makers write it."""
    regex = REGEXES[family]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": regex is None}
    if regex is None:
        return byte_level
    split = {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}
    return {"type": "Sequence", "pretokenizers": [split, byte_level]}


def pairs(count: int) -> list[tuple[int, int]]:
    every = [(left, right) for left in range(256) for right in range(256)]
    random.Random(20260101).shuffle(every)
    return every[:count]


def write_tokenizer_json(path: Path, family: str, pair_count: int = NARROW_PAIRS) -> Path:
    written = byte_characters()
    merges = [(written[left], written[right]) for left, right in pairs(pair_count)]
    tokens = [*(written[byte] for byte in range(256)), *(left + right for left, right in merges)]
    file = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": pre_tokenizer(family),
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: id_ for id_, token in enumerate(tokens)},
            "merges": merges,
        },
    }
    path.write_text(json.dumps(file), "utf-8")
    return path


def ranks(pair_count: int = NARROW_PAIRS) -> dict[bytes, int]:
    tokens = [*(bytes([byte]) for byte in range(256)), *map(bytes, pairs(pair_count))]
    return {token: rank for rank, token in enumerate(tokens)}


def write_ranks(path: Path, of_tokens: dict[bytes, int]) -> Path:
    """As tiktoken's `dump_tiktoken_bpe` does."""
    ordered = sorted(of_tokens.items(), key=lambda item: item[1])
    path.write_bytes(b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in ordered))
    return path
