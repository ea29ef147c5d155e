# SPDX-License-Identifier: Apache-2.0
"""Asks a worker process something and waits for its report. The worker imports; this side never does."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from typing import Any

from pybench.catalogue.reasons import read_reason
from pybench.errors import InputError, PybenchError, UnsupportedError
from pybench.launcher import FileAccess, Launcher

NOTHING = FileAccess()
RUNNABLE = "an image needs tini and a Python with this pybench on its PATH: `make container` makes one"


def ask_worker(
    launcher: Launcher,
    question: Sequence[str],
    what: str,
    *,
    timeout_s: float,
    access: FileAccess = NOTHING,
    talk: bool = False,
) -> dict[str, Any]:
    """The report of `python -m pybench.worker <question>`. `what`: the question in words, for errors; `talk`: the
    worker's stderr is ours.

    Raises InputError for a file of the user's that the worker refused, UnsupportedError for what this machine cannot
    do, PybenchError when there is no report.
    """
    stderr_to = None if talk else subprocess.PIPE
    try:
        with launcher.start(question, access, subprocess.DEVNULL, stderr_to, own_session=False) as worker:
            stderr = worker.process.communicate(timeout=timeout_s)[1] or b""
            text, _ = worker.read_report()
    except subprocess.TimeoutExpired as error:
        raise PybenchError(f"asking this machine for {what} took over {timeout_s:.0f} s") from error
    except OSError as error:
        raise PybenchError(f"cannot start a worker to ask for {what}: {error}") from error
    ended = worker.exit()
    try:
        report: dict[str, Any] = json.loads(text)
    except json.JSONDecodeError as error:
        said = stderr.decode(errors="replace").strip().splitlines()[-1:]
        if ended.failure is not None:
            raise PybenchError(": ".join([ended.failure, *said]), hint=RUNNABLE) from error
        last = said[0] if said else f"it ended with {ended.signal or ended.status}"
        raise PybenchError(f"the worker could not answer for {what}: {last}", hint="run `pybench doctor`") from error
    return _checked(report, what)


def _checked(report: dict[str, Any], what: str) -> dict[str, Any]:
    outcome = report.get("outcome")
    if outcome == "ok":
        return report
    if outcome == "usage_error":
        raise InputError(report["message"], hint=report.get("hint"))
    if outcome == "unsupported":
        reason = read_reason(report["reason"])
        raise UnsupportedError(report["message"], code=reason.code, names=reason.names, hint=report["hint"])
    detail = report.get("detail") or report.get("reason") or outcome
    raise PybenchError(f"the worker could not answer for {what}: {detail}", hint="run `pybench doctor`")
