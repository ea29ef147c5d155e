# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C once: finish the run at hand, then stop. Twice: stop it now. SIGTERM and SIGUSR1 are taken likewise.

Signals are counted and wake a `select`, so waiting costs nothing and no request is missed.
"""

from __future__ import annotations

import os
import signal
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class Interruption:
    """Counts requests to stop while its context is open; `wakeup`, a descriptor, becomes readable with each."""

    def __init__(self) -> None:
        self.requests = 0
        self._former: dict[signal.Signals, Any] = {}
        self._former_wakeup = -1
        self.wakeup, self._write_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def __enter__(self) -> Interruption:
        for number in SIGNALS:
            self._former[number] = signal.signal(number, self._count)
        self._former_wakeup = signal.set_wakeup_fd(self._write_end, warn_on_full_buffer=False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.set_wakeup_fd(self._former_wakeup)
        for number, handler in self._former.items():
            signal.signal(number, handler)
        os.close(self.wakeup)
        os.close(self._write_end)

    @property
    def asked(self) -> bool:
        """Whether to stop after the run at hand."""
        return self.requests > 0

    @property
    def insisted(self) -> bool:
        """Whether to stop the run at hand too."""
        return self.requests > 1

    def drain(self) -> None:
        """Empties the wake-up pipe; the count stays."""
        try:
            while os.read(self.wakeup, 4096):
                pass
        except BlockingIOError:
            return

    def _count(self, number: int, frame: FrameType | None) -> None:
        self.requests += 1
