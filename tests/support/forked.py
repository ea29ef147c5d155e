# SPDX-License-Identifier: Apache-2.0
"""Workers as forks of this process, which has imported what they need: real ones, at a tenth of the time to start.

For sweeps over many small cases. What a worker inherits of this process (imports, environment) is not that of a fresh
one, so nothing is measured with it.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import Any, cast

from pybench.launcher.launch import Exit, FileAccess, Launched, Output, signal_name, worker_words


class Forked:
    """Starts workers by fork. Call it where this process has a single thread."""

    def start(
        self, arguments: Sequence[str], access: FileAccess, stdout: Output, stderr: Output, *, own_session: bool
    ) -> Launched:
        report, report_of_worker = os.pipe2(os.O_CLOEXEC)
        lifeline_of_worker, lifeline = os.pipe2(os.O_CLOEXEC)
        words = worker_words(report_of_worker, lifeline_of_worker, arguments)
        pid = os.fork()
        if pid == 0:
            os.close(lifeline)  # or it would be its own lifeline
            _become_worker(words[words.index("pybench.worker") + 1 :], stdout, stderr, own_session)
        os.close(report_of_worker)
        os.close(lifeline_of_worker)
        os.set_blocking(report, False)
        return _Worker(cast("Any", _Process(pid)), report, lifeline, own_session)


def _become_worker(arguments: list[str], stdout: Output, stderr: Output, own_session: bool) -> None:
    status = 70
    try:
        if own_session:
            os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
            signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        for target, descriptor in ((stdout, 1), (stderr, 2)):
            if target is not None and not isinstance(target, int):
                os.dup2(target.fileno(), descriptor)
        sys.stdout, sys.stderr = (os.fdopen(os.dup(number), "w", buffering=1) for number in (1, 2))
        from pybench.worker.__main__ import main

        status = main(arguments)
    finally:
        os._exit(status)


class _Process:
    """What of `subprocess.Popen` a started worker is asked for."""

    stderr = None

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def wait(self) -> int:
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode


class _Worker(Launched):
    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def exit(self) -> Exit:
        code = cast("int", self.process.returncode)
        return Exit(code, None) if code >= 0 else Exit(None, signal_name(-code))
