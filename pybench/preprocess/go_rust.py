# SPDX-License-Identifier: Apache-2.0
"""The path `go_rust`: this project's tokenizer in a Go process of its own, batches through shared memory.

The orchestrator works ahead of the consumer, as far as the ring has room; `wait_s` is therefore what is left when the
consumer is faster. As with the other paths, the tokenizer is loaded and the corpus listed when the stream is opened.

`GoRustStream` gives int64 batches of the caller's own, as the other paths do: one widening copy out of the ring, which
counts as waiting. `in_place` gives the ids as the ring holds them, without any copy, for a consumer that can use them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import pybench_tokenizer
from numpy.typing import NDArray

from pybench.errors import InputError
from pybench.measure.clock import NANOSECONDS_PER_SECOND, monotonic_ns
from pybench.preprocess.corpus import Corpus
from pybench.preprocess.orchestrator import Counters, Orchestrator
from pybench.preprocess.packing import hashed_form
from pybench.preprocess.ring import WIDEST_ID_BYTES, FilledSlot, IdBatch, ProducerGoneError, Ring, RingLayout

# The orchestrator packs a quarter mebibyte of text at a time, near 70,000 ids. A ring with room for several of these
# bursts delivered batches of 1,024 ids at 180 MB/s of text where one of 4 slots did at 114 (2 workers, 2 cores).
RING_BYTES = 1 << 20
SLOTS_MIN, SLOTS_MAX = 4, 256


def open_batches(
    tokenizer: Path,
    corpus: Corpus,
    batch: int,
    seq_len: int,
    threads: int,
    *,
    epochs: int = 1,
    hash_ids: bool = True,
    slots: int | None = None,
) -> GoRustStream:
    """Starts an orchestrator of `threads` workers and waits until it is ready. `slots`: batches that it may be ahead.

    Call it from a thread that outlives the stream: the kernel kills the orchestrator with that thread. Raises
    InputError for a bad tokenizer or corpus, UnsupportedError when there is no orchestrator.
    """
    layout = RingLayout(batch, seq_len, slots or _slots_for(batch * seq_len))
    ring = Ring(layout)
    flags = ["--tokenizer-object", str(pybench_tokenizer.object_path()), "--tokenizer", str(tokenizer)]
    flags += ["--workers", str(threads), "--epochs", str(epochs)]
    try:
        orchestrator = Orchestrator(ring, corpus.files, flags)
    except BaseException:
        ring.close()
        raise
    stream = GoRustStream(ring, orchestrator, corpus.total_bytes * epochs or None, hash_ids)
    try:
        stream.wait_ready()
    except BaseException:
        stream.close()
        raise
    return stream


def _slots_for(tokens: int) -> int:
    return max(SLOTS_MIN, min(SLOTS_MAX, RING_BYTES // (WIDEST_ID_BYTES * tokens)))


class GoRustStream:
    """A `BatchStream` out of a ring. `counters` are the orchestrator's own, after the last batch."""

    def __init__(self, ring: Ring, orchestrator: Orchestrator, expected_bytes: int | None, hash_ids: bool) -> None:
        """expected_bytes: of text in the whole stream; None for an endless one."""
        self._ring = ring
        self._orchestrator = orchestrator
        self._expected_bytes = expected_bytes
        self._hash = hashlib.sha256() if hash_ids else None
        self._wait_ns = 0
        self._held: FilledSlot | None = None
        self._closed = False
        self.tokens = 0
        self.text_bytes = 0
        self.counters: Counters | None = None

    @property
    def wait_s(self) -> float:
        return self._wait_ns / NANOSECONDS_PER_SECOND

    @property
    def ids_sha256(self) -> str | None:
        return None if self._hash is None else self._hash.hexdigest()

    @property
    def orchestrator_pid(self) -> int:
        """The process that does the work: for measuring its memory and processor time."""
        return self._orchestrator.pid

    def wait_ready(self) -> None:
        """Waits until the orchestrator has loaded the tokenizer and listed the corpus; not part of `wait_s`."""
        try:
            self._ring.wait_ready()
        except ProducerGoneError:
            raise self._orchestrator.failure() from None

    def __iter__(self) -> Iterator[NDArray[np.int64]]:
        return self

    def __next__(self) -> NDArray[np.int64]:
        begin_ns = monotonic_ns()
        slot = self._next_slot()
        ids = slot.ids.astype(np.int64)
        self._give_back()
        self._wait_ns += monotonic_ns() - begin_ns
        self._count(slot, ids)
        return ids

    def in_place(self) -> Iterator[IdBatch]:
        """The batches as they lie in the ring: uint16 or uint32 [batch, seq_len].

        Each is valid until the next is asked for; then the orchestrator writes over it.
        """
        while True:
            begin_ns = monotonic_ns()
            try:
                slot = self._next_slot()
            except StopIteration:
                return
            self._wait_ns += monotonic_ns() - begin_ns
            self._count(slot, slot.ids)
            yield slot.ids

    def _next_slot(self) -> FilledSlot:
        """The next batch; a batch in place that is still held goes back first. Raises StopIteration at the end."""
        self._give_back()
        if self.counters is not None or self._closed:
            raise StopIteration
        try:
            self._held = self._ring.next()
        except ProducerGoneError:
            raise self._orchestrator.failure() from None
        if self._held is None:
            self._finish()
            raise StopIteration
        return self._held

    def _give_back(self) -> None:
        if self._held is not None and not self._closed:
            self._ring.give_back(self._held.index)
        self._held = None

    def _count(self, slot: FilledSlot, ids: IdBatch | NDArray[np.int64]) -> None:
        self.tokens += ids.size
        self.text_bytes = slot.text_bytes
        if self._hash is not None:
            self._hash.update(hashed_form(ids))

    def _finish(self) -> None:
        self.counters = self._orchestrator.finish()
        if self._expected_bytes is not None and self.counters.text_bytes != self._expected_bytes:
            raise InputError(
                f"the corpus changed: {self._expected_bytes} bytes of text were found first, "
                f"{self.counters.text_bytes} were read",
                hint="leave the files alone while they are in use",
            )

    def close(self) -> None:
        """Ends the orchestrator if it still runs."""
        if not self._closed:
            self._closed = True
            self._ring.close()
            self._orchestrator.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
