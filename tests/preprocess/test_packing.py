# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
import pytest

from pybench.preprocess.packing import TokenisedDocument, hashed_form, pack


def documents(*lengths: int) -> list[TokenisedDocument]:
    """Ids count up over all documents; each document stands for ten bytes of text an id."""
    begins = np.cumsum([0, *lengths])
    return [
        TokenisedDocument(np.arange(begin, begin + length, dtype=np.uint16), 10 * length)
        for begin, length in zip(begins, lengths, strict=False)
    ]


def test_documents_become_rows_as_worked_out_by_hand() -> None:
    first, second = pack(documents(3, 2, 5), batch=2, seq_len=3, end_id=99)
    assert first.ids.tolist() == [[0, 1, 2], [99, 3, 4]]
    assert second.ids.tolist() == [[99, 5, 6], [7, 8, 9]]
    assert (first.ids.dtype, first.ids.shape) == (np.int64, (2, 3))


def test_text_counts_when_its_end_is_delivered() -> None:
    first, second = pack(documents(3, 2, 5), batch=2, seq_len=3, end_id=99)
    # The second document's end-of-text id begins the second batch; the third's would follow it.
    assert (first.text_bytes, second.text_bytes) == (30, 50)


@pytest.mark.parametrize("batch", [1, 2, 3])
@pytest.mark.parametrize("seq_len", [1, 2, 7])
def test_any_shape_is_a_prefix_of_the_same_sequence(batch: int, seq_len: int) -> None:
    sequence = [*range(4), 99, 99, *range(4, 24), 99, 24, 99]
    packed = list(pack(documents(4, 0, 20, 1), batch, seq_len, end_id=99))
    flat = [id_ for one in packed for id_ in one.ids.ravel().tolist()]
    assert flat == sequence[: len(flat)]
    assert len(sequence) - len(flat) < batch * seq_len


def test_no_batch_is_made_of_too_little() -> None:
    assert list(pack(documents(4), batch=2, seq_len=3, end_id=0)) == []
    assert list(pack([], batch=1, seq_len=1, end_id=0)) == []


def test_documents_are_taken_only_when_they_are_needed() -> None:
    taken = []

    def lazily() -> Iterator[TokenisedDocument]:
        for number, document in enumerate(documents(4, 4, 4)):
            taken.append(number)
            yield document

    batches = pack(lazily(), batch=1, seq_len=5, end_id=0)
    next(batches)
    assert taken == [0]
    next(batches)
    assert taken == [0, 1]


def test_batches_do_not_share_memory() -> None:
    first, second = pack(documents(9), batch=1, seq_len=5, end_id=0)
    assert not np.shares_memory(first.ids, second.ids)


def test_the_hash_is_over_32_bit_little_endian_ids() -> None:
    ids = np.array([[1, 2], [3, 70_000]], np.int64)
    expected = bytes([1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0x70, 0x11, 1, 0])
    assert hashed_form(ids) == expected
    assert hashlib.sha256(hashed_form(ids.astype(np.uint32))).digest() == hashlib.sha256(expected).digest()
