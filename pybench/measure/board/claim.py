# SPDX-License-Identifier: Apache-2.0
"""The right to change one board: a lock that one run at a time holds, a record of what was before, a guardian.

The lock is an flock on a file for each UUID. The guardian inherits it, so it is free only when the board is as it was,
even if the worker is killed. The record is written before anything is set and removed after it was restored. Where it
is found while the lock is free, worker and guardian were both killed, and it tells what was before.

Files lie in /run/pybench, which a restart empties as it resets the board; PYBENCH_BOARD_STATE names another folder.
Containers that share a board have to share that folder, or they do not see each other. What is set is not decided here.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path

from pybench.catalogue.causes import Cause
from pybench.errors import PybenchError, UnsupportedError, UsageError
from pybench.measure.board import guardian, nvml
from pybench.measure.board.guardian import Record, Restored

FOLDER = "/run/pybench"
FOLDER_VARIABLE = "PYBENCH_BOARD_STATE"

LOCK_WAIT_S = 10.0  # a guardian needs some milliseconds, three failing attempts a second; another run needs minutes
LOCK_POLL_S = 0.02
GUARDIAN_START_S = 60.0  # 15 ms on an idle machine
GUARDIAN_END_S = 20.0


def state_folder() -> Path:
    """Where locks and records lie."""
    return Path(os.environ.get(FOLDER_VARIABLE) or FOLDER)


def record_path(uuid: str) -> Path:
    return state_folder() / f"{uuid}.json"


def is_changed(uuid: str) -> bool:
    """Whether some run has changed this board and it has not been put back yet. Costs one look at a file."""
    return record_path(uuid).exists()


def read_leftover(uuid: str) -> Record | None:
    """The record of a board, None where there is none or it is of before the machine's last start, which reset it."""
    try:
        record = guardian.read_record(record_path(uuid))
    except ValueError as error:
        raise PybenchError(
            f"{error}: the earlier settings of the board {uuid} are unknown",
            hint="check it with `nvidia-smi -q -d POWER,CLOCK`, set it right, and remove the file",
        ) from error
    if record is not None and record["boot_id"] != boot_id():
        with contextlib.suppress(OSError):  # it may be somebody else's
            record_path(uuid).unlink()
        return None
    return record


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


class BoardClaim:
    """One board, held by this process. `library`: NVML's, which the guardian opens, too.

    Raises UsageError when another run holds the board for longer than `wait_s`.

    A claim without a guardian changes nothing but what a killed run left behind.
    """

    def __init__(self, uuid: str, library: str, wait_s: float = LOCK_WAIT_S) -> None:
        self.uuid = uuid
        self.record = record_path(uuid)
        self._library = library
        self._guardian: subprocess.Popen[bytes] | None = None
        self._noted: Record = {}
        self._lock = _open_lock(state_folder() / f"{uuid}.lock")
        try:
            self._wait_for_lock(wait_s)
        except BaseException:
            os.close(self._lock)
            raise

    def guard(self) -> None:
        """Starts the guardian: from here on what `will_set` notes will be restored."""
        self._guardian = self._start_guardian()

    def will_set(self, name: str, setting: Record) -> None:
        """Notes on the disk what has to be restored, before it is set."""
        self._noted[name] = setting
        self._write()

    def was_refused(self, name: str) -> None:
        """The board has not taken it after all: there is nothing to restore."""
        del self._noted[name]
        self._write()

    def release(self, board: nvml.NvmlBoard) -> Restored:
        """Restores what was set, by the guardian, or here if that was killed or found no record. Ends the claim."""
        try:
            restored = self._end_guardian()
            if not self._noted.keys() <= restored.keys():
                restored = guardian.restore(board, self._noted, self.record)
            return restored
        finally:
            os.close(self._lock)

    def _write(self) -> None:
        record = {
            "schema_version": guardian.SCHEMA_VERSION,
            "boot_id": boot_id(),
            "uuid": self.uuid,
            "worker_pid": os.getpid(),
            "settings": self._noted,
        }
        guardian.write_record(self.record, record)

    def _wait_for_lock(self, wait_s: float) -> None:
        until = time.monotonic() + wait_s
        while True:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            if time.monotonic() >= until:
                holder = _holder(self.uuid)
                raise UsageError(
                    f"the board {self.uuid} is held by another run{holder}, which sets its power limit or clocks",
                    hint="wait until that run has ended: only one run at a time can set a board",
                )
            time.sleep(LOCK_POLL_S)

    def _start_guardian(self) -> subprocess.Popen[bytes]:
        """In a session of its own, with the lock, a pipe that closes with this process, and its word to be ready."""
        command = [sys.executable, "-I", "-S", guardian.__file__, nvml.__file__, nvml.folder_of_pynvml()]
        command += [self._library, str(self.record), self.uuid, str(os.getpid())]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=(self._lock,), start_new_session=True
        )
        said = _read_line(process, GUARDIAN_START_S)
        if said != "ready":
            _close(process)
            raise PybenchError(
                f"the process that would put the board {self.uuid} back did not start: {said or 'silence'}"
            )
        return process

    def _end_guardian(self) -> Restored:
        """What the guardian says it restored; nothing where there is none, or it was killed."""
        process, self._guardian = self._guardian, None
        if process is None:
            return {}
        if process.stdin is not None:
            process.stdin.close()
        said = _read_line(process, GUARDIAN_END_S)
        _close(process)
        try:
            restored: Restored = json.loads(said)
        except json.JSONDecodeError:
            return {}
        return restored


def _open_lock(path: Path) -> int:
    """The lock file, made where it is missing. Not for writing where this user may not: a lock can be held as well."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except PermissionError:
        with contextlib.suppress(OSError):
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise PybenchError(
            f"cannot write {path}: {error.strerror}", hint=f"{FOLDER_VARIABLE} names another folder"
        ) from error
    raise UnsupportedError(
        f"no permission to write {path.parent}",
        code=Cause.NO_PERMISSION,
        hint="run as root, which NVML requires as well",
    )


def _holder(uuid: str) -> str:
    try:
        record = guardian.read_record(record_path(uuid))
    except (OSError, ValueError):
        return ""
    return f" (process {record['worker_pid']})" if record else ""


def _read_line(process: subprocess.Popen[bytes], limit_s: float) -> str:
    """The next line a process says; empty when it ends, or says nothing for so long."""
    if process.stdout is None or not select.select([process.stdout], [], [], limit_s)[0]:
        return ""
    return process.stdout.readline().decode(errors="replace").strip()


def _close(process: subprocess.Popen[bytes]) -> None:
    """Lets go of a guardian. One that does not end is left alone: it may be in a call to the driver."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=GUARDIAN_END_S)
