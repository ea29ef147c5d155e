# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C once: finish the run at hand, then stop. Twice: stop it now. SIGTERM and SIGUSR1 are taken likewise.

In a Slurm job SIGTERM means that the job is being ended, and SIGKILL follows: the run at hand is stopped at once.

Signals are counted and wake a `select`, so waiting costs nothing and no request is missed.
"""

from __future__ import annotations

import os
import signal
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class Interruption:
    """Counts requests to stop while its context is open; `wakeup`, a descriptor, becomes readable with each.

    `sigterm_ends_job`: whether SIGTERM is the batch system's last word. `asked_by`: the first signal.
    """

    def __init__(self, sigterm_ends_job: bool = False) -> None:
        self.requests = 0
        self.asked_by: signal.Signals | None = None
        self.job_is_ending = False
        self._sigterm_ends_job = sigterm_ends_job
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
        return self.requests > 1 or self.job_is_ending

    def drain(self) -> None:
        """Empties the wake-up pipe; the count stays."""
        try:
            while os.read(self.wakeup, 4096):
                pass
        except BlockingIOError:
            return

    def _count(self, number: int, frame: FrameType | None) -> None:
        self.requests += 1
        self.asked_by = self.asked_by or signal.Signals(number)
        self.job_is_ending |= self._sigterm_ends_job and number == signal.SIGTERM
