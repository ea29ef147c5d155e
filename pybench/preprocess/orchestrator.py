# SPDX-License-Identifier: Apache-2.0
"""The `pybench-orchestrator` process: found, started with the ends of a ring, its death explained, its counters read.

Its stdout and stderr go to memory files, not pipes: nobody has to drain them meanwhile, and none can fill up and
block it. It ends when its end of the ring closes, and the kernel kills it with its parent.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from pybench.errors import InputError, PybenchError, UnsupportedError, UsageError
from pybench.preprocess.ring import Ring

NAME = "pybench-orchestrator"
VARIABLE = "PYBENCH_ORCHESTRATOR"
STDERR_LINES_SHOWN = 10
# It leaves within milliseconds of its ring closing; after this it is stuck, and killed.
PATIENCE_S = 5.0


def find_orchestrator(environment: Mapping[str, str] = os.environ) -> Path:
    """$PYBENCH_ORCHESTRATOR, else beside this Python, else on PATH. Raises UsageError or UnsupportedError."""
    if chosen := environment.get(VARIABLE):
        if not os.access(chosen, os.X_OK) or not Path(chosen).is_file():
            raise UsageError(f"${VARIABLE} is {chosen!r}, not a program", hint=f"unset it, or name a {NAME}")
        return Path(chosen)
    beside = Path(sys.executable).parent / NAME
    if os.access(beside, os.X_OK) and beside.is_file():
        return beside
    if found := shutil.which(NAME, path=environment.get("PATH")):
        return Path(found)
    raise UnsupportedError(
        f"{NAME} is neither beside {sys.executable} nor on PATH",
        code="orchestrator_missing",
        hint=f"`make setup` builds it; or set ${VARIABLE}",
    )


@dataclass(frozen=True, slots=True)
class Counters:
    """What each stage did, as the orchestrator counted it. Times of workers are summed over them."""

    workers: int
    documents: int
    empty_files: int
    text_bytes: int
    tokens: int
    batches: int
    dropped_tokens: int
    loading_s: float
    reading_s: float
    tokenizing_s: float
    credit_wait_s: float
    wall_s: float


class Orchestrator:
    """One running process that fills a ring."""

    def __init__(self, ring: Ring, documents: Sequence[Path], flags: Sequence[str]) -> None:
        """Starts it from the calling thread, which has to live as long (`docs/ring.md`, PR_SET_PDEATHSIG).

        documents: the files in the order in which their ids are wanted. flags: the rest of the command line.
        """
        program = find_orchestrator()
        self._stdout = os.memfd_create("orchestrator-stdout")
        self._stderr = os.memfd_create("orchestrator-stderr")
        manifest = os.memfd_create("orchestrator-manifest")
        memory_fd, filled_fd, free_fd = ring.producer_fds
        command = [str(program), "--files-from", f"/proc/self/fd/{manifest}", *flags]
        command += ["--batch", str(ring.layout.batch), "--seq-len", str(ring.layout.seq_len)]
        command += ["--ring-fd", str(memory_fd), "--filled-fd", str(filled_fd), "--free-fd", str(free_fd)]
        command += ["--consumer-pid", str(os.getpid())]
        try:
            with open(manifest, "wb", closefd=False) as file:
                file.write(b"\0".join(os.fsencode(path) for path in documents))
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=self._stdout,
                stderr=self._stderr,
                pass_fds=(manifest, *ring.producer_fds),
            )
        except OSError as error:
            self._close_files()
            raise PybenchError(f"cannot start {program}: {error.strerror}", hint="`make setup` builds it") from error
        finally:
            os.close(manifest)
        ring.producer_started()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def finish(self) -> Counters:
        """Waits for its end after the last batch and returns its counters. Raises its error if it has one."""
        status = self._wait()
        record = self._record()
        if status != 0 or record is None or record.get("ended") != "complete":
            raise self._explain(status, record)
        try:
            return Counters(**{field.name: record[field.name] for field in fields(Counters)})
        except KeyError as error:
            raise PybenchError(
                f"{NAME} did not count {error}", hint="both sides have to be of the same release: `make setup`"
            ) from error

    def failure(self) -> PybenchError:
        """Why it is gone: call when the ring ended too early. InputError when a file of the user's is to blame."""
        return self._explain(self._wait(), self._record())

    def close(self) -> None:
        """Waits for its end, which the closing of the ring has asked for, and kills it if it does not come."""
        self._wait()
        self._close_files()

    def _wait(self) -> int:
        try:
            return self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def _explain(self, status: int, record: Mapping[str, Any] | None) -> PybenchError:
        if status < 0:
            return PybenchError(
                f"{NAME} was killed by {_signal_name(-status)}{self._last_lines()}",
                hint="SIGKILL without your doing is mostly the kernel out of memory: see its log"
                if status == -signal.SIGKILL
                else None,
            )
        if record is None or "error" not in record:
            return PybenchError(f"{NAME} ended with exit code {status}{self._last_lines()}")
        if record["ended"] == "input":
            return InputError(record["error"], hint=record.get("hint"))
        return PybenchError(f"{NAME}: {record['error']}", hint=record.get("hint"))

    def _record(self) -> dict[str, Any] | None:
        """Its line of JSON; None when it died before it wrote one."""
        try:
            record = json.loads(_content(self._stdout))
        except ValueError:
            return None
        return record if isinstance(record, dict) else None

    def _last_lines(self) -> str:
        lines = _content(self._stderr).decode(errors="replace").splitlines()
        return "".join(f"\n  stderr: {line}" for line in lines[-STDERR_LINES_SHOWN:])

    def _close_files(self) -> None:
        os.close(self._stdout)
        os.close(self._stderr)


def _content(fd: int) -> bytes:
    return os.pread(fd, os.fstat(fd).st_size, 0)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
