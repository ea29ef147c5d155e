# SPDX-License-Identifier: Apache-2.0
"""Asks a worker process something and waits for its report. The worker imports; this side never does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from pybench.errors import InputError, PybenchError, UnsupportedError


def ask_worker(question: Sequence[str], what: str, *, timeout_s: float, talk: bool = False) -> dict[str, Any]:
    """The report of `python -m pybench.worker <question>`. `what`: the question in words, for errors; `talk`: the
    worker's stderr is ours.

    Raises InputError for a file of the user's that the worker refused, UnsupportedError for what this machine cannot
    do, PybenchError when there is no report.
    """
    read_end, write_end = os.pipe2(os.O_CLOEXEC)
    command = [sys.executable, "-P", "-m", "pybench.worker", "--report", str(write_end)]
    command += ["--parent", str(os.getpid()), *question]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=None if talk else subprocess.PIPE,
        pass_fds=(write_end,),
    )
    os.close(write_end)
    stderr = b""
    try:
        stderr = process.communicate(timeout=timeout_s)[1] or b""
    except subprocess.TimeoutExpired as error:
        process.kill()
        process.communicate()
        raise PybenchError(f"asking this machine for {what} took over {timeout_s:.0f} s") from error
    finally:
        with open(read_end, "rb") as pipe:
            text = pipe.read() if process.returncode is not None else b""
    try:
        report: dict[str, Any] = json.loads(text)
    except json.JSONDecodeError as error:
        last = stderr.decode(errors="replace").strip().splitlines()[-1:] or [f"exit status {process.returncode}"]
        raise PybenchError(f"the worker could not answer for {what}: {last[0]}", hint="run `pybench doctor`") from error
    return _checked(report, what)


def _checked(report: dict[str, Any], what: str) -> dict[str, Any]:
    outcome = report.get("outcome")
    if outcome == "ok":
        return report
    if outcome == "usage_error":
        raise InputError(report["message"], hint=report.get("hint"))
    detail = report.get("detail") or report.get("reason") or outcome
    if outcome == "unsupported":
        raise UnsupportedError(str(detail), code=str(report.get("reason")))
    raise PybenchError(f"the worker could not answer for {what}: {detail}", hint="run `pybench doctor`")
