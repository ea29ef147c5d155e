# SPDX-License-Identifier: Apache-2.0
"""The program `pybench-orchestrator`: found, started with inherited descriptors, its death explained.

Its stdout and stderr go to memory files, not pipes: nobody has to drain them meanwhile, and none can fill up and
block it. The kernel kills it with its parent.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pybench.catalogue.causes import Cause
from pybench.errors import InputError, PybenchError, UnsupportedError, UsageError

NAME = "pybench-orchestrator"
VARIABLE = "PYBENCH_ORCHESTRATOR"
UNEXPLAINED = "run `pybench doctor`; report what it does not explain"
STDERR_LINES_SHOWN = 10
# It leaves within milliseconds of its ring closing, on a machine that is busy within seconds. After this it is stuck.
PATIENCE_S = 30.0


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
        code=Cause.ORCHESTRATOR_MISSING,
        hint=f"`make setup` or `pip install ./orchestrator-go` installs it; or set ${VARIABLE}",
    )


def _installed() -> Path | None:
    """The program of the wheel `pybench-orchestrator`."""
    try:
        import pybench_orchestrator

        return Path(pybench_orchestrator.program_path())
    except (ImportError, FileNotFoundError):
        return None


class Program:
    """One running process of the program.

    serves: what the process is there for and must not outlive, in words for an error
    """

    serves: str

    def __init__(
        self,
        flags: Sequence[str],
        inherited: Sequence[int],
        stdin: int = subprocess.DEVNULL,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Starts it from the calling thread, which has to live as long (`docs/formats/ring.md`, PR_SET_PDEATHSIG).

        `inherited`: descriptors that it gets. `environment`: None: this process's.
        """
        program = find_orchestrator()
        self._was_stuck = False
        self._stdout = os.memfd_create("orchestrator-stdout")
        self._stderr = os.memfd_create("orchestrator-stderr")
        try:
            self._process = subprocess.Popen(
                [str(program), *flags, "--consumer-pid", str(os.getpid())],
                stdin=stdin,
                stdout=self._stdout,
                stderr=self._stderr,
                pass_fds=inherited,
                env=environment,
            )
        except OSError as error:
            self._close_files()
            raise PybenchError(f"cannot start {program}: {error.strerror}", hint="`make setup` builds it") from error

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def failure(self) -> PybenchError:
        """Why it is gone: call when it ended too early. InputError when a file of the user's is to blame."""
        return self._explain(self._wait(), self._record())

    def close(self) -> None:
        """Waits for its end, which whoever closes has asked for, and kills it if it does not come."""
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
                else UNEXPLAINED,
            )
        if record is None or "error" not in record:
            how = (
                f"stayed {PATIENCE_S:g} s beyond {self.serves}" if self._was_stuck else f"ended with exit code {status}"
            )
            return PybenchError(f"{NAME} {how}{self._last_lines()}", hint=UNEXPLAINED)
        if record["ended"] == "input":
            return InputError(record["error"], hint=record.get("hint"))
        return PybenchError(f"{NAME}: {record['error']}", hint=record.get("hint"))

    def _record(self) -> dict[str, Any] | None:
        """Its last line of JSON; None when it died before it wrote one."""
        try:
            record = json.loads(content(self._stdout).splitlines()[-1])
        except (ValueError, IndexError):
            return None
        return record if isinstance(record, dict) else None

    def _last_lines(self) -> str:
        lines = content(self._stderr).decode(errors="replace").splitlines()
        return "".join(f"\n  stderr: {line}" for line in lines[-STDERR_LINES_SHOWN:])

    def _close_files(self) -> None:
        os.close(self._stdout)
        os.close(self._stderr)


def content(fd: int) -> bytes:
    return os.pread(fd, os.fstat(fd).st_size, 0)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
