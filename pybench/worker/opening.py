# SPDX-License-Identifier: Apache-2.0
"""What is asked about a user's ONNX file before any run: whether a runtime opens it, and how much one pass computes.

`open`: {path, case} -> {providers, partitions, seconds}; a runtime that opens no ONNX file by itself is not asked.
`flops`: {path, fed} -> {flops}, at the sizes of each input. Each question is a process of its own, so that one file
that a runtime dies of ends no other answer, and no more than one of them holds the file.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pybench.case import case_from_json


def answer(request: str) -> dict[str, Any]:
    """The answer to one question, which is JSON. Raises what the job raises."""
    question = json.loads(request)
    return {"outcome": "ok", **_JOBS[question["job"]](question)}


def _open(question: dict[str, Any]) -> dict[str, Any]:
    from pybench.measurement.doubts import allowed_threads

    case = case_from_json(question["case"])
    row = case.runtime_row
    if row is None:
        raise ValueError("the case has no runtime")
    session = importlib.import_module(row.module).open_case(
        Path(question["path"]), None, case, allowed_threads(case), deterministic=False
    )
    shown = ("runtime_version", "provider", "partitions")
    return {"labels": {name: session.labels[name] for name in shown if name in session.labels}}


def _flops(question: dict[str, Any]) -> dict[str, Any]:
    from pybench.precision.flops import count_flops

    fed = {name: tuple(sizes) for name, sizes in question["fed"].items()}
    return {"flops": sum(count_flops(Path(question["path"]), 1, 1, fed).values())}


_JOBS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {"open": _open, "flops": _flops}
