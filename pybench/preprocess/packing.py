# SPDX-License-Identifier: Apache-2.0
"""How documents become batches: the one definition, which every path follows.

The ids of each document are followed by the id of `<|endoftext|>`. All are concatenated in the order of the corpus and
cut into rows of `seq_len` ids, and every `batch` rows are a batch. What is left after the last full batch is dropped.
The hash of ids is the sha256 over the ids of all batches in order, as 32-bit little-endian numbers.

A ragged batch has a row a document instead: its ids and the end-of-text id, cut into rows of `seq_len` where it is
longer. Nothing is padded and nothing dropped; the last batch may have fewer rows.

Not here: padding, masks between documents, shuffling.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.unsignedinteger[Any]] | NDArray[np.signedinteger[Any]]


@dataclass(frozen=True, slots=True)
class TokenisedDocument:
    """ids: integers [n], without the end-of-text id. text_bytes: length of the text that they stand for."""

    ids: Ids
    text_bytes: int


@dataclass(frozen=True, slots=True)
class Tokenised:
    """What a path in the process of the consumer has tokenised so far, delivered or not. ids: with those that end
    documents. text_bytes: of these documents."""

    ids: int = 0
    text_bytes: int = 0

    def with_documents(self, documents: int, ids: int, text_bytes: int) -> Tokenised:
        """And so many documents more, of `ids` without those that end them."""
        return Tokenised(self.ids + ids + documents, self.text_bytes + text_bytes)

    def since(self, before: Tokenised) -> Tokenised:
        """What came after."""
        return Tokenised(self.ids - before.ids, self.text_bytes - before.text_bytes)


@dataclass(frozen=True, slots=True)
class Batch:
    """ids: integers [batch, seq_len]. text_bytes: of all documents that end in this batch or an earlier one."""

    ids: NDArray[Any]
    text_bytes: int


def pack(
    documents: Iterable[TokenisedDocument],
    batch: int,
    seq_len: int,
    end_id: int,
    room: Callable[[], NDArray[Any]] | None = None,
) -> Iterator[Batch]:
    """Full batches. A document is taken only when the batch before it is used up.

    `room`: gives a flat array of `batch * seq_len` integers, wide enough, when a batch is begun; else each is a new
    int64 array. It is asked for one while a batch is asked for, never ahead.
    """
    room = room or (lambda: np.empty(batch * seq_len, np.int64))
    end = np.array([end_id], np.int64)
    flat = room()
    filled, text_bytes = 0, 0
    for document in documents:
        for piece, ended_bytes in ((document.ids, 0), (end, document.text_bytes)):
            taken = 0
            while taken < len(piece):
                count = min(len(piece) - taken, len(flat) - filled)
                flat[filled : filled + count] = piece[taken : taken + count]
                filled += count
                taken += count
                if taken == len(piece):
                    text_bytes += ended_bytes
                if filled == len(flat):
                    yield Batch(flat.reshape(batch, seq_len), text_bytes)
                    flat, filled = room(), 0


@dataclass(frozen=True, slots=True)
class RaggedBatch:
    """ids: int64 [n], row after row. offsets: int64 [rows + 1], where each begins. text_bytes: as of a `Batch`."""

    ids: NDArray[np.int64]
    offsets: NDArray[np.int64]
    text_bytes: int


def pack_ragged(documents: Iterable[TokenisedDocument], batch: int, seq_len: int, end_id: int) -> Iterator[RaggedBatch]:
    """Batches of up to `batch` rows of up to `seq_len` ids, each new arrays."""
    rows: list[Ids] = []
    text_bytes = 0
    for document in documents:
        whole = np.append(document.ids.astype(np.int64), end_id)
        for begin in range(0, len(whole), seq_len):
            rows.append(whole[begin : begin + seq_len])
            text_bytes += document.text_bytes if begin + seq_len >= len(whole) else 0
            if len(rows) == batch:
                yield _joined(rows, text_bytes)
                rows = []
    if rows:
        yield _joined(rows, text_bytes)


def _joined(rows: list[Ids], text_bytes: int) -> RaggedBatch:
    return RaggedBatch(np.concatenate(rows), np.cumsum([0, *map(len, rows)], dtype=np.int64), text_bytes)


def hashed_form(ids: Ids) -> bytes:
    """The bytes of one batch that go into the hash of ids."""
    return np.ascontiguousarray(ids).astype("<u4").tobytes()
