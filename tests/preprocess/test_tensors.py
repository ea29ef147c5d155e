# SPDX-License-Identifier: Apache-2.0
"""Batches as tensors without a GPU, and when a slot goes back. With one: tests/gpu/test_token_feed.py."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from pybench.preprocess import find_tokenizer, open_batches, resolve_corpus  # noqa: E402
from pybench.preprocess.synthetic import SYNTHETIC_BATCHES  # noqa: E402
from pybench.preprocess.tensors import SlotLedger, TensorBatches, widened  # noqa: E402

TOKENIZER = find_tokenizer("tok32k")
pytestmark = pytest.mark.process  # the orchestrator of go_rust

PATHS = ("python", "hf", "rust", "go_rust")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(30):
        (tmp_path / f"{number:02}.txt").write_text(f"Document {number}: naïve 漢字\n" * (number + 1), "utf-8")
    return tmp_path


@pytest.mark.parametrize("path", PATHS)
def test_tensors_hold_the_ids_of_the_arrays_and_belong_to_the_caller(folder: Path, path: str) -> None:
    corpus = resolve_corpus(str(folder))
    with open_batches("rust", TOKENIZER, corpus, 2, 16) as stream:
        expected = np.stack(list(stream))
    looked = []
    with open_batches(path, TOKENIZER, corpus, 2, 16, 2) as stream:
        batches = TensorBatches(stream, "cpu", lambda ids: looked.append(ids.astype(np.int64)))
        tensors = [batches.next() for _ in expected]
        with pytest.raises(StopIteration):
            batches.next()
        batches.close()
        assert stream.tokens == expected.size
    assert {(tensor.dtype, tuple(tensor.shape)) for tensor in tensors} == {(torch.int64, (2, 16))}
    np.testing.assert_array_equal(torch.stack(tensors).numpy(), expected)
    np.testing.assert_array_equal(np.stack(looked), expected)


@pytest.mark.parametrize("path", ["none", "rust", "go_rust"])
def test_slots_lie_in_the_memory_that_a_gpu_is_told_of(folder: Path, path: str) -> None:
    with open_batches(path, TOKENIZER, resolve_corpus(str(folder)), 2, 16, 1, epochs=0) as stream:
        memory = stream.memory
        begin = memory.ctypes.data
        for _ in range(3 * stream.slots):
            slot = stream.take()
            assert slot.ids.dtype == np.uint16
            assert begin <= slot.ids.ctypes.data
            assert slot.ids.ctypes.data + slot.ids.nbytes <= begin + memory.nbytes
            stream.give_back(slot.index)


@pytest.mark.parametrize("path", ["rust", "go_rust"])
def test_a_slot_keeps_its_ids_until_it_is_given_back(folder: Path, path: str) -> None:
    with open_batches(path, TOKENIZER, resolve_corpus(str(folder)), 2, 16, 1, epochs=0) as stream:
        held = [stream.take() for _ in range(stream.slots - 1)]
        copies = [slot.ids.copy() for slot in held]
        last = stream.take()
        stream.give_back(last.index)
        for slot, copied in zip(held, copies, strict=True):
            np.testing.assert_array_equal(slot.ids, copied)


def test_synthetic_slots_come_in_turn_and_cost_nothing_to_make(folder: Path) -> None:
    with open_batches("none", TOKENIZER, resolve_corpus(str(folder)), 2, 16, seed=3) as stream:
        batches = TensorBatches(stream, "cpu")
        first = [batches.next() for _ in range(SYNTHETIC_BATCHES)]
        again = [batches.next() for _ in range(SYNTHETIC_BATCHES)]
    assert all(torch.equal(one, other) for one, other in zip(first, again, strict=True))
    assert len({tuple(ids.flatten().tolist()) for ids in first}) == SYNTHETIC_BATCHES


@pytest.mark.parametrize(("kind", "largest"), [(np.uint16, 65_535), (np.uint32, 199_999)])
def test_narrow_ids_are_widened_without_a_sign(kind: type, largest: int) -> None:
    ids = np.array([[0, 1, 32_767, 32_768, largest]], kind)
    signed = torch.from_numpy(ids.view(np.int16 if kind is np.uint16 else np.int32))
    assert widened(signed).tolist() == [[0, 1, 32_767, 32_768, largest]]


class Copying:
    """A copy that ends when the test says so."""

    def __init__(self) -> None:
        self.ended = False
        self.waited_for = False

    def query(self) -> bool:
        return self.ended

    def synchronize(self) -> None:
        self.waited_for = not self.ended
        self.ended = True


def test_a_slot_goes_back_only_after_its_copy_and_in_order() -> None:
    given: list[int] = []
    ledger = SlotLedger(given.append, most=3)
    copies = [Copying() for _ in range(3)]
    for index, copy in enumerate(copies[:2]):
        ledger.lend(index, copy)
    copies[1].ended = True
    ledger.collect()
    assert given == []  # the older one is still being read
    copies[0].ended = True
    ledger.collect()
    assert given == [0, 1]
    assert not any(copy.waited_for for copy in copies)


def test_with_every_slot_out_the_oldest_copy_is_waited_for_and_no_other() -> None:
    given: list[int] = []
    ledger = SlotLedger(given.append, most=2)
    copies = [Copying() for _ in range(2)]
    for index, copy in enumerate(copies):
        ledger.lend(index, copy)
    ledger.collect()
    assert given == [0]
    assert [copy.waited_for for copy in copies] == [True, False]
    ledger.drain()
    assert given == [0, 1]
