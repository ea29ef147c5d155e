# SPDX-License-Identifier: Apache-2.0
"""How documents become batches: the one definition, which every path follows.

The ids of each document are followed by the id of `<|endoftext|>`; all are concatenated in the order of the corpus, cut
into rows of `seq_len` ids, and every `batch` rows are a batch. What is left after the last full batch is dropped. The
hash of ids is the sha256 over the ids of all batches in order, as 32-bit little-endian numbers.

Not here: padding, masks between documents, shuffling.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.unsignedinteger[Any]] | NDArray[np.signedinteger[Any]]


@dataclass(frozen=True, slots=True)
class Document:
    """ids: integers [n], without the end-of-text id. text_bytes: length of the text that they stand for."""

    ids: Ids
    text_bytes: int


@dataclass(frozen=True, slots=True)
class Batch:
    """ids: int64 [batch, seq_len]. text_bytes: of all documents that end in this batch or an earlier one."""

    ids: NDArray[np.int64]
    text_bytes: int


def pack(documents: Iterable[Document], batch: int, seq_len: int, end_id: int) -> Iterator[Batch]:
    """Full batches, each a new array. A document is taken only when the batch before it is used up."""
    end = np.array([end_id], np.int64)
    flat = np.empty(batch * seq_len, np.int64)
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
                    flat, filled = np.empty(batch * seq_len, np.int64), 0


def hashed_form(ids: Ids) -> bytes:
    """The bytes of one batch that go into the hash of ids."""
    return np.ascontiguousarray(ids).astype("<u4").tobytes()
