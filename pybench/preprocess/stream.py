# SPDX-License-Identifier: Apache-2.0
"""What every path gives: batches, one after the other, with what was read and how long was waited.

There are two ways to take them. Iterating gives int64 arrays of the caller's own. `take` gives slots: narrow ids in
memory that stays where it is for the life of the stream, so that a GPU can be told of it once (`tensors`). A slot
belongs to the caller until `give_back`.
"""

from __future__ import annotations

import hashlib
import mmap
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pybench.errors import DeviceMemoryError
from pybench.measure.timing.clock import NANOSECONDS_PER_SECOND, monotonic_ns
from pybench.preprocess.packing import Batch, Ids, Tokenised, hashed_form
from pybench.preprocess.ring import FilledSlot

STAGED_SLOTS = 4  # one that is filled, one on its way to a GPU, and room for both to be late


class SlotStream(ABC):
    """Batches of one path, to be closed by `with`. All counters are of the batches delivered."""

    def __init__(self, hash_ids: bool) -> None:
        self._hash = hashlib.sha256() if hash_ids else None
        self.wait_ns = 0
        self.tokens = 0
        self.text_bytes = 0  # of all documents that ended in a delivered batch

    @property
    def wait_s(self) -> float:
        """Seconds that the consumer waited for batches."""
        return self.wait_ns / NANOSECONDS_PER_SECOND

    @property
    def ids_sha256(self) -> str | None:
        """The hash of ids (see `packing`) of the delivered batches, or None when it was not asked for."""
        return None if self._hash is None else self._hash.hexdigest()

    @property
    def made(self) -> Tokenised | None:
        """What was tokenised so far, delivered or not; None: in another process, or nothing is."""
        return None

    @property
    def ready(self) -> int:
        """How many batches another process has made ahead, which are taken without waiting."""
        return 0

    @property
    @abstractmethod
    def memory(self) -> NDArray[np.uint8]:
        """All slots' memory, and nothing else's, for as long as the stream lives."""

    @property
    @abstractmethod
    def slots(self) -> int:
        """How many slots a caller may hold at a time: with all of them, there is no next batch."""

    @abstractmethod
    def _fetch(self) -> FilledSlot:
        """The next slot. Raises StopIteration at the end."""

    @abstractmethod
    def give_back(self, index: int) -> None:
        """Lets a slot be written again."""

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def __next__(self) -> NDArray[np.int64]: ...

    def take(self) -> FilledSlot:
        """The next batch in place: uint16 or uint32 [batch, seq_len], until it is given back. Raises StopIteration."""
        begin_ns = monotonic_ns()
        try:
            slot = self._fetch()
        finally:
            self.wait_ns += monotonic_ns() - begin_ns
        self._count(slot.ids, slot.text_bytes)
        return slot

    def _count(self, ids: Ids, text_bytes: int) -> None:
        self.tokens += ids.size
        self.text_bytes = text_bytes
        if self._hash is not None:
            self._hash.update(hashed_form(ids))

    def __iter__(self) -> Iterator[NDArray[np.int64]]:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class InProcessStream(SlotStream):
    """A stream over batches that are made in the calling thread, straight into where they are wanted.

    `make`: from a function that gives a flat array for each batch to the batches in these arrays (`packing.pack`).
    `made`: what the maker has tokenised so far.
    """

    def __init__(
        self,
        make: Callable[[Callable[[], NDArray[Any]]], Iterator[Batch]],
        shape: tuple[int, int],
        largest_id: int,
        hash_ids: bool,
        made: Callable[[], Tokenised] | None = None,
    ) -> None:
        super().__init__(hash_ids)
        self._made = made
        self._shape = shape
        self._staging = staging(shape, largest_id)
        self._free = deque(range(len(self._staging)))
        self._into: int | None = None  # the slot that the batch in the making goes to; None: an array of the caller's
        self._batches = make(self._room)

    def _room(self) -> NDArray[Any]:
        return (
            np.empty(self._shape, np.int64).reshape(-1) if self._into is None else self._staging[self._into].reshape(-1)
        )

    @property
    def made(self) -> Tokenised | None:
        return None if self._made is None else self._made()

    @property
    def memory(self) -> NDArray[np.uint8]:
        return self._staging.view(np.uint8).reshape(-1)

    @property
    def slots(self) -> int:
        return len(self._staging)

    def _fetch(self) -> FilledSlot:
        self._into = self._free.popleft()
        batch = next(self._batches)
        return FilledSlot(self._into, batch.ids, batch.text_bytes, 0)

    def give_back(self, index: int) -> None:
        self._free.append(index)

    def close(self) -> None:
        self._batches = iter(())

    def __next__(self) -> NDArray[np.int64]:
        self._into = None
        begin_ns = monotonic_ns()
        try:
            batch = next(self._batches)
        finally:
            self.wait_ns += monotonic_ns() - begin_ns
        self._count(batch.ids, batch.text_bytes)
        ids: NDArray[np.int64] = batch.ids
        return ids


def staging(shape: tuple[int, int], largest_id: int, slots: int = STAGED_SLOTS) -> NDArray[Any]:
    """Slots of ids as narrow as the ring's (uint16 where every id fits, else uint32), in pages of their own."""
    kind: Any = np.uint16 if largest_id <= np.iinfo(np.uint16).max else np.uint32
    count = slots * shape[0] * shape[1]
    try:
        pages = mmap.mmap(-1, count * np.dtype(kind).itemsize)
    except (OSError, ValueError, OverflowError) as error:
        raise DeviceMemoryError(
            f"no memory for {slots} batches of {shape[0]} x {shape[1]} ids: {error}",
            evidence=f"{type(error).__name__}: {error}",
            hint="choose a smaller batch or sequence; nothing is retried smaller",
        ) from error
    made: NDArray[Any] = np.frombuffer(pages, kind, count)
    return made.reshape(slots, *shape)
