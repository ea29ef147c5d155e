# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C, SIGHUP and SIGTERM while jobs are submitted: what sbatch has accepted has to be recorded or cancelled."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)


@contextmanager
def held_signals() -> Iterator[list[int]]:
    """Signals that would end this process wait until the block is over. Yields those that have come."""
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)

    held = [number for number in SIGNALS if signal.getsignal(number) != signal.SIG_IGN]  # by nohup
    former = {number: signal.signal(number, note) for number in held}
    try:
        yield came
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
        for sent in came:
            signal.raise_signal(sent)
