# SPDX-License-Identifier: Apache-2.0
"""`python -m pybench.worker --report PIPE --lifeline PIPE --spawned-ns T FOLDER --campaign ROOT`,
`... --probe NAMES`, `... --sensor REQUEST`, or `... --opening REQUEST`.
A PIPE is an inherited descriptor, or the path of a FIFO.

Reads case.json (or recipe.json) in FOLDER, does it, stores what was found, and reports how it went as one JSON object
into its report pipe. What is printed goes to the run's logs and means nothing.
"""

from __future__ import annotations

import os
import sys
import time

STARTED_NS = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)

import atexit  # noqa: E402  the clock is read before the first import that costs something
import contextlib  # noqa: E402
import errno  # noqa: E402
import fcntl  # noqa: E402
import json  # noqa: E402
import math  # noqa: E402
import signal  # noqa: E402
import traceback  # noqa: E402
from dataclasses import replace  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any, NoReturn  # noqa: E402

from pybench import __version__  # noqa: E402
from pybench.catalogue.causes import Cause  # noqa: E402
from pybench.catalogue.reasons import Reason  # noqa: E402
from pybench.errors import DeviceMemoryError, InputError, UnsupportedError, UsageError, in_short  # noqa: E402

F_SETSIG = 10  # Linux's <fcntl.h>; Python's fcntl has no name for it


def main(arguments: list[str]) -> int:
    given = _parse(arguments)
    descriptor = _open_pipe(given["--report"], os.O_WRONLY)
    _die_with(_open_pipe(given["--lifeline"], os.O_RDONLY))
    try:
        report = _report(given)
    except UsageError as error:  # a disk that is full, or a file that only this question needs: no result of a case
        report = {"outcome": "usage_error", "message": error.message, "hint": error.hint}
    except UnsupportedError as error:
        said = {"message": error.message, "hint": error.hint}  # for who asked, beside what a run stores
        report = said | _ended("unsupported", replace(error.reason, detail=str(error)))
    except DeviceMemoryError as error:
        report = _ended("oom", Reason(Cause.EVIDENCE, error.message, (error.evidence,)))
    except MemoryError as error:
        report = _ended("oom", Reason(Cause.MEMORY_ERROR, str(error) or "Python could not allocate memory"))
    except Exception as error:  # whatever a framework throws: the outcome is `crashed`, the traceback is in the log
        with contextlib.suppress(OSError):  # the disk of the log may be full
            traceback.print_exc()
        report = _ended("crashed", Reason(Cause.EXCEPTION, in_short(error, 500), (type(error).__name__,)))
        if full := _full_disk(error, given.get("FOLDER")):
            report = {"outcome": "usage_error", "message": full.message, "hint": full.hint}
        if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] == "pybench":
            lacks = f"this installation of pybench lacks a part: {error}"
            report = {"outcome": "usage_error", "message": lacks, "hint": "install pybench again, then run again"}
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    _send(descriptor, report)
    return 0 if report.get("outcome", "ok") == "ok" else 1


def _end(status: int) -> NoReturn:
    """Ends this process without taking its libraries apart.

    ONNX Runtime's CUDA provider sometimes frees memory twice as it is unloaded ("double free or corruption"), and a
    finished measurement would count as crashed. Python would also look for cycles among a framework's objects, which
    takes half a second. What was registered for the end is done, because it ends helper processes.
    """
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError):  # of a full disk
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


def _report(given: dict[str, str]) -> dict[str, Any]:
    if "--probe" in given:
        return _probe(given["--probe"])
    if "--sensor" in given:
        from pybench.worker import sensor

        return sensor.do(Path(given["--sensor"]))
    if "--opening" in given:
        from pybench.worker import opening

        return opening.answer(given["--opening"])
    return _work(given)


def _work(given: dict[str, str]) -> dict[str, Any]:
    """Does the case or recipe of a folder. A user's file that cannot be used fails this cell, and no other."""
    folder, campaign = Path(given["FOLDER"]), Path(given["--campaign"])
    from pybench.worker import job

    try:
        return job.do(folder, campaign, spawned_ns=int(given["--spawned-ns"]), started_ns=STARTED_NS)
    except InputError as error:
        return _ended("build_failed", Reason(Cause.INPUT_REFUSED, str(error)))


def _full_disk(error: BaseException, folder: str | None) -> UsageError | None:
    """The error to show where an exception arose from a full disk, which is no result of a case; else None.

    `folder`: where this process works; None: it only answers, and a disk without room says nothing of that.
    """
    from pybench.campaign.storage import FULL, storage_error

    place = Path(folder or ".")
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno in FULL:
            return storage_error(cause, Path(cause.filename or _fullest(place)))
        cause = cause.__cause__ or cause.__context__
    # Libraries that write in C++ have a text at most.
    code = next((code for code in FULL if os.strerror(code) in str(error)), None)
    if code is None and folder is not None and _free_blocks(place) == 0:
        code = errno.ENOSPC
    if code is None:
        return None
    return storage_error(OSError(code, f"{os.strerror(code)} ({in_short(error)})"), _fullest(place))


def _fullest(folder: Path) -> Path:
    """Where there is less room: the folder, or that of temporary files."""
    rooms = {place: _free_blocks(place) for place in (folder, Path(os.environ.get("TMPDIR", "/tmp")))}
    return min(rooms, key=lambda place: math.inf if (free := rooms[place]) is None else free)


def _free_blocks(folder: Path) -> int | None:
    """Blocks of the file system that are free for this user; None where it does not tell, as some on a network."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return None
    return disk.f_bavail if disk.f_blocks > 0 else None


def _ended(outcome: str, reason: Reason) -> dict[str, Any]:
    return {"outcome": outcome, "reason": reason.stored_code, "detail": reason.detail}


def _probe(names: str) -> dict[str, Any]:
    from pybench.worker import probe

    return {"outcome": "ok", "pybench": __version__, "facts": probe.probe(names.split(","))}


def _parse(arguments: list[str]) -> dict[str, str]:
    """Only the runner writes this command line, so it is taken apart without argparse, whose import costs 10 ms."""
    given: dict[str, str] = {}
    remaining = iter(arguments)
    for word in remaining:
        if word.startswith("--"):
            given[word] = next(remaining)
        else:
            given["FOLDER"] = word
    return given


def _open_pipe(given: str, mode: int) -> int:
    """A pipe by its inherited descriptor, or by its path. Nothing that this process starts inherits it."""
    if given.isdigit():
        os.set_inheritable(int(given), False)
        return int(given)
    try:
        return os.open(given, mode | os.O_NONBLOCK)
    except OSError:  # ENXIO: nobody listens to this FIFO any more
        os._exit(1)


def _die_with(lifeline: int) -> None:
    """Asks the kernel to kill this process when whoever holds the other end dies; ends at once when that has happened.

    O_ASYNC with SIGKILL for its signal: the kernel sends it when a pipe's last writer goes (pipe_release), whatever
    this process is doing then, and across namespaces, which PR_SET_PDEATHSIG does not.
    """
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, F_SETSIG, signal.SIGKILL)
    flags = fcntl.fcntl(lifeline, fcntl.F_GETFL)
    fcntl.fcntl(lifeline, fcntl.F_SETFL, flags | os.O_NONBLOCK | os.O_ASYNC)
    try:
        os.read(lifeline, 1)
    except BlockingIOError:
        return
    os._exit(1)


def _send(descriptor: int, report: dict[str, Any]) -> None:
    os.set_blocking(descriptor, True)
    with open(descriptor, "wb") as pipe:
        pipe.write(json.dumps(report).encode())


if __name__ == "__main__":
    _end(main(sys.argv[1:]))
