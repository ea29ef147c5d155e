# SPDX-License-Identifier: Apache-2.0
"""When the heads of a network ended, frame by frame, and which of them run in a frame.

On a CPU a head's end is read from the raw clock where the head runs. On a GPU it is an event, and its time is told
later, from the event at the begin of the frame: the host does not wait for each head.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from math import floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

NOT_RUN = -1
NS_PER_MS = 1e6
_CLOCK = time.CLOCK_MONOTONIC_RAW  # that of all windows


class HeadLog:
    """`rates_hz`: how often each head runs; frames arrive at the highest of them. None: every head runs in each frame.

    Each `begin` is of a frame; `take` gives all frames since the last call of it.
    """

    def __init__(self, heads: int) -> None:
        self.heads = heads
        self.rates_hz: tuple[float, ...] | None = None
        self._frames: list[tuple[int, Any, list[Any]]] = []  # host's begin, the GPU's begin, each head's end

    def is_due(self, number: int) -> bool:
        """Whether a head runs in the frame that has begun: so that it runs at its rate, as evenly as frames allow."""
        if self.rates_hz is None:
            return True
        frame, share = len(self._frames) - 1, self.rates_hz[number] / max(self.rates_hz)
        return floor((frame + 1) * share + 1e-9) > floor(frame * share + 1e-9)

    def begin(self, device: str) -> Callable[[int], None]:
        """Begins a frame; gives what notes the end of a head."""
        marks: list[Any] = [None] * self.heads
        begin_ns = time.clock_gettime_ns(_CLOCK)
        if device == "cpu":
            self._frames.append((begin_ns, None, marks))
            return lambda number: marks.__setitem__(number, time.clock_gettime_ns(_CLOCK))
        import torch

        def event() -> Any:
            made = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
            made.record()
            return made

        self._frames.append((begin_ns, event(), marks))
        return lambda number: marks.__setitem__(number, event())

    def take(self) -> NDArray[np.int64]:
        """int64 [frames, heads]: raw times in ns at which heads ended, `NOT_RUN` where a head was not due. On a GPU
        everything launched has to have ended."""
        frames, self._frames = self._frames, []
        ends = np.full((len(frames), self.heads), NOT_RUN, np.int64)
        for row, (begin_ns, begin, marks) in enumerate(frames):
            for number, mark in enumerate(marks):
                if mark is not None:
                    ends[row, number] = mark if begin is None else begin_ns + begin.elapsed_time(mark) * NS_PER_MS
        return ends
