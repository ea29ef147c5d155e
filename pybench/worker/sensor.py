# SPDX-License-Identifier: Apache-2.0
"""What `pybench sensor` asks of a worker: one JSON request in, one JSON answer beside it.

`integrate`: the energy of windows of a recorded trace, {trace, windows, method, profile} -> {sensor, windows}.
`measure`: the profile of a live board, {uuid, loads, force} -> {profile}; about a minute, its progress on stderr.
Answers are files because 1e5 windows do not fit into the report's pipe.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pybench import measure
from pybench.campaign import layout, storage
from pybench.errors import InputError
from pybench.measure.energy.gpu import describe
from pybench.measure.energy.trace import Times, read_columns, to_ns

ANSWER = "answer.json"
MOST_LOADS = 400  # that a sensor is judged by: more cost time and add nothing
INTERRUPTED_STATUS = 130


def do(request_file: Path) -> dict[str, Any]:
    """Does the request and writes its answer into the same folder. Raises what the job raises."""
    request = json.loads(request_file.read_bytes())
    storage.write_json(request_file.with_name(ANSWER), _JOBS[request["job"]](request))
    return {"outcome": "ok"}


def _integrate(request: dict[str, Any]) -> dict[str, Any]:
    trace = measure.read_trace(Path(request["trace"]))
    file = Path(request["windows"])
    columns = read_columns(file, ("start_us", "end_us"), in_order=False)
    if columns is None:
        raise InputError(f"{file}: no such file", hint="a CSV file with the columns start_us and end_us")
    begin_ns, end_ns = to_ns(columns["start_us"]), to_ns(columns["end_us"])
    for row in np.flatnonzero(end_ns <= begin_ns):
        raise InputError(f"{file}: the window in row {row + 1} ends before it begins", hint="start_us < end_us")
    given = request["profile"]
    profile = _judge(trace, begin_ns, end_ns) if given is None else _read_profile(given)
    energies = measure.integrate(trace, begin_ns, end_ns, profile, request["method"])
    windows = [
        {"start_us": begin_ns[index] / 1000, "end_us": end_ns[index] / 1000, **describe(energies, index)}
        for index in range(len(begin_ns))
    ]
    return {"schema_version": layout.SCHEMA_VERSION, "sensor": profile.as_json(), "windows": windows}


def _judge(trace: measure.Trace, begin_ns: Times, end_ns: Times) -> measure.SensorProfile:
    """What the trace shows of its sensor, its windows taken as loads; the assumed profile where they are none."""
    from pybench.measure.sensor.characterise import characterise

    order = np.argsort(begin_ns, kind="stable")[:MOST_LOADS]
    try:
        return characterise(trace, np.stack((begin_ns[order], end_ns[order]), axis=1))
    except InputError:  # windows that overlap or touch, or in which power does not step: nothing to judge by
        return measure.ASSUMED


def _read_profile(path: str) -> measure.SensorProfile:
    try:
        stored = json.loads(Path(path).read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {error}", hint="give a file that `pybench sensor` wrote") from error
    if not isinstance(stored, dict):
        raise InputError(f"{path}: not a sensor profile", hint="give a file that `pybench sensor` wrote")
    return measure.profile_from_json(stored, path)


def _measure(request: dict[str, Any]) -> dict[str, Any]:
    from pybench.measure.sensor.load import GpuLoad
    from pybench.measure.sensor.procedure import measure_sensor

    try:
        profile = measure_sensor(request["uuid"], GpuLoad, loads=request["loads"], force=request["force"], tell=_tell)
    except KeyboardInterrupt:  # whoever asked got it too, and says so: no traceback in the middle of that
        raise SystemExit(INTERRUPTED_STATUS) from None
    return {"profile": profile.as_json()}


def _tell(text: str) -> None:
    print(f"sensor: {text}", file=sys.stderr, flush=True)


_JOBS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {"integrate": _integrate, "measure": _measure}
