# SPDX-License-Identifier: Apache-2.0
"""`python -m pybench.worker --report FD --parent PID --spawned-ns T FOLDER --campaign ROOT`, `... --probe NAMES`,
or `... --sensor REQUEST`.

Reads case.json (or recipe.json) in FOLDER, does it, stores what was found, and reports how it went as one JSON object
on descriptor FD. What is printed goes to the run's logs and means nothing.
"""

from __future__ import annotations

import os
import sys
import time

STARTED_NS = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)

import json  # noqa: E402  the clock is read before the first import that costs something
import traceback  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

from pybench.errors import DeviceMemoryError, UnsupportedError, UsageError  # noqa: E402

PR_SET_PDEATHSIG = 1
SIGKILL = 9


def main(arguments: list[str]) -> int:
    given = _parse(arguments)
    descriptor = int(given["--report"])
    _die_with(int(given["--parent"]))
    try:
        report = _report(given)
    except UsageError as error:  # a user's file that cannot be used, or a disk that is full: no result of this case
        report = {"outcome": "usage_error", "message": error.message, "hint": error.hint}
    except UnsupportedError as error:
        report = {"outcome": "unsupported", "reason": error.code, "detail": str(error)}
    except DeviceMemoryError as error:
        report = {"outcome": "oom", "reason": error.evidence, "detail": error.message}
    except MemoryError as error:
        report = {"outcome": "oom", "reason": "MemoryError", "detail": str(error) or "Python could not allocate memory"}
    except Exception as error:  # whatever a framework throws: the outcome is `crashed`, the traceback is in the log
        traceback.print_exc()
        report = {"outcome": "crashed", "reason": type(error).__name__, "detail": _one_line(error)}
    sys.stdout.flush()
    sys.stderr.flush()
    _send(descriptor, report)
    return 0 if report.get("outcome", "ok") == "ok" else 1


def _report(given: dict[str, str]) -> dict[str, Any]:
    if "--probe" in given:
        return _probe(given["--probe"])
    if "--sensor" in given:
        from pybench.worker import sensor

        return sensor.do(Path(given["--sensor"]))
    return _work(given)


def _work(given: dict[str, str]) -> dict[str, Any]:
    """Does the case or recipe of a folder; returns the report of a success."""
    folder, campaign = Path(given["FOLDER"]), Path(given["--campaign"])
    from pybench.worker import job

    return job.do(folder, campaign, spawned_ns=int(given["--spawned-ns"]), started_ns=STARTED_NS)


def _probe(names: str) -> dict[str, Any]:
    from pybench.worker import probe

    return {"outcome": "ok", "facts": probe.probe(names.split(","))}


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


def _die_with(parent: int) -> None:
    """Asks the kernel to kill this process when the runner dies; ends at once when that has happened already.

    The runner says who it is: a runner that died before this line would leave another parent behind.
    """
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def _send(descriptor: int, report: dict[str, Any]) -> None:
    with open(descriptor, "wb") as pipe:
        pipe.write(json.dumps(report).encode())


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 500 else text[:499] + "…"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
