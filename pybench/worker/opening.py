# SPDX-License-Identifier: Apache-2.0
"""What is asked about a user's ONNX file before any run: whether a runtime opens it, and how much one pass computes.

`open`: {path, case} -> {providers, partitions, seconds}; a runtime that opens no ONNX file by itself is not asked.
`time`: {path, case, fed} -> {seconds}: the best of a few passes, to plan how long a run has to be.
`flops`: {path, fed} -> {flops}, at the sizes of each input. Each question is a process of its own, so that one file
that a runtime dies of ends no other answer, and no more than one of them holds the file.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybench.case import case_from_json

if TYPE_CHECKING:
    from pybench.runtimes.session import Session

MOST_PASSES, ENOUGH_S = 5, 1.0  # a first look: five passes, or as many as a second has


def answer(request: str) -> dict[str, Any]:
    """The answer to one question, which is JSON. Raises what the job raises."""
    question = json.loads(request)
    return {"outcome": "ok", **_JOBS[question["job"]](question)}


def _open(question: dict[str, Any]) -> dict[str, Any]:
    session = _session(question)
    shown = ("runtime_version", "provider", "partitions")
    return {"labels": {name: session.labels[name] for name in shown if name in session.labels}}


def _time(question: dict[str, Any]) -> dict[str, Any]:
    """The first pass allocates and is not counted, unless it alone takes longer than all others may."""
    from pybench.measure import monotonic_ns
    from pybench.measurement.inputs import arrays_of, file_ranges

    session = _session(question)
    shapes = {name: tuple(sizes) for name, sizes in question["fed"].items()}
    inputs = arrays_of(session.inputs, shapes, 0, file_ranges(Path(question["path"])))
    seconds: list[float] = []
    while len(seconds) < MOST_PASSES and sum(seconds) < ENOUGH_S:
        begin_ns = monotonic_ns()
        session.run(inputs)
        seconds.append((monotonic_ns() - begin_ns) * 1e-9)
    return {"seconds": min(seconds)}


def _session(question: dict[str, Any]) -> Session:
    from pybench.measurement.doubts import allowed_threads

    case = case_from_json(question["case"])
    row = case.runtime_row
    if row is None:
        raise ValueError("the case has no runtime")
    open_case = importlib.import_module(row.module).open_case
    session: Session = open_case(Path(question["path"]), None, case, allowed_threads(case), deterministic=False)
    return session


def _flops(question: dict[str, Any]) -> dict[str, Any]:
    from pybench.precision.flops import count_flops

    fed = {name: tuple(sizes) for name, sizes in question["fed"].items()}
    return {"flops": sum(count_flops(Path(question["path"]), 1, 1, fed).values())}


_JOBS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {"open": _open, "time": _time, "flops": _flops}
