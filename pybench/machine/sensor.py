# SPDX-License-Identifier: Apache-2.0
"""The power sensor of a board, asked through a worker: the energy of windows of a recorded trace."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from pybench.machine.asking import ask_worker

ANSWER_TIMEOUT_S = 600.0  # a day's trace integrates in seconds; reading it as text takes longer


def integrate_trace(trace: Path, windows: Path, method: str, profile: Path | None) -> dict[str, Any]:
    """Energy and uncertainty of every window: {sensor, windows}, JSON as `pybench sensor integrate` prints it.

    Raises InputError for a folder, file or profile that cannot be used.
    """
    request = {
        "job": "integrate",
        "trace": str(trace),
        "windows": str(windows),
        "method": method,
        "profile": None if profile is None else str(profile),
    }
    return ask_sensor(request, "the energy of these windows", timeout_s=ANSWER_TIMEOUT_S)


def ask_sensor(request: dict[str, Any], what: str, *, timeout_s: float, talk: bool = False) -> dict[str, Any]:
    """The answer of `pybench.worker.sensor` to one request. `talk`: the worker tells its progress on our stderr."""
    with tempfile.TemporaryDirectory(prefix="pybench-sensor-") as folder:
        file = Path(folder) / "request.json"
        file.write_text(json.dumps(request))
        ask_worker(["--sensor", str(file)], what, timeout_s=timeout_s, talk=talk)
        answer: dict[str, Any] = json.loads((file.parent / "answer.json").read_bytes())
    return answer
