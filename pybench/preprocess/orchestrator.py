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
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pybench.errors import InputError, PybenchError, UnsupportedError, UsageError
from pybench.measure.timing.clock import NANOSECONDS_PER_SECOND
from pybench.preprocess.ring import Ring

NAME = "pybench-orchestrator"
VARIABLE = "PYBENCH_ORCHESTRATOR"
STDERR_LINES_SHOWN = 10
# It leaves within milliseconds of its ring closing, on a machine that is busy within seconds. After this it is stuck.
PATIENCE_S = 30.0
ANSWER_S = 5.0
ANSWER_POLL_S = 0.001


def find_orchestrator(environment: Mapping[str, str] = os.environ) -> Path:
    """$PYBENCH_ORCHESTRATOR, else where its wheel put it, else beside this Python, else on PATH.

    Raises UsageError or UnsupportedError.
    """
    if chosen := environment.get(VARIABLE):
        if not os.access(chosen, os.X_OK) or not Path(chosen).is_file():
            raise UsageError(f"${VARIABLE} is {chosen!r}, not a program", hint=f"unset it, or name a {NAME}")
        return Path(chosen)
    if (installed := _installed()) is not None:
        return installed
    beside = Path(sys.executable).parent / NAME
    if os.access(beside, os.X_OK) and beside.is_file():
        return beside
    if found := shutil.which(NAME, path=environment.get("PATH")):
        return Path(found)
    raise UnsupportedError(
        f"{NAME} is neither installed nor next to {sys.executable} nor on PATH",
        code="orchestrator_missing",
        hint=f"`make setup` or `pip install ./orchestrator-go` installs it; or set ${VARIABLE}",
    )


def _installed() -> Path | None:
    """The program of the wheel `pybench-orchestrator`."""
    try:
        import pybench_orchestrator

        return Path(pybench_orchestrator.program_path())
    except (ImportError, FileNotFoundError):
        return None


@dataclass(frozen=True, slots=True)
class Counters:
    """What each stage has done, as the orchestrator counted it. Times of several threads are summed.

    `read_bytes` are decompressed and hold the JSON around a text; `tokens` hold the ids that end documents, and the
    dropped ones. Waits: for a free buffer, for text, for the next chunk in order, and for a reader's slot.
    """

    workers: int
    empty_files: int
    loading_s: float
    wall_s: float
    read_bytes: int
    empty_documents: int
    documents: int
    text_bytes: int
    tokens: int
    dropped_tokens: int
    batches: int
    reading_s: float
    read_wait_s: float
    tokenizing_s: float
    tokenize_wait_s: float
    packing_s: float
    pack_wait_s: float
    credit_wait_s: float

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Counters:
        """Out of a line of counters (docs/formats/ring.md). Raises KeyError for what it lacks."""
        stages = record["stages"]
        read, tokenize, pack, deliver = (stages[name] for name in ("read", "tokenize", "pack", "deliver"))
        return cls(
            **{name: record[name] for name in ("workers", "empty_files", "loading_s", "wall_s")},
            read_bytes=read["bytes"],
            empty_documents=read["empty_documents"],
            documents=pack["documents"],
            text_bytes=pack["bytes"],
            tokens=pack["ids"],
            dropped_tokens=pack["dropped_ids"],
            batches=deliver["batches"],
            reading_s=read["busy_ns"] / NANOSECONDS_PER_SECOND,
            read_wait_s=read["wait_ns"] / NANOSECONDS_PER_SECOND,
            tokenizing_s=tokenize["busy_ns"] / NANOSECONDS_PER_SECOND,
            tokenize_wait_s=tokenize["wait_ns"] / NANOSECONDS_PER_SECOND,
            packing_s=pack["busy_ns"] / NANOSECONDS_PER_SECOND,
            pack_wait_s=pack["wait_ns"] / NANOSECONDS_PER_SECOND,
            credit_wait_s=deliver["wait_ns"] / NANOSECONDS_PER_SECOND,
        )


class Orchestrator:
    """One running process that fills a ring."""

    def __init__(
        self, ring: Ring, documents: Sequence[Path], flags: Sequence[str], stdin: int = subprocess.DEVNULL
    ) -> None:
        """Starts it from the calling thread, which has to live as long (`docs/formats/ring.md`, PR_SET_PDEATHSIG).

        documents: the files in the order in which their ids are wanted; may be empty where `flags`, the rest of the
        command line, name an input. stdin: a descriptor that it reads as `--input -`.
        """
        program = find_orchestrator()
        self._was_stuck = False
        self._stdout = os.memfd_create("orchestrator-stdout")
        self._stderr = os.memfd_create("orchestrator-stderr")
        manifest = os.memfd_create("orchestrator-manifest")
        command = [str(program), *flags, *_ring_flags(ring), "--consumer-pid", str(os.getpid())]
        command += ["--files-from", f"/proc/self/fd/{manifest}"] if documents else []
        try:
            with open(manifest, "wb", closefd=False) as file:
                file.write(b"\0".join(os.fsencode(path) for path in documents))
            self._process = subprocess.Popen(
                command,
                stdin=stdin,
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
            return Counters.of_record(record)
        except KeyError as error:
            raise PybenchError(
                f"{NAME} did not count {error}", hint="both sides must be of the same release: run `make setup`"
            ) from error

    def progress(self) -> Counters | None:
        """Its counters so far; None when it has ended or did not answer in time. Only after the ring is ready."""
        before = _content(self._stdout)
        if self._process.poll() is not None:
            return None
        self._process.send_signal(signal.SIGUSR1)
        deadline_s = time.monotonic() + ANSWER_S
        while time.monotonic() < deadline_s and self._process.poll() is None:
            lines = _content(self._stdout).removeprefix(before)
            if b"\n" in lines:
                return Counters.of_record(json.loads(lines.splitlines()[0]))
            time.sleep(ANSWER_POLL_S)
        return None

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
            self._was_stuck = True
            self._process.kill()
            return self._process.wait()

    def _explain(self, status: int, record: Mapping[str, Any] | None) -> PybenchError:
        if status < 0 and not self._was_stuck:
            return PybenchError(
                f"{NAME} was killed by {_signal_name(-status)}{self._last_lines()}",
                hint="SIGKILL without your doing is mostly the kernel out of memory: see its log"
                if status == -signal.SIGKILL
                else None,
            )
        if record is None or "error" not in record:
            how = f"stayed {PATIENCE_S:g} s beyond its ring" if self._was_stuck else f"ended with exit code {status}"
            return PybenchError(f"{NAME} {how}{self._last_lines()}")
        if record["ended"] == "input":
            return InputError(record["error"], hint=record.get("hint"))
        return PybenchError(f"{NAME}: {record['error']}", hint=record.get("hint"))

    def _record(self) -> dict[str, Any] | None:
        """Its last line of JSON; None when it died before it wrote one."""
        try:
            record = json.loads(_content(self._stdout).splitlines()[-1])
        except (ValueError, IndexError):
            return None
        return record if isinstance(record, dict) else None

    def _last_lines(self) -> str:
        lines = _content(self._stderr).decode(errors="replace").splitlines()
        return "".join(f"\n  stderr: {line}" for line in lines[-STDERR_LINES_SHOWN:])

    def _close_files(self) -> None:
        os.close(self._stdout)
        os.close(self._stderr)


def _ring_flags(ring: Ring) -> list[str]:
    layout = ring.layout
    flags = ["--batch", str(layout.batch), "--seq-len", str(layout.seq_len), *(["--ragged"] if layout.ragged else [])]
    flags += ["--ring-fd", str(ring.memory_fd), "--filled-fd", ",".join(map(str, ring.filled_fds))]
    return [*flags, "--free-fd", ",".join(map(str, ring.free_fds))]


def _content(fd: int) -> bytes:
    return os.pread(fd, os.fstat(fd).st_size, 0)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
