# SPDX-License-Identifier: Apache-2.0
"""The path `python`: byte-level BPE to read, in plain Python. It gives the ids of Hugging Face tokenizers, slowly.

After GPT-2's `encoder.py` (OpenAI, MIT licence) and Karpathy's minbpe (MIT licence):

1. special (added) tokens are cut out of the text and become their id: those that are not `normalized` first, then the
   others out of what is between;
2. the rest is cut into words by GPT-2's regular expression;
3. a word starts as the ids of its UTF-8 bytes. Of all neighbouring pairs that have a merge, the one of the lowest rank
   is replaced by its product wherever it occurs, from left to right, until none is left.

`re` knows no `\\p{L}`, so the classes are written out, as Hugging Face tokenizers has them (`unicode_classes`).
Not here: other splitting rules, normalizers, unknown tokens; files that ask for them are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from pybench.preprocess import unicode_classes
from pybench.preprocess.corpus import Corpus
from pybench.preprocess.documents import not_utf8
from pybench.preprocess.packing import Tokenised, TokenisedDocument
from pybench.preprocess.vocabulary import end_of_text, ids_of_added_tokens, malformed, read_tokenizer, refused

# GPT-2 caches every word it has ever seen; this keeps the most recent, which are nearly all that come again.
CACHED_WORDS = 1 << 16
_RULE = "GPT-2 on path python, or of Llama 3, cl100k or o200k on rust and go_rust"


def gpt2_pattern() -> re.Pattern[str]:
    """GPT-2's splitting rule, for stdlib `re`:

    '(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+
    """
    letters, numbers, spaces = (
        _written_out(ranges)
        for ranges in (unicode_classes.LETTERS, unicode_classes.NUMBERS, unicode_classes.WHITE_SPACE)
    )
    return re.compile(
        rf"'(?:[sdmt]|ll|ve|re)| ?[{letters}]+| ?[{numbers}]+| ?[^{spaces}{letters}{numbers}]+"
        rf"|[{spaces}]+(?![^{spaces}])|[{spaces}]+"
    )


def byte_characters() -> dict[int, str]:
    """How byte-level BPE writes a byte as a character: printable ones as themselves, the others from U+0100 on."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAC + 1), *range(0xAE, 0xFF + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + n) for n, byte in enumerate(others)}


class PythonEncoder:
    """A tokenizer.json as readable Python."""

    def __init__(self, tokenizer: Path) -> None:
        parsed = read_tokenizer(tokenizer)
        _check_is_byte_level_bpe(parsed, tokenizer)
        vocabulary: dict[str, int] = parsed["model"]["vocab"]
        self._special = ids_of_added_tokens(parsed)
        self._ranks, self._products = _read_merges(parsed["model"].get("merges"), vocabulary, tokenizer)
        self._no_rank = len(self._ranks)
        self._whole = vocabulary if parsed["model"].get("ignore_merges") else {}
        self._written = byte_characters()
        try:
            self._byte_ids = [vocabulary[character] for _, character in sorted(self._written.items())]
        except KeyError as error:
            raise refused(tokenizer, f"a vocabulary without the byte {error}") from error
        self.made = Tokenised()
        self.end_id = end_of_text(self._special.get, tokenizer)
        self._special_patterns = _special_patterns(parsed["added_tokens"])
        self._word_pattern = gpt2_pattern()
        self._word_ids = lru_cache(CACHED_WORDS)(self._merge_word)

    def documents(self, corpus: Corpus) -> Iterator[TokenisedDocument]:
        for place, text in corpus.documents():
            try:
                decoded = text.decode()
            except UnicodeDecodeError as error:
                raise not_utf8(place, error.start) from error
            ids = self.encode(decoded)
            self.made = self.made.with_documents(1, len(ids), len(text))
            yield TokenisedDocument(np.array(ids, np.uint32), len(text))

    def encode(self, text: str) -> list[int]:
        """The ids of one document."""
        pieces = [text]
        for pattern in self._special_patterns:
            pieces = [cut for piece in pieces for cut in ([piece] if piece in self._special else pattern.split(piece))]
        ids: list[int] = []
        for piece in pieces:
            if piece in self._special:
                ids.append(self._special[piece])
                continue
            for word in self._word_pattern.findall(piece):
                ids.extend(self._word_ids(word))
        return ids

    def _merge_word(self, word: str) -> list[int]:
        if self._whole:  # `ignore_merges`: a word that is a token needs no merges, and may be out of their reach
            id_ = self._whole.get("".join(self._written[byte] for byte in word.encode()))
            if id_ is not None:
                return [id_]
        ids = [self._byte_ids[byte] for byte in word.encode()]
        while len(ids) > 1:
            pair = min(pairwise(ids), key=lambda pair: self._ranks.get(pair, self._no_rank))
            if pair not in self._ranks:
                break
            ids = _replace(pair, self._products[pair], ids)
        return ids


def _special_patterns(added: list[dict[str, Any]]) -> list[re.Pattern[str]]:
    """What cuts the added tokens out of a text, one pass after the other: not normalized ones, then normalized ones."""
    passes = ([token["content"] for token in added if bool(token.get("normalized")) is kind] for kind in (False, True))
    # The longest first: `re` takes the first alternative that fits.
    by_length = (sorted(contents, key=len, reverse=True) for contents in passes if contents)
    return [re.compile("(" + "|".join(map(re.escape, contents)) + ")") for contents in by_length]


def _replace(pair: tuple[int, int], product: int, ids: list[int]) -> list[int]:
    """`ids` with every occurrence of `pair` replaced by `product`."""
    replaced: list[int] = []
    at = 0
    while at < len(ids):
        is_pair = at + 1 < len(ids) and (ids[at], ids[at + 1]) == pair
        replaced.append(product if is_pair else ids[at])
        at += 2 if is_pair else 1
    return replaced


def _written_out(ranges: str) -> str:
    """`41-5a 61-7a` as the inside of a character class: `\\U00000041-\\U0000005a\\U00000061-\\U0000007a`."""
    bounds = (pair.split("-") for pair in ranges.split())
    return "".join(rf"\U{first:>08}-\U{last:>08}" for first, last in bounds)


def _check_is_byte_level_bpe(parsed: dict[str, Any], path: Path) -> None:
    splitting, model = parsed.get("pre_tokenizer"), parsed["model"]
    if model.get("type", "BPE") != "BPE":
        raise refused(path, f"its model is {model['type']}")
    if not isinstance(splitting, dict) or splitting.get("type") != "ByteLevel":
        raise refused(path, "its pre_tokenizer is not ByteLevel", _RULE)
    if not splitting.get("use_regex", True) or splitting.get("add_prefix_space"):
        raise refused(path, "its pre_tokenizer is not ByteLevel with use_regex and without add_prefix_space", _RULE)
    for name in ("normalizer", "truncation", "padding"):
        if parsed.get(name) is not None:
            raise refused(path, f"it has a {name}")
    options = ("dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix")
    for name in (*options, "fuse_unk", "byte_fallback"):
        if model.get(name):
            raise refused(path, f"its model has {name}")
    _check_added_tokens(parsed, path)


def _check_added_tokens(parsed: dict[str, Any], path: Path) -> None:
    """What the path `rust` refuses, too. The id in the file has to be the one that Hugging Face gives: someone may rely
    on what the file says."""
    ids = ids_of_added_tokens(parsed)
    seen: set[str] = set()
    for token in parsed["added_tokens"]:
        content = token["content"]
        if not content or any(token.get(flag) for flag in ("single_word", "lstrip", "rstrip")):
            raise refused(path, f"added token {content!r} is empty or has single_word, lstrip or rstrip")
        if content in seen:
            raise malformed(path, f'"{content}" is added twice')
        seen.add(content)
        if token["id"] != ids[content]:
            raise refused(path, f'added token "{content}" with id {token["id"]} where {ids[content]} is next')


def _read_merges(
    merges: object, vocabulary: dict[str, int], path: Path
) -> tuple[dict[tuple[int, int], int], dict[tuple[int, int], int]]:
    """Rank and product of each pair of ids. Every merge joins bytes and products of merges before it: only then may all
    occurrences of a pair be replaced at once."""
    ranks, products = {}, {}
    made = set(byte_characters().values())
    if not isinstance(merges, list):
        raise malformed(path, "its model has no list of merges")
    for rank, merge in enumerate(merges):
        try:
            left, right = merge.split(" ") if isinstance(merge, str) else merge
            pair = (vocabulary[left], vocabulary[right])
            products[pair] = vocabulary[left + right]
        except (KeyError, TypeError, ValueError) as error:
            raise malformed(path, f"merge {rank} is not two tokens of the vocabulary whose product is one") from error
        if left not in made or right not in made:
            raise refused(path, f"merge {rank} joins a token that no merge before it makes")
        made.add(left + right)
        ranks[pair] = rank
    return ranks, products
