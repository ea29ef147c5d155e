# SPDX-License-Identifier: Apache-2.0
"""The batches of a stream as int64 tensors on a device.

For a GPU the memory of all slots is page-locked once, when the stream is taken over (`cudaHostRegister` over the whole
ring). Registration belongs to a process, so every reader does it for itself. Pinning in place costs about a copy, so it
is never done for a batch. Ids cross as narrow as they lie there and are widened by the GPU: 2 bytes an id, not 8. A
copy is asynchronous, so its slot is given back only after the event that was recorded behind it.

Without a GPU a batch is one widening copy, and its slot is free at once.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pybench.errors import PybenchError
from pybench.preprocess.ring import IdBatch
from pybench.preprocess.stream import SlotStream

LOWER_16_BITS = 0xFFFF


class Event(Protocol):
    """What `torch.cuda.Event` offers of itself here."""

    def query(self) -> bool: ...

    def synchronize(self) -> None: ...


class SlotLedger:
    """Slots that a device is still reading, oldest first; the device finishes them in that order.

    `most`: how many may be out at a time. With one more there could be no next batch, so the oldest is waited for.
    """

    def __init__(self, give_back: Callable[[int], None], most: int) -> None:
        self._give_back = give_back
        self._most = most
        self._lent: deque[tuple[int, Event]] = deque()

    def lend(self, index: int, finished: Event) -> None:
        """Notes that a slot is free once `finished` has happened."""
        self._lent.append((index, finished))

    def collect(self) -> None:
        """Gives back what is finished, and at least as much as the next batch needs."""
        while self._lent and (len(self._lent) >= self._most or self._lent[0][1].query()):
            index, finished = self._lent.popleft()
            finished.synchronize()
            self._give_back(index)

    def drain(self) -> None:
        """Waits for everything and gives it back."""
        while self._lent:
            index, finished = self._lent.popleft()
            finished.synchronize()
            self._give_back(index)


class PageLocked:
    """Memory that the GPU reads by itself, from making this until `close`. Raises PybenchError where CUDA refuses."""

    def __init__(self, memory: NDArray[np.uint8]) -> None:
        self._memory: NDArray[np.uint8] | None = memory  # kept: it may not go away while it is registered
        self._cuda: Any = torch.cuda.cudart()  # type: ignore[no-untyped-call]
        code = self._cuda.cudaHostRegister(memory.ctypes.data, memory.nbytes, 0)
        if int(code) != 0:
            _take_last_error()
        _check(code, f"page-lock {memory.nbytes} bytes")

    def close(self) -> None:
        if self._memory is not None:
            _check(self._cuda.cudaHostUnregister(self._memory.ctypes.data), "release page-locked memory")
            self._memory = None


def _take_last_error() -> None:
    """CUDA keeps an error until somebody asks for it: torch, at its next kernel, which would then be blamed for it."""
    with contextlib.suppress(RuntimeError):
        torch.zeros(1, device="cuda").add_(1)


def _check(code: Any, what: str) -> None:
    if int(code) != 0:
        raise PybenchError(
            f"CUDA could not {what}: error {int(code)}", hint="`ulimit -l` may be too low, or memory short"
        )


class TensorBatches:
    """int64 [batch, seq_len] on `device` (`cpu` or `cuda`), batch by batch. Close it before its stream.

    A tensor on a GPU is ready in the order of the current stream of torch. `look`: called with each batch in place.
    """

    def __init__(self, stream: SlotStream, device: str, look: Callable[[IdBatch], None] | None = None) -> None:
        self._stream = stream
        self._look = look
        self._is_cuda = device != "cpu"
        # One slot always stays with whoever fills it.
        self._ledger = SlotLedger(self._free, max(1, stream.slots - 1))
        self._locked = PageLocked(stream.memory) if self._is_cuda else None
        self._events: dict[int, Any] = {}  # of the slots that are out
        self._spare: list[Any] = []  # events of slots that came back: a few serve a ring of hundreds
        self._views: dict[int, Tensor] = {}

    def next(self) -> Tensor:
        """The next batch. Raises StopIteration at the end of the stream."""
        self._ledger.collect()
        slot = self._stream.take()
        if self._look is not None:
            self._look(slot.ids)
        if not self._is_cuda:
            ids = torch.from_numpy(slot.ids.astype(np.int64))
            self._stream.give_back(slot.index)
            return ids
        view = self._views.get(slot.index)
        if view is None:
            view = self._views[slot.index] = torch.from_numpy(slot.ids.view(_signed(slot.ids)))
        held = view.to("cuda", non_blocking=True)
        event = self._spare.pop() if self._spare else torch.cuda.Event()  # type: ignore[no-untyped-call]
        event.record()
        self._events[slot.index] = event
        self._ledger.lend(slot.index, event)
        return widened(held)

    def _free(self, index: int) -> None:
        self._spare.append(self._events.pop(index))
        self._stream.give_back(index)

    def close(self) -> None:
        """Waits until the device has read everything, and lets the memory go."""
        self._ledger.drain()
        if self._locked is not None:
            self._locked.close()


def widened(ids: Tensor) -> Tensor:
    """int16 that stands for uint16, or int32, as int64. Torch's own unsigned types lack most operators."""
    wide = ids.to(torch.int64)
    return wide & LOWER_16_BITS if ids.dtype == torch.int16 else wide


def _signed(ids: IdBatch) -> type[np.signedinteger[Any]]:
    return np.int16 if ids.dtype == np.uint16 else np.int32
