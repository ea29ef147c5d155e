# SPDX-License-Identifier: Apache-2.0
"""Arguments of types that they cannot have: one clear error each, which names the argument. (Documents and special
tokens, which are texts, are in the tests of the boundary and of training.)"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pybench_tokenizer
import pytest
from pybench_tokenizer import ArgumentError, FileError, train

from pybench.preprocess.vocabulary import find_tokenizer

VOCABULARY = find_tokenizer("tok32k")
# The checker of types would say the same of every call here.
Tokenizer: Any = pybench_tokenizer.Tokenizer


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return Tokenizer.from_file(VOCABULARY)


CALLS: dict[str, tuple[Callable[[Any], object], str]] = {
    "json": (lambda _: Tokenizer(VOCABULARY.read_text("utf-8")), "json has to be contiguous bytes"),
    "path": (lambda _: Tokenizer.from_file(5), "path is of type int; it has to be a str or a path"),
    "bytes path": (lambda _: Tokenizer.from_file(b"x"), "path is of type bytes; it has to be a str or a path"),
    "cache": (
        lambda _: Tokenizer.from_file(VOCABULARY, cache_entries="2"),
        "cache_entries is of type str; it has to be an int",
    ),
    "rank path": (lambda _: Tokenizer.from_ranks(None, "gpt2"), "path is of type NoneType"),
    "family": (lambda _: Tokenizer.from_ranks(VOCABULARY, 5), "family is of type int; it has to be a str"),
    "specials": (
        lambda _: Tokenizer.from_ranks(VOCABULARY, "gpt2", ["<x>"]),
        "special_tokens is of type list; it has to be a mapping from texts to ids",
    ),
    "text": (lambda one: one.encode(5), "the text has to be contiguous bytes"),
    "token": (lambda one: one.token_to_id(5), "the token has to be contiguous bytes"),
    "offsets": (lambda one: one.encode_batch(b"ab", [[0], [1, 2]]), "offsets have to be integers in one dimension"),
    "no offset": (lambda one: one.encode_batch(b"ab", []), "offsets have to be at least one"),
    "ids": (lambda one: one.decode([[1], [2, 3]]), "ids have to be integers in one dimension"),
    "chunk": (
        lambda one: list(one.encode_stream(["a"], chunk_bytes="5")),
        "chunk_bytes is of type str; it has to be an int",
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_argument_of_another_type_is_named(tokenizer: Any, name: str) -> None:
    call, message = CALLS[name]
    with pytest.raises(ArgumentError, match=f"^{message}"):
        call(tokenizer)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocab_size": "300"}, "vocab_size is of type str; it has to be an int"),
        ({"vocab_size": 300.0}, "vocab_size is of type float; it has to be an int"),
        ({"min_frequency": None}, "min_frequency is of type NoneType; it has to be an int"),
        ({"word_table_bytes": 1e9}, "word_table_bytes is of type float; it has to be an int"),
        ({"family": 5}, "family is of type int; it has to be a str"),
    ],
)
def test_an_argument_of_training_of_another_type_is_named(options: dict[str, Any], message: str) -> None:
    documents = iter(["a"])
    with pytest.raises(ArgumentError, match=f"^{message}$"):
        train(documents, **{"vocab_size": 300, **options})
    assert list(documents) == ["a"]


def test_integers_of_numpy_are_integers(tokenizer: Any) -> None:
    numbers: dict[str, Any] = {"vocab_size": np.int32(258), "min_frequency": np.uint8(1)}
    assert train(["aaa"], **numbers) == train(["aaa"], vocab_size=258, min_frequency=1)
    assert Tokenizer.from_file(VOCABULARY, cache_entries=np.int64(0)).worker_bytes() < tokenizer.worker_bytes()


def test_any_contiguous_buffer_is_a_vocabulary() -> None:
    json = VOCABULARY.read_bytes()
    for buffer in (bytearray(json), memoryview(json)):
        assert Tokenizer(buffer).vocab_size == 32_000


def test_a_name_that_no_file_can_have_is_an_error_that_shows_it() -> None:
    with pytest.raises(FileError, match=r"'a\\x00b': embedded null byte"):
        Tokenizer.from_file("a\0b")
