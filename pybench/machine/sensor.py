# SPDX-License-Identifier: Apache-2.0
"""The power sensor of a board, asked through a worker: its profile, and the energy of windows of a recorded trace."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pybench.catalogue.causes import Cause
from pybench.catalogue.sensors import SHORT_LOADS
from pybench.errors import UnsupportedError, UsageError
from pybench.launcher import LOCAL, FileAccess, Launcher
from pybench.machine.asking import ask_worker
from pybench.machine.diagnosis import why_no_gpu
from pybench.machine.facts import ask
from pybench.machine.profiles import Profile

ANSWER_TIMEOUT_S = 600.0  # a day's trace integrates in seconds; reading it as text takes longer
MEASURING_TIMEOUT_S = 600.0  # it takes about a minute; a busy GPU and a slow driver may stretch that


@dataclass(frozen=True, slots=True)
class Board:
    """One GPU as NVML knows it."""

    index: int
    uuid: str
    name: str
    driver: str | None


def boards(launcher: Launcher = LOCAL) -> list[Board]:
    """The GPUs of this machine in NVML's order. Raises UnsupportedError (`no_gpu`) where there is none."""
    fact = ask(("gpu",), launcher)["gpu"]
    if not fact["available"] or not fact["devices"]:
        raise UnsupportedError(
            f"there is no GPU whose sensor could be measured: {why_no_gpu(fact)}",
            code=Cause.NO_GPU,
            hint="it needs an NVIDIA GPU and its driver (libnvidia-ml.so.1); a container must be given them",
        )
    return [
        Board(index, device["uuid"], device["name"], fact["driver"]) for index, device in enumerate(fact["devices"])
    ]


def chosen_boards(device: str | None) -> list[Board]:
    """The boards that CUDA shows to this process, or the one with this UUID (its beginning is enough) or index.

    Where CUDA shows none of them, it is all boards: whoever needs CUDA then says what is wrong with it.
    Raises UsageError for no such board.
    """
    there = boards()
    if device is None:
        shown = ask(("visible_gpus",))["visible_gpus"].get("uuids", ())
        return [board for board in there if board.uuid in shown] or there
    fitting = [board for board in there if device == str(board.index) or board.uuid.startswith(device)]
    if len(fitting) != 1:
        listed = ", ".join(f"{board.index} {board.uuid}" for board in there)
        what = "no GPU here" if not fitting else f"{len(fitting)} GPUs"
        raise UsageError(f"--device {device} fits {what}", hint=f"there are {listed}")
    return fitting


def boards_of(uuids: Set[str], launcher: Launcher = LOCAL) -> list[Board]:
    """The boards with these UUIDs, as far as NVML knows them; for no UUID nobody is asked."""
    if not uuids:
        return []
    try:
        return [board for board in boards(launcher) if board.uuid in uuids]
    except UnsupportedError:
        return []


def measure_profile(
    board: Board, *, loads: int = SHORT_LOADS, force: bool = False, launcher: Launcher = LOCAL
) -> Profile:
    """Measures a board's sensor, about a minute; its progress goes to stderr. Not stored.

    Raises UnsupportedError where that cannot be done (`gpu_busy`, `no_cuda_driver`, `sensor_unclear`, ...).
    """
    request = {"job": "measure", "uuid": board.uuid, "loads": loads, "force": force}
    answer = ask_sensor(
        request, f"the sensor of {board.uuid}", timeout_s=MEASURING_TIMEOUT_S, talk=True, launcher=launcher
    )
    profile: Profile = answer["profile"]
    return profile


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


def ask_sensor(
    request: dict[str, Any], what: str, *, timeout_s: float, talk: bool = False, launcher: Launcher = LOCAL
) -> dict[str, Any]:
    """The answer of `pybench.worker.sensor` to one request. `talk`: the worker tells its progress on our stderr."""
    with tempfile.TemporaryDirectory(prefix="pybench-sensor-") as folder:
        file = Path(folder) / "request.json"
        file.write_text(json.dumps(request))
        access = FileAccess(writes=(file.parent,))
        ask_worker(launcher, ["--sensor", str(file)], what, timeout_s=timeout_s, access=access, talk=talk)
        answer: dict[str, Any] = json.loads((file.parent / "answer.json").read_bytes())
    return answer
