# SPDX-License-Identifier: Apache-2.0
"""The Rust tokenizer and the readable one against Hugging Face tokenizers, which is the judge."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import tokenizers
from pybench_tokenizer import FormatError, Tokenizer, UnsupportedError

from pybench.errors import InputError
from pybench.preprocess.corpus import resolve_corpus
from pybench.preprocess.python_bpe import PythonEncoder
from pybench.preprocess.vocabulary import find_tokenizer, vocabulary_size
from tests.contract import tokenizer_texts

VOCABULARY = find_tokenizer("tok32k")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def judge() -> tokenizers.Tokenizer:
    return tokenizers.Tokenizer.from_file(str(VOCABULARY))


def judged(judge: tokenizers.Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    return [encoding.ids for encoding in judge.encode_batch_fast(list(texts), add_special_tokens=False)]


def encoded(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    documents = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, documents)], dtype=np.uint64)
    ids, id_offsets = tokenizer.encode_batch(b"".join(documents), offsets)
    bounds = id_offsets.tolist()
    return [ids[begin:end].tolist() for begin, end in pairwise(bounds)]


def first_difference(texts: Sequence[str], found: list[list[int]], expected: list[list[int]]) -> str | None:
    for text, ours, theirs in zip(texts, found, expected, strict=True):
        if ours != theirs:
            return f"{text[:200]!r}: {ours[:50]}, expected {theirs[:50]}"
    return None


def test_fuzzed_strings_get_the_judges_ids_whatever_the_cache(judge: tokenizers.Tokenizer) -> None:
    texts = tokenizer_texts.fuzzed(25_000)
    expected = judged(judge, texts)
    for cache_entries in (0, 2, 1 << 17):
        found = encoded(Tokenizer.from_file(VOCABULARY, cache_entries=cache_entries), texts)
        assert first_difference(texts, found, expected) is None


def test_fuzzed_strings_get_the_judges_ids_in_readable_python(judge: tokenizers.Tokenizer) -> None:
    encoder = PythonEncoder(VOCABULARY)
    texts = tokenizer_texts.fuzzed(4_000, seed=7)
    assert first_difference(texts, [encoder.encode(text) for text in texts], judged(judge, texts)) is None


def test_a_token_beyond_the_merges_is_the_judges_where_merges_are_ignored(tmp_path: Path) -> None:
    """Readable Python takes it as the judge does; the shared object, which would have to look, refuses the file."""
    file = json.loads(VOCABULARY.read_text("utf-8"))
    file["model"]["ignore_merges"] = True
    last = file["model"]["merges"].pop()
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(file), "utf-8")
    word = (last if isinstance(last, str) else " ".join(last)).replace(" ", "").replace("\u0120", " ")
    judge = tokenizers.Tokenizer.from_file(str(path))
    texts = [word, f"{word} {word}", *tokenizer_texts.fuzzed(200, seed=9)]
    expected = judged(judge, texts)
    assert len(expected[0]) == 1
    encoder = PythonEncoder(path)
    assert first_difference(texts, [encoder.encode(text) for text in texts], expected) is None
    with pytest.raises(UnsupportedError, match="ignore_merges"):
        Tokenizer.from_file(path)


def test_every_scalar_value_in_context_gets_the_judges_ids(judge: tokenizers.Tokenizer) -> None:
    texts = list(tokenizer_texts.scalars_in_context())
    assert first_difference(texts, encoded(Tokenizer.from_file(VOCABULARY), texts), judged(judge, texts)) is None


def test_the_committed_unicode_classes_are_the_judges() -> None:
    script = ROOT / "tokenizer-rs/unicode_ranges.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_standard_library_gets_the_judges_ids(judge: tokenizers.Tokenizer) -> None:
    corpus = resolve_corpus("python-stdlib", limit_bytes=5_000_000)
    texts = [text.decode() for _, text in corpus.documents()]
    assert first_difference(texts, encoded(Tokenizer.from_file(VOCABULARY), texts), judged(judge, texts)) is None


def test_runs_of_every_length_get_the_judges_ids(judge: tokenizers.Tokenizer) -> None:
    lengths = [*range(1, 70), 127, 128, 129, 255, 256, 257, 1000, 4097]
    texts = [unit * length for unit in (" ", "a", "=", "\n", "é", "0", "ab", " a", "-") for length in lengths]
    assert first_difference(texts, encoded(Tokenizer.from_file(VOCABULARY), texts), judged(judge, texts)) is None


@pytest.mark.parametrize("unit", ["a", " ", "é", "-", "qxz"])
@pytest.mark.timeout(100)  # takes 0.2 s; quadratic would take hours
def test_a_megabyte_without_a_break_takes_no_quadratic_time(judge: tokenizers.Tokenizer, unit: str) -> None:
    text = unit * (1_000_000 // len(unit.encode()))
    tokenizer = Tokenizer.from_file(VOCABULARY)
    ids = tokenizer.encode(text)
    assert ids.tolist() == judged(judge, [text])[0]
    assert tokenizer.decode(ids) == text.encode()


def test_decoding_gives_the_bytes_back() -> None:
    tokenizer = Tokenizer.from_file(VOCABULARY)
    for text in tokenizer_texts.fuzzed(2_000, seed=3):
        assert tokenizer.decode(tokenizer.encode(text)) == text.encode()


def test_any_cut_of_ids_decodes_to_the_tokens_bytes() -> None:
    tokenizer = Tokenizer.from_file(VOCABULARY)
    every_id = np.arange(tokenizer.vocab_size)
    assert b"".join(tokenizer.decode([one]) for one in every_id.tolist()) == tokenizer.decode(every_id)


def test_special_tokens_of_both_kinds_are_cut_out_as_the_judge_does(tmp_path: Path) -> None:
    file = json.loads(VOCABULARY.read_text("utf-8"))
    base = {"single_word": False, "lstrip": False, "rstrip": False, "special": True}
    # `ß` is in the vocabulary already: it is how byte-level BPE writes the byte 0xdf.
    added = {
        "<|end": (32000, False),
        "<a> b": (32001, True),
        "ß": (156, True),
        "xß": (32002, False),
        "  ": (32003, True),
    }
    for content, (id_, normalized) in added.items():
        file["added_tokens"].append({**base, "id": id_, "content": content, "normalized": normalized})
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(file), "utf-8")
    judge, tokenizer = tokenizers.Tokenizer.from_file(str(path)), Tokenizer.from_file(path)
    pieces = [*added, tokenizer_texts.SPECIAL, "<", "|end", "oftext|>", "<a>", " ", "b", "x", "it's"]
    chance = np.random.default_rng(5)
    texts = ["".join(chance.choice(pieces, chance.integers(0, 12))) for _ in range(3_000)]
    expected, readable = judged(judge, texts), PythonEncoder(path)
    assert first_difference(texts, encoded(tokenizer, texts), expected) is None
    assert first_difference(texts, [readable.encode(text) for text in texts], expected) is None
    assert all(tokenizer.decode(tokenizer.encode(text)) == text.encode() for text in texts if "ß" not in text)
    assert tokenizer.vocab_size == judge.get_vocab_size() == 32004


@pytest.mark.parametrize("stated", [5, 32_040])
def test_an_id_that_the_judge_disregards_is_refused_and_not_counted(tmp_path: Path, stated: int) -> None:
    file = json.loads(VOCABULARY.read_text("utf-8"))
    file["added_tokens"].append(file["added_tokens"][0] | {"content": "<x>", "id": stated})
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(file), "utf-8")
    assert tokenizers.Tokenizer.from_file(str(path)).encode("<x>").ids == [32_000]
    assert vocabulary_size(path) == 32_001
    reason = f'added token "<x>" with id {stated} where 32000 is next'
    with pytest.raises(UnsupportedError, match=reason):
        Tokenizer.from_file(path)
    with pytest.raises(InputError, match=reason):
        PythonEncoder(path)


def test_a_token_that_is_added_twice_is_refused_by_both(tmp_path: Path) -> None:
    file = json.loads(VOCABULARY.read_text("utf-8"))
    file["added_tokens"] *= 2
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(file), "utf-8")
    with pytest.raises(FormatError, match="is added twice"):
        Tokenizer.from_file(path)
    with pytest.raises(InputError, match="is added twice"):
        PythonEncoder(path)


def test_a_vocabulary_beyond_16_bits_gets_wide_ids(tmp_path: Path) -> None:
    file = json.loads(VOCABULARY.read_text("utf-8"))
    base = {"single_word": False, "lstrip": False, "rstrip": False, "special": True, "normalized": False}
    file["added_tokens"] += [{**base, "id": 32000 + n, "content": f"<{n}>"} for n in range(34_000)]
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(file), "utf-8")
    judge, tokenizer = tokenizers.Tokenizer.from_file(str(path)), Tokenizer.from_file(path)
    assert (tokenizer.vocab_size, tokenizer.dtype) == (66_000, np.dtype(np.uint32))
    texts = [f"<{n}> it's {text}<33999>" for n, text in enumerate(tokenizer_texts.fuzzed(2_000, seed=11))]
    found = encoded(tokenizer, texts)
    assert first_difference(texts, found, judged(judge, texts)) is None
    assert tokenizer.decode(found[5]) == texts[5].encode()


def test_a_vocabulary_of_exactly_16_bits_keeps_narrow_ids(tmp_path: Path) -> None:
    file = json.loads(VOCABULARY.read_text("utf-8"))
    base = {"single_word": False, "lstrip": False, "rstrip": False, "special": True, "normalized": False}
    file["added_tokens"] += [{**base, "id": 32000 + n, "content": f"<{n}>"} for n in range(65_536 - 32_000)]
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(file), "utf-8")
    tokenizer = Tokenizer.from_file(path)
    assert tokenizer.dtype == np.dtype(np.uint16)
    assert tokenizer.encode("<33535>").tolist() == [65_535]
