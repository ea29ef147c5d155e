# SPDX-License-Identifier: Apache-2.0
"""One worker: a fresh process by exec, waited for without spinning, and what came of it.

The worker reports through a pipe of its own, so nothing it prints can be taken for a result. It leads a session: when
it ends, for whatever reason, everything it started ends with it. It also asks the kernel to die with the runner.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pybench import rundir
from pybench.runner.claims import HEARTBEAT_S
from pybench.runner.interruption import Interruption
from pybench.runner.memory_kills import evidence, read_memory_kills

GRACE_S = 5.0  # between SIGTERM and SIGKILL of a worker that has to stop

Stopped = Literal["timeout", "interrupted"]


@dataclass(frozen=True, slots=True)
class WorkerEnd:
    """How a worker ended. `report`: what it said of itself, or None; `stopped`: why the runner ended it, or None."""

    exit_status: int | None
    signal: str | None
    report: dict[str, Any] | None
    stopped: Stopped | None
    started_utc: str
    finished_utc: str
    wall_s: float
    oom_evidence: str | None


def run_worker(
    arguments: Sequence[str], folder: Path, timeout_s: float, interruption: Interruption, heartbeat: Callable[[], None]
) -> WorkerEnd:
    """Starts `python -m pybench.worker ARGUMENTS`, waits for its end and returns it; logs go to `folder`."""
    kills_before = read_memory_kills()
    started_utc, begin = _now(), time.monotonic()
    read_end, write_end = os.pipe2(os.O_CLOEXEC)
    try:
        process = _start(arguments, folder, write_end)
    except BaseException:
        os.close(read_end)
        raise
    finally:
        os.close(write_end)
    try:
        text, stopped = _wait(process, read_end, begin + timeout_s, interruption, heartbeat)
    finally:
        _end_group(process)
        os.close(read_end)
    code = process.returncode
    return WorkerEnd(
        exit_status=code if code >= 0 else None,
        signal=_signal_name(-code) if code < 0 else None,
        report=_parsed(text),
        stopped=stopped,
        started_utc=started_utc,
        finished_utc=_now(),
        wall_s=time.monotonic() - begin,
        oom_evidence=evidence(kills_before, read_memory_kills()),
    )


def _start(arguments: Sequence[str], folder: Path, write_end: int) -> subprocess.Popen[bytes]:
    """-P: the current folder must not shadow an installed module."""
    spawned_ns = str(time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW))
    command = [sys.executable, "-P", "-m", "pybench.worker", "--report", str(write_end), "--spawned-ns", spawned_ns]
    command += ["--parent", str(os.getpid()), *arguments]
    try:
        with open(folder / rundir.STDOUT, "wb") as stdout, open(folder / rundir.STDERR, "wb") as stderr:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                pass_fds=(write_end,),
                start_new_session=True,
            )
    except OSError as error:
        raise rundir.storage_error(error, folder) from error


def _wait(
    process: subprocess.Popen[bytes],
    read_end: int,
    deadline: float,
    interruption: Interruption,
    heartbeat: Callable[[], None],
) -> tuple[bytes, Stopped | None]:
    """Sleeps in `select` until the worker ends, its time is up, somebody insists, or a heartbeat is due."""
    os.set_blocking(read_end, False)
    pieces: list[bytes] = []
    pidfd = os.pidfd_open(process.pid)
    watched = [pidfd, interruption.wakeup, read_end]
    stopped: Stopped | None = None
    kill_at = float("inf")
    try:
        while True:
            until = min(deadline if stopped is None else kill_at, time.monotonic() + HEARTBEAT_S)
            ready, _, _ = select.select(watched, [], [], max(0.0, until - time.monotonic()))
            if read_end in watched and not _read_available(read_end, pieces):
                watched.remove(read_end)  # at its end it stays readable: watching on would spin
            if pidfd in ready:
                return b"".join(pieces), stopped
            interruption.drain()
            heartbeat()
            now = time.monotonic()
            if stopped is None and (interruption.insisted or now >= deadline):
                stopped = "interrupted" if interruption.insisted else "timeout"
                kill_at = now + GRACE_S
                _signal_group(process, signal.SIGTERM)
            elif stopped is not None and now >= kill_at:
                _signal_group(process, signal.SIGKILL)
                kill_at = now + GRACE_S
    finally:
        os.close(pidfd)


def _read_available(descriptor: int, pieces: list[bytes]) -> bool:
    """Takes what is there; False once the other side has closed."""
    with contextlib.suppress(BlockingIOError):
        while piece := os.read(descriptor, 65536):
            pieces.append(piece)
        return False
    return True


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Ends what the worker left behind. It has not been reaped, so its group's number cannot be somebody else's."""
    _signal_group(process, signal.SIGKILL)
    process.wait()


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _signal_name(number: int) -> str:
    """Real-time signals have no names but the first and last."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIGRTMIN+{number - signal.SIGRTMIN}"


def _parsed(text: bytes) -> dict[str, Any] | None:
    """The worker's report; None when it died before it finished writing one."""
    try:
        report = json.loads(text)
    except (UnicodeDecodeError, json.JSONDecodeError):
        return None
    return report if isinstance(report, dict) else None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
