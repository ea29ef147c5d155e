# SPDX-License-Identifier: Apache-2.0
"""Training against Hugging Face's `BpeTrainer`, which is the judge of every byte of the file, and the slow twin."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest
import tokenizers
from pybench_tokenizer import (
    ArgumentError,
    FormatError,
    MemoryLimitError,
    Tokenizer,
    TokenizerError,
    UnsupportedError,
    Utf8Error,
    shared_object,
    train,
)

from bench.tokenizer.corpora import synthetic_documents
from pybench.preprocess.corpus import resolve_corpus
from tests.contract import tokenizer_texts
from tests.contract.tokenizer_files import REGEXES
from tests.contract.tokenizer_judge import END, trained_by_judge
from tests.oracles import bpe_training


def python_code() -> Iterator[str]:
    for _, text in resolve_corpus("python-stdlib", limit_bytes=400_000).documents():
        yield text.decode()


def few_words() -> Iterator[str]:
    yield from (text.decode() for text in islice(synthetic_documents(np.random.default_rng(1), 2_000), 40))


def new_words() -> Iterator[str]:
    yield from (text.decode() for text in islice(synthetic_documents(np.random.default_rng(2), None), 40))


def awkward() -> Iterator[str]:
    yield from tokenizer_texts.fuzzed(2_500, seed=31)


def ties() -> Iterator[str]:
    """Few letters, short words, counts of one and two: nearly every choice is among equals, and runs overlap."""
    chance = random.Random(32)
    for _ in range(60):
        letters = "".join(chance.sample("abcdefgh", 3))
        yield " ".join("".join(chance.choices(letters, k=chance.randint(1, 9))) for _ in range(40))


def not_english() -> Iterator[str]:
    chance = random.Random(33)
    scripts = [(0x430, 0x44F), (0x4E00, 0x4E80), (0xAC00, 0xAC60), (0x5D0, 0x5EA), (0x905, 0x94D), (0x1F600, 0x1F640)]
    for _ in range(120):
        first, last = chance.choice(scripts)
        words = ("".join(chr(chance.randint(first, last)) for _ in range(chance.randint(1, 8))) for _ in range(60))
        yield chance.choice((" ", "、", "\n")).join(words)


CORPORA: list[Callable[[], Iterator[str]]] = [python_code, few_words, new_words, awkward, ties, not_english]


@pytest.mark.parametrize("family", list(REGEXES))
@pytest.mark.parametrize("corpus", CORPORA)
def test_the_file_is_the_judges_byte_for_byte(corpus: Callable[[], Iterator[str]], family: str) -> None:
    documents = list(corpus())
    file = train(documents, vocab_size=3_000, family=family)
    assert file == trained_by_judge(documents, vocab_size=3_000, family=family)
    judge, tokenizer = tokenizers.Tokenizer.from_str(file.decode()), Tokenizer(file)
    for text in documents[:50]:
        assert tokenizer.encode(text).tolist() == judge.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize("min_frequency", [0, 1, 2, 3, 20, 10**9])
def test_rare_pairs_are_left_as_the_judge_leaves_them(min_frequency: int) -> None:
    documents = list(ties())
    options = {"vocab_size": 5_000, "min_frequency": min_frequency}
    assert train(documents, **options) == trained_by_judge(documents, **options)


@pytest.mark.parametrize(
    "special_tokens",
    [
        (),
        (END, "<pad>", "ü"),
        # Written as bytes are, or as merged tokens would be: those then have the special tokens' ids.
        ("a",),
        ("Ġt", END, "the", "in"),
    ],
)
def test_special_tokens_get_the_judges_ids(special_tokens: tuple[str, ...]) -> None:
    documents = list(python_code())
    options = {"vocab_size": 700, "special_tokens": special_tokens}
    assert train(documents, **options) == trained_by_judge(documents, **options)


@pytest.mark.parametrize("corpus", [ties, not_english])
def test_the_twin_learns_the_same(corpus: Callable[[], Iterator[str]]) -> None:
    documents = list(corpus())[:25]
    tokens, merges = bpe_training.learn(documents, 420, 2, (END,))
    model = json.loads(train(documents, vocab_size=420, min_frequency=2))["model"]
    assert list(model["vocab"]) == tokens
    assert [tuple(merge) for merge in model["merges"]] == merges


def test_merges_are_those_worked_out_by_hand() -> None:
    # `aa` stands twice in aaab and once in aab, `ab` once in each. What is left, aa a b and aa b, has three pairs once
    # each: `a b` has the smallest left id. Of `aa ab` and `aa b` then the second has the smaller right id.
    file = json.loads(train(["aaab", "aab", "b"], vocab_size=259, special_tokens=()))
    assert file["model"]["merges"] == [["a", "a"], ["a", "b"], ["aa", "b"]]


def test_bytes_strings_and_any_cut_of_the_stream_train_alike() -> None:
    documents = list(awkward())
    file = train(documents, vocab_size=1_000)
    assert train((text.encode() for text in documents), vocab_size=1_000) == file
    thrice = train(iter(documents * 3), vocab_size=1_000, min_frequency=6)
    assert thrice == train(documents, vocab_size=1_000, min_frequency=2)


def test_text_without_a_pair_gives_the_bytes_alone() -> None:
    for documents in ([], [""], ["a", "b"]):
        file = train(documents, vocab_size=1_000)
        assert file == trained_by_judge(documents, vocab_size=1_000)
        assert Tokenizer(file).vocab_size == 257


def test_more_distinct_words_than_memory_was_granted_for_are_an_error() -> None:
    documents = [f"w{number}" for number in range(50_000)]
    with pytest.raises(MemoryLimitError, match="distinct words do not fit word_table_bytes=1000000"):
        train(documents, vocab_size=1_000, word_table_bytes=1_000_000)
    assert len(train(documents, vocab_size=300, word_table_bytes=10_000_000)) > 1_000


def test_the_table_of_words_grows_with_distinct_words_only() -> None:
    """The memory that the documents take is theirs: a million words of which 1,000 differ stay 1,000."""
    words = " ".join(f"word{number}" for number in range(1_000))
    train((words for _ in range(1_000)), vocab_size=300, word_table_bytes=200_000)


def test_bad_text_is_named_by_its_place_in_its_document() -> None:
    for fine in (1, 5_000):  # the second is of several chunks
        with pytest.raises(Utf8Error, match=f"document {fine + 1} is not UTF-8 at byte 1") as caught:
            train(["fine " * 100] * fine + ["", b"x\xff", "fine"], vocab_size=300)
        assert (caught.value.position, caught.value.document) == (1, fine + 1)


def test_what_cannot_be_trained_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="cl100k"):
        train(["a"], vocab_size=300, family="cl100k")
    with pytest.raises(UnsupportedError, match="klingon"):
        train(["a"], vocab_size=300, family="klingon")
    with pytest.raises(UnsupportedError, match="a vocabulary of 256: special tokens and bytes alone are 257"):
        train(["a"], vocab_size=256)
    with pytest.raises(FormatError, match="given twice"):
        train(["a"], vocab_size=300, special_tokens=["<x>", "<x>"])
    with pytest.raises(FormatError, match="empty"):
        train(["a"], vocab_size=300, special_tokens=[""])
    with pytest.raises(UnsupportedError, match="at most"):
        train(["a"], vocab_size=1 << 22)
    for options in ({"vocab_size": -1}, {"min_frequency": 2**64}, {"word_table_bytes": 2**63}):
        ((name, value),) = options.items()
        with pytest.raises(ArgumentError, match=f"{name} is {value}"):
            train(["a"], **{"vocab_size": 300, **options})
    with pytest.raises(ArgumentError, match="documents"):
        train("one text", vocab_size=300)


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        (["fine", 7], "document 1 is of type int; it has to be str or bytes"),
        (iter([b"fine", "too", None]), "document 2 is of type NoneType"),
        ([["a", "list", "of", "str"]], "document 0 is of type list"),
        (5, "documents is of type int"),
        (b"one text", "documents is one text"),
        ([np.int64(7)], "document 0 is of type int64"),
        (["\ud800"], "surrogates not allowed"),
        ([np.array([1, 2])], "one byte an item"),
    ],
)
def test_documents_that_are_no_text_are_refused_by_number_and_type(documents: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        train(documents, vocab_size=300)


@pytest.mark.parametrize(
    ("special_tokens", "message"),
    [
        ("<x>", "special_tokens is one str, '<x>'; it has to be a sequence of them"),
        (None, "special_tokens is of type NoneType"),
        (["<x>", b"<y>"], "special token b'<y>' is of type bytes; it has to be a str"),
        (b"<x>", "special token 60 is of type int"),
        (["\ud800"], "surrogates not allowed"),
    ],
)
def test_special_tokens_that_are_not_several_str_are_refused(special_tokens: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        train(["a"], vocab_size=300, special_tokens=special_tokens)


@pytest.mark.parametrize(
    "options",
    [
        {"vocab_size": 256},
        {"vocab_size": 300, "special_tokens": ["<x>", "<x>"]},
        {"vocab_size": 300, "special_tokens": "<x>"},
        {"vocab_size": 300, "family": "cl100k"},
        {"vocab_size": 2**32},
    ],
)
def test_what_cannot_be_trained_is_refused_before_the_documents_are_read(options: dict[str, Any]) -> None:
    documents = iter(["a"])
    with pytest.raises(TokenizerError):
        train(documents, **options)
    assert list(documents) == ["a"]


def test_the_object_itself_refuses_null_pointers() -> None:
    ffi, lib = shared_object.ffi, shared_object.lib
    null, argument = ffi.NULL, shared_object.ERROR_ARGUMENT
    assert lib.pbt_trainer_new(null, 3, 0, null, null, 0, null) == argument
    assert lib.pbt_trainer_feed(null, null, null, 0, null) == argument
    assert lib.pbt_trainer_train(null, 300, 0, null, null, 0, null, null, 0, null) == argument
    assert lib.pbt_trainer_json(null, null, 0, null) == argument
    assert lib.pbt_trainer_words(null) == 0
    lib.pbt_trainer_free(null)
