# SPDX-License-Identifier: Apache-2.0
"""The path `go_rust`: this project's tokenizer in a Go process of its own, batches through shared memory.

The orchestrator works ahead of the consumer, as far as the ring has room; `wait_s` is therefore what is left when the
consumer is faster. As with the other paths, the tokenizer is loaded and the corpus listed when the stream is opened.

`GoRustStream` gives int64 batches of the caller's own, as the other paths do: one widening copy out of the ring, which
counts as waiting. `take` gives the slots of the ring themselves, for a consumer that can use narrow ids in place.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pybench_tokenizer
from numpy.typing import NDArray

from pybench.errors import InputError
from pybench.measure.timing.clock import monotonic_ns
from pybench.preprocess.corpus import Corpus
from pybench.preprocess.orchestrator import Counters, Orchestrator
from pybench.preprocess.packing import RaggedBatch
from pybench.preprocess.ring import WIDEST_ID_BYTES, FilledSlot, ProducerGoneError, Ring, RingLayout
from pybench.preprocess.stream import SlotStream
from pybench.preprocess.vocabulary import ENDS_OF_TEXT

# The orchestrator packs a quarter mebibyte of text at a time, near 70,000 ids. A ring with room for several of these
# bursts delivered batches of 1,024 ids at 180 MB/s of text. One of 4 slots delivered them at 114 MB/s (2 workers, 2
# cores).
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
    ragged: bool = False,
) -> GoRustStream:
    """Starts an orchestrator of `threads` workers and waits until it is ready. `slots`: batches that it may be ahead.

    Call it from a thread that outlives the stream: the kernel kills the orchestrator with that thread. Raises
    InputError for a bad tokenizer or corpus, UnsupportedError when there is no orchestrator.
    """
    ring = Ring(RingLayout(batch, seq_len, slots or slots_for(batch * seq_len), ragged=ragged))
    try:
        orchestrator = Orchestrator(ring, corpus.files, [*tokenizer_flags(tokenizer, threads, epochs), *_share(corpus)])
    except BaseException:
        ring.close()
        raise
    expected_bytes = corpus.total_bytes * epochs or None
    stream = GoRustStream(ring, orchestrator, expected_bytes if corpus.world == 1 else None, hash_ids)
    try:
        stream.wait_ready()
    except BaseException:
        stream.close()
        raise
    return stream


def tokenizer_flags(tokenizer: Path, threads: int, epochs: int) -> list[str]:
    """The orchestrator's flags that say how it tokenizes."""
    flags = ["--tokenizer-object", str(pybench_tokenizer.object_path()), "--tokenizer", str(tokenizer)]
    ends = [part for token in ENDS_OF_TEXT for part in ("--end-of-text", token)]
    return [*flags, *ends, "--workers", str(threads), "--epochs", str(epochs)]


def feed_options(
    tokenizer: Path, corpus: Corpus, batch: int, seq_len: int, threads: int, hashed_batches: int
) -> dict[str, Any]:
    """The same for an orchestrator that runs the model as well (docs/formats/native.md): equal workers, slots, ids."""
    return {
        "tokenizer_object": str(pybench_tokenizer.object_path()),
        "tokenizer": str(tokenizer),
        "ends_of_text": ENDS_OF_TEXT,
        "field": corpus.field,
        "documents": corpus.count,
        "rank": corpus.rank,
        "world": corpus.world,
        "workers": threads,
        "batch": batch,
        "seq_len": seq_len,
        "slots": slots_for(batch * seq_len),
        "hashed_batches": hashed_batches,
    }


def slots_for(tokens: int) -> int:
    """How many slots a ring of batches of so many ids has, where nobody asks for another number."""
    return max(SLOTS_MIN, min(SLOTS_MAX, RING_BYTES // (WIDEST_ID_BYTES * tokens)))


def _share(corpus: Corpus) -> list[str]:
    flags = ["--field", corpus.field, "--documents", str(corpus.count)]
    return [*flags, "--rank", str(corpus.rank), "--world", str(corpus.world)]


class GoRustStream(SlotStream):
    """A stream out of a ring. `counters` are the orchestrator's own, after the last batch."""

    def __init__(self, ring: Ring, orchestrator: Orchestrator, expected_bytes: int | None, hash_ids: bool) -> None:
        """expected_bytes: of text in the whole stream; None for an endless one, or a share of one."""
        super().__init__(hash_ids)
        self._ring = ring
        self._reader = ring.reader()
        self._orchestrator = orchestrator
        self._expected_bytes = expected_bytes
        self._closed = False
        self.counters: Counters | None = None

    @property
    def orchestrator_pid(self) -> int:
        """The process that does the work."""
        return self._orchestrator.pid

    @property
    def memory(self) -> NDArray[np.uint8]:
        return self._reader.memory

    @property
    def slots(self) -> int:
        return self._reader.slots

    @property
    def ready(self) -> int:
        return self._reader.ready

    def wait_ready(self) -> None:
        """Waits until the orchestrator has loaded the tokenizer and listed the corpus; not part of `wait_s`."""
        try:
            self._reader.wait_ready()
        except ProducerGoneError:
            raise self._orchestrator.failure() from None

    def progress(self) -> Counters | None:
        """The orchestrator's counters so far; None once it has ended."""
        return self._orchestrator.progress()

    def __next__(self) -> NDArray[np.int64]:
        begin_ns = monotonic_ns()
        slot = self._fetch()
        ids = slot.ids.astype(np.int64)
        self.give_back(slot.index)
        self.wait_ns += monotonic_ns() - begin_ns
        self._count(ids, slot.text_bytes)
        return ids

    def ragged(self) -> Iterator[RaggedBatch]:
        """The batches of a ragged stream, as arrays of the caller's own."""
        while True:
            try:
                slot = self.take()
            except StopIteration:
                return
            assert slot.offsets is not None  # for the type checker: the ring was made ragged
            made = RaggedBatch(slot.ids.astype(np.int64), slot.offsets.astype(np.int64), slot.text_bytes)
            self.give_back(slot.index)
            yield made

    def give_back(self, index: int) -> None:
        if not self._closed:
            self._reader.give_back(index)

    def _fetch(self) -> FilledSlot:
        if self.counters is not None or self._closed:
            raise StopIteration
        try:
            slot = self._reader.next()
        except ProducerGoneError:
            raise self._orchestrator.failure() from None
        if slot is None:
            self._finish()
            raise StopIteration
        return slot

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
