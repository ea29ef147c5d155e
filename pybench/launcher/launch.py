# SPDX-License-Identifier: Apache-2.0
"""A worker that has been started, whatever started it: its report, its lifeline, and how it is ended.

The report is a pipe that the worker writes once, so nothing it prints can be taken for a result. The lifeline is a pipe
into which nothing is ever written: its end tells the worker's kernel that whoever started it is gone, and kills it.
PR_SET_PDEATHSIG would say that of a child only; a worker in a container is nobody's child that we know.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Protocol

Output = int | IO[bytes] | None


@dataclass(frozen=True, slots=True)
class FileAccess:
    """What of the file system a worker needs.

    writes: folders
    reads: files and folders
    onnx: one of `reads`, of which the worker reads the files with its weights as well
    """

    writes: tuple[Path, ...] = ()
    reads: tuple[Path, ...] = ()
    onnx: Path | None = None


class Launcher(Protocol):
    """What starts workers."""

    def start(
        self, arguments: Sequence[str], access: FileAccess, stdout: Output, stderr: Output, *, own_session: bool
    ) -> Launched:
        """Starts `python -m pybench.worker ARGUMENTS`. OSError where that cannot be.

        `own_session`: Ctrl-C in a terminal is then this process's alone, and a group's signal ends all of the worker.
        """


@dataclass(frozen=True, slots=True)
class Exit:
    """How a worker ended: an exit status, or the signal's name that ended it. `failure`: it never began, and why."""

    status: int | None
    signal: str | None
    failure: str | None = None


class Launched(ABC):
    """One started worker; a context that leaves nothing of it behind. `report`: where its report can be read.

    `own_memory_counter`: whether the kernel counts its memory kills where it counts this process's own.
    """

    own_memory_counter = True

    def __init__(self, process: subprocess.Popen[bytes], report: int, lifeline: int, own_session: bool) -> None:
        self.process = process
        self.report = report
        self._lifeline: int | None = lifeline
        self._own_session = own_session

    def __enter__(self) -> Launched:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def ask_to_end(self) -> None:
        """SIGTERM to the worker and all that it started."""
        self._signal(signal.SIGTERM)

    @abstractmethod
    def kill(self) -> None:
        """Ends it without asking; it may take a moment until its process shows that."""

    @abstractmethod
    def exit(self) -> Exit:
        """How it ended, once its process has."""

    def read_report(self) -> tuple[bytes, bool]:
        """What has been reported and not been read yet, and whether more may come."""
        pieces = []
        with contextlib.suppress(BlockingIOError):
            while piece := os.read(self.report, 65536):
                pieces.append(piece)
            return b"".join(pieces), False
        return b"".join(pieces), True

    def end(self) -> None:
        """Ends the worker with everything it started, and waits for that."""
        self.kill()
        self.process.wait()
        if self.process.stderr is not None:
            self.process.stderr.close()
        self.cut_lifeline()
        os.close(self.report)

    def cut_lifeline(self) -> None:
        """Whatever its state, the kernel kills the worker now."""
        if self._lifeline is not None:
            os.close(self._lifeline)
            self._lifeline = None

    def _signal(self, number: signal.Signals) -> None:
        """Once the process has been reaped, its number may be somebody else's."""
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                (os.killpg if self._own_session else os.kill)(self.process.pid, number)


def worker_words(report: int | Path, lifeline: int | Path, arguments: Sequence[str]) -> list[str]:
    """The command line after the interpreter. -P: the current folder must not shadow an installed module."""
    return ["-P", "-m", "pybench.worker", *worker_options(report, lifeline, arguments)]


def worker_options(report: int | Path, lifeline: int | Path, arguments: Sequence[str]) -> list[str]:
    """What a worker itself is told."""
    spawned_ns = str(time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW))
    return ["--report", str(report), "--lifeline", str(lifeline), "--spawned-ns", spawned_ns, *arguments]


def signal_name(number: int) -> str:
    """Real-time signals have no names but the first and last."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIGRTMIN+{number - signal.SIGRTMIN}"
