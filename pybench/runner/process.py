# SPDX-License-Identifier: Apache-2.0
"""One worker: started afresh by a launcher, waited for without spinning, and what came of it.

When it ends, for whatever reason, everything it started ends with it; when the runner dies, it dies.
"""

from __future__ import annotations

import json
import os
import re
import select
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pybench.campaign import layout, storage
from pybench.campaign.claims import HEARTBEAT_S
from pybench.errors import PybenchError
from pybench.launcher import Exit, FileAccess, Launched, Launcher
from pybench.runner.interruption import Interruption
from pybench.runner.memory_kills import evidence, read_memory_kills

GRACE_S = 5.0  # between SIGTERM and SIGKILL of a worker that has to stop
_LACKS_PYBENCH = re.compile(r"No module named '?pybench\b")  # of the interpreter, before a line of pybench runs
_LOG_TAIL_BYTES = 4096
_WORDS = 200  # characters of a line

Stopped = Literal["timeout", "interrupted"]


@dataclass(frozen=True, slots=True)
class WorkerEnd:
    """How a worker ended.

    exit_status: None: it did not exit by itself
    signal: the name of what ended it; None: no signal did
    report: what it said of itself; None: nothing
    stopped: why the runner ended it; None: the runner did not
    started_utc, finished_utc: ISO 8601
    wall_s: from start to end
    oom_evidence: what shows that memory ran out; None: nothing does
    launch_failure: why it never began; None: it began
    last_words: the last line of its stderr, shortened
    """

    exit_status: int | None
    signal: str | None
    report: dict[str, Any] | None
    stopped: Stopped | None
    started_utc: str
    finished_utc: str
    wall_s: float
    oom_evidence: str | None
    launch_failure: PybenchError | None = None
    last_words: str = ""


def run_worker(
    launcher: Launcher,
    arguments: Sequence[str],
    folder: Path,
    access: FileAccess,
    timeout_s: float,
    interruption: Interruption,
    heartbeat: Callable[[], None],
) -> WorkerEnd:
    """Starts `python -m pybench.worker ARGUMENTS`, waits for its end and returns it; logs go to `folder`."""
    started_utc, begin = _now(), time.monotonic()
    with _start(launcher, arguments, folder, access) as worker:
        kills_before = read_memory_kills(own=worker.own_memory_counter)
        text, stopped = _wait(worker, begin + timeout_s, interruption, heartbeat)
    ended = worker.exit()
    last_words = _last_words(folder)
    return WorkerEnd(
        exit_status=ended.status,
        signal=ended.signal,
        report=_parsed(text),
        stopped=stopped,
        started_utc=started_utc,
        finished_utc=_now(),
        wall_s=time.monotonic() - begin,
        oom_evidence=evidence(kills_before, read_memory_kills(own=worker.own_memory_counter)),
        launch_failure=None if text else _launch_failure(ended, last_words),
        last_words=last_words,
    )


def _start(launcher: Launcher, arguments: Sequence[str], folder: Path, access: FileAccess) -> Launched:
    try:
        with open(folder / layout.STDOUT, "wb") as stdout, open(folder / layout.STDERR, "wb") as stderr:
            return launcher.start(arguments, access, stdout, stderr, own_session=True)
    except OSError as error:
        raise storage.storage_error(error, folder) from error


def _wait(
    worker: Launched, deadline: float, interruption: Interruption, heartbeat: Callable[[], None]
) -> tuple[bytes, Stopped | None]:
    """Sleeps in `select` until the worker ends, its time is up, somebody insists, or a heartbeat is due."""
    pieces: list[bytes] = []
    pidfd = os.pidfd_open(worker.process.pid)
    watched = [pidfd, interruption.wakeup, worker.report]
    stopped: Stopped | None = None
    kill_at = float("inf")
    try:
        while True:
            until = min(deadline if stopped is None else kill_at, time.monotonic() + HEARTBEAT_S)
            ready, _, _ = select.select(watched, [], [], max(0.0, until - time.monotonic()))
            if worker.report in ready:
                piece, may_continue = worker.read_report()
                pieces.append(piece)
                if not may_continue:
                    watched.remove(worker.report)  # at its end it stays readable: watching on would spin
            if pidfd in ready:
                return b"".join(pieces), stopped
            interruption.drain()
            heartbeat()
            now = time.monotonic()
            if stopped is None and (interruption.insisted or now >= deadline):
                stopped = "interrupted" if interruption.insisted else "timeout"
                kill_at = now + GRACE_S
                worker.ask_to_end()
            elif stopped is not None and now >= kill_at:
                worker.kill()
                kill_at = now + GRACE_S
    finally:
        os.close(pidfd)


def _launch_failure(ended: Exit, last_words: str) -> PybenchError | None:
    """Why a worker without a report never began. What its program said last is told, as no run keeps its log."""
    if ended.failure is not None:
        said = ": ".join(filter(None, (ended.failure, last_words)))
        return PybenchError(said, hint="`pybench doctor` with the same --container shows whether it runs")
    if ended.status and _LACKS_PYBENCH.search(last_words):
        return PybenchError(f"no worker can be started: {last_words}", hint="install pybench again, then run again")
    return None


def _last_words(folder: Path) -> str:
    with open(folder / layout.STDERR, "rb") as log:
        log.seek(max(0, os.fstat(log.fileno()).st_size - _LOG_TAIL_BYTES))
        lines = log.read().decode(errors="replace").strip().splitlines()
    return lines[-1].strip()[:_WORDS] if lines else ""


def _parsed(text: bytes) -> dict[str, Any] | None:
    """The worker's report; None when it died before it finished writing one."""
    try:
        report = json.loads(text)
    except (UnicodeDecodeError, json.JSONDecodeError):
        return None
    return report if isinstance(report, dict) else None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
