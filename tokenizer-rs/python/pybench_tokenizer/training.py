# SPDX-License-Identifier: Apache-2.0
"""Training of vocabularies, with the merges of Hugging Face's `BpeTrainer`. It converts, calls and maps errors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pybench_tokenizer.arguments import bounded_integer, name_bytes
from pybench_tokenizer.documents import Text, buffer_of, chunks, joined, pointer, special_texts, utf8_error
from pybench_tokenizer.errors import MemoryLimitError
from pybench_tokenizer.shared_object import (
    ERROR_MEMORY,
    ERROR_UTF8,
    OK,
    call_explained,
    error_of,
    ffi,
    lib,
)

# Some 50 bytes a distinct word, and twice that while it grows: 40 to 80 million of them.
WORD_TABLE_BYTES = 4 << 30


def train(
    documents: Iterable[str | Text],
    *,
    vocab_size: int,
    family: str = "gpt2",
    min_frequency: int = 0,
    special_tokens: Sequence[str] = ("<|endoftext|>",),
    word_table_bytes: int = WORD_TABLE_BYTES,
) -> bytes:
    """The tokenizer.json of a vocabulary learned from documents, byte for byte as Hugging Face tokenizers saves it.

    documents: a stream of str or of bytes of UTF-8; each goes by once and is not kept, only its distinct words are.
    vocab_size: special tokens, the 256 bytes and merged tokens together; fewer come out where the text has no more
    pairs. family: how text is split into words, "gpt2", "llama3" or "o200k". min_frequency: rarer pairs are not merged.
    word_table_bytes: what the table of distinct words may take; merging takes up to five times what it holds besides.

    Equal to `BpeTrainer(vocab_size, min_frequency, special_tokens, initial_alphabet=ByteLevel.alphabet())`. What can be
    refused without the documents is refused before they are read. Raises:

    - UnsupportedError for a family that a tokenizer.json cannot name and a vocab_size that bytes alone exceed
    - FormatError for special tokens that are empty or given twice
    - Utf8Error with the number of the document and the position in it
    - MemoryLimitError
    - ArgumentError for a number out of range, one text in place of a sequence, what is no text and any other type that
      an argument cannot have
    """
    vocab_size = bounded_integer("vocab_size", vocab_size, 32)
    min_frequency = bounded_integer("min_frequency", min_frequency, 64)
    word_table_bytes = bounded_integer("word_table_bytes", word_table_bytes, 63)
    texts, ends = special_texts(special_tokens)
    trainer, json_bytes = _new_trainer(family, word_table_bytes), ffi.new("size_t *")

    def learn() -> None:
        recipe = (vocab_size, min_frequency, texts, pointer("uint64_t *", ends), len(ends))
        call_explained(lambda *why: lib.pbt_trainer_train(trainer, *recipe, json_bytes, *why), "training")

    learn()  # from no words: what cannot be trained is refused before the documents are read
    first = 0
    for chunk in chunks(documents):
        _feed(trainer, chunk, first, word_table_bytes)
        first += len(chunk)
    learn()
    json = bytearray(int(json_bytes[0]))
    status = lib.pbt_trainer_json(trainer, buffer_of(json), len(json), json_bytes)
    if status != OK:
        raise error_of(status, "the trained vocabulary")
    return bytes(json)


def _new_trainer(family: str, word_table_bytes: int) -> Any:
    name, place = name_bytes("family", family), ffi.new("pbt_trainer **")
    call_explained(lambda *why: lib.pbt_trainer_new(name, len(name), word_table_bytes, place, *why), "training")
    return ffi.gc(place[0], lib.pbt_trainer_free)


def _feed(trainer: Any, documents: list[str | Text], first: int, word_table_bytes: int) -> None:
    text, offsets = joined(documents)
    position = ffi.new("size_t *")
    status = lib.pbt_trainer_feed(trainer, text, pointer("uint64_t *", offsets), len(documents), position)
    if status == ERROR_UTF8:
        raise utf8_error(int(position[0]), offsets, first)
    if status == ERROR_MEMORY:
        words = int(lib.pbt_trainer_words(trainer))
        raise MemoryLimitError(
            f"{words} distinct words do not fit word_table_bytes={word_table_bytes}; give more, or documents with "
            "fewer of them"
        )
    if status != OK:
        raise error_of(status, "a document of 4 GiB")
