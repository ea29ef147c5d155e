# SPDX-License-Identifier: Apache-2.0
"""When the heads of a network ended, frame by frame, and which of them run in a frame.

On a CPU a head's end is read from the raw clock where the head runs. On a GPU it is an event, and its time is told
from the event at the begin of the frame: the host does not wait for each head.
"""

from __future__ import annotations

from math import floor
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pybench.measure.timing.clock import monotonic_ns

NOT_RUN = -1
NS_PER_MS = 1e6


class Recorded(Protocol):
    """An event on a GPU, as torch has it."""

    def elapsed_time(self, end: Recorded, /) -> float:
        """Milliseconds from this event to another one; both have to have happened."""
        ...


class HeadLog:
    """`rates_hz`: how often each head runs; frames arrive at the highest of them. None: every head runs in each frame.

    Each `begin` is of a frame; `take` gives all frames since the last call of it.
    """

    def __init__(self, heads: int) -> None:
        self.heads = heads
        self.rates_hz: tuple[float, ...] | None = None
        # The begin on the host and on the GPU, and the end of each head.
        self._frames: list[tuple[int, Recorded | None, list[int | Recorded | None]]] = []

    def due_in(self, frame: int) -> tuple[int, ...]:
        """The heads that run in a frame, counted from 0: each at its rate, as evenly as frames allow."""
        if self.rates_hz is None:
            return tuple(range(self.heads))
        shares = [rate_hz / max(self.rates_hz) for rate_hz in self.rates_hz]
        runs = [floor((frame + 1) * share + 1e-9) > floor(frame * share + 1e-9) for share in shares]
        return tuple(number for number, is_due in enumerate(runs) if is_due)

    def begin(self, event: Recorded | None = None) -> tuple[int, ...]:
        """Begins a frame, and gives the heads that run in it. `event`: recorded just now, where a GPU tells the ends as
        events."""
        self._frames.append((monotonic_ns(), event, [None] * self.heads))
        return self.due_in(len(self._frames) - 1)

    def end(self, number: int, end: int | Recorded | None = None) -> None:
        """Notes the end of a head in the frame that has begun: as a raw time in ns, or as an event; None: it is now."""
        self._frames[-1][2][number] = monotonic_ns() if end is None else end

    def take(self) -> NDArray[np.int64]:
        """int64 [frames, heads]: raw times in ns at which heads ended, `NOT_RUN` where a head was not due. On a GPU
        everything launched has to have ended."""
        frames, self._frames = self._frames, []
        ends = np.full((len(frames), self.heads), NOT_RUN, np.int64)
        for row, (begin_ns, begin, marks) in enumerate(frames):
            for number, mark in enumerate(marks):
                if isinstance(mark, int):
                    ends[row, number] = mark
                elif mark is not None and begin is not None:
                    ends[row, number] = begin_ns + begin.elapsed_time(mark) * NS_PER_MS
        return ends
