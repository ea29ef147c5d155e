# SPDX-License-Identifier: Apache-2.0
"""Workers as plain processes of this machine, by exec of this very Python, or of another command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

from pybench.launcher.launch import Exit, FileAccess, Launched, Output, signal_name, worker_words


class LocalLauncher:
    """Starts workers here. They see the machine as this process does, so `access` asks for nothing."""

    def start(
        self, arguments: Sequence[str], access: FileAccess, stdout: Output, stderr: Output, *, own_session: bool
    ) -> Launched:
        return start_process(
            lambda report, lifeline: [sys.executable, *worker_words(report, lifeline, arguments)],
            stdout,
            stderr,
            own_session=own_session,
        )


def start_process(
    command: Callable[[int, int], list[str]],
    stdout: Output,
    stderr: Output,
    *,
    own_session: bool,
    variables: Mapping[str, str] | None = None,
) -> Launched:
    """Starts a worker. `command`: its command line, given the descriptors of its report and its lifeline; `variables`:
    its environment, None for that of this process. OSError where that cannot be."""
    report, report_of_worker = os.pipe2(os.O_CLOEXEC)
    lifeline_of_worker, lifeline = os.pipe2(os.O_CLOEXEC)
    try:
        process = subprocess.Popen(
            command(report_of_worker, lifeline_of_worker),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            pass_fds=(report_of_worker, lifeline_of_worker),
            start_new_session=own_session,
            env=variables,
        )
    except BaseException:
        os.close(report)
        os.close(lifeline)
        raise
    finally:
        os.close(report_of_worker)
        os.close(lifeline_of_worker)
    os.set_blocking(report, False)
    return _Process(process, report, lifeline, own_session)


LOCAL = LocalLauncher()


class _Process(Launched):
    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def exit(self) -> Exit:
        code = self.process.returncode
        return Exit(code, None) if code >= 0 else Exit(None, signal_name(-code))
