# SPDX-License-Identifier: Apache-2.0
"""A board that can be loaded, of two stand-ins: NVML replays a made-up trace, and the load waits for the trace's own.

NVML's stand-in (`replay.py`) plays the folder of PYBENCH_REPLAY_TRACE from the moment it is opened. `GpuLoad` here has
the interface of `measure.sensor.load.GpuLoad`, loads nothing, and says when the trace's next load began and ended. So
the whole procedure runs, in real time, on a machine without a GPU.

Run as a script by Python's site module (see `install`) it takes the real load's place in a worker process.
"""

from __future__ import annotations

import csv
import ctypes
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np

from tests.measure.synthetic_sensor import ORIGIN_NS, Sensor, record, to_ns

SHORT_LOADS = 6
SPARE_S = 0.45  # by so much the procedure may be late to a load
BUFFERED = 256  # samples: more than the driver keeps
REPOSITORY = Path(__file__).parents[2]


def write_board(folder: Path, sensor: Sensor, *, long_s: float = 8.0, processes: int = 1, seed: int = 1) -> None:
    """A trace for `measure_sensor(loads=SHORT_LOADS)`: its loads, and rests that are longer by `SPARE_S`."""
    from pybench.measure.sensor.procedure import plan_pulses

    rng = np.random.default_rng(seed)
    lengths_s = [1.0, *rng.uniform(0.3, 0.6, SHORT_LOADS), long_s]
    rests_s = [pulse.rest_s + SPARE_S for pulse in plan_pulses(1, SHORT_LOADS)]
    ends_s = np.cumsum(np.array(rests_s) + np.array(lengths_s))
    loads_s = np.column_stack((ends_s - lengths_s, ends_s))
    trace = record(rng, sensor, loads_s)
    folder.mkdir()

    def write(name: str, **columns: np.ndarray) -> None:
        with (folder / name).open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(columns)
            rows.writerows(zip(*columns.values(), strict=True))

    def microseconds(times_ns: np.ndarray) -> np.ndarray:
        return np.round((times_ns - ORIGIN_NS) / 1000).astype(np.int64)

    samples, polled, counter = trace.samples, trace.polled, trace.counter
    write("samples.csv", t_us=microseconds(samples.time_ns), power_w=np.round(samples.power_w, 3))
    write("polled.csv", t_us=microseconds(polled.time_ns), power_average_w=polled.average_w,
          power_instant_w=polled.instant_w)  # fmt: skip
    write("counter.csv", t_call_us=microseconds(counter.call_ns), t_return_us=microseconds(counter.return_ns),
          energy_j=counter.energy_j)  # fmt: skip
    write("memory.csv", t_us=np.array([0]), used_bytes=np.array([10**9]), process_count=np.array([processes]))
    write("windows.csv", start_us=microseconds(to_ns(loads_s[:, 0])), end_us=microseconds(to_ns(loads_s[:, 1])))


class GpuLoad:
    """Stands in for the load: `run` returns with the end of the trace's next load."""

    def __init__(self, uuid: str) -> None:
        with (Path(os.environ["PYBENCH_REPLAY_TRACE"]) / "windows.csv").open() as file:
            rows = list(csv.DictReader(file))
        began_ns = _trace_began_ns()
        self._loads_ns = [tuple(began_ns + int(row[name]) * 1000 for name in ("start_us", "end_us")) for row in rows]

    def __enter__(self) -> GpuLoad:
        return self

    def __exit__(self, *error: object) -> None:
        return

    def run(self, seconds: float, *, level: float = 1.0) -> Iterator[int]:
        from pybench import measure

        begin_ns, end_ns = self._loads_ns.pop(0)
        if begin_ns < measure.monotonic_ns():
            raise RuntimeError("the trace's next load has begun: its rests are shorter than the procedure's")
        measure.sleep_until_ns(end_ns)
        return iter((begin_ns, end_ns))


class _Sample(ctypes.Structure):
    _fields_ = (("stamp_us", ctypes.c_ulonglong), ("value", ctypes.c_ulonglong))


def _trace_began_ns() -> int:
    """Time 0 of the trace that this process plays, on the raw clock: from the stamp of its first sample."""
    from pybench import measure

    library = ctypes.CDLL(os.environ["PYBENCH_NVML_LIBRARY"])
    with (Path(os.environ["PYBENCH_REPLAY_TRACE"]) / "samples.csv").open() as file:
        first_us = int(list(file)[1].partition(",")[0])
    samples, kind, count = (_Sample * BUFFERED)(), ctypes.c_int(), ctypes.c_uint(BUFFERED)
    device = ctypes.c_void_p()
    assert library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0
    while library.nvmlDeviceGetSamples(
        device, 0, ctypes.c_ulonglong(0), ctypes.byref(kind), ctypes.byref(count), samples
    ):
        time.sleep(0.005)
    anchor = measure.anchor_clock()
    return anchor.monotonic_ns + (samples[0].stamp_us - first_us) * 1000 - anchor.realtime_ns


def install(folder: Path, trace: Path, library: Path) -> dict[str, str]:
    """The environment in which a worker finds this board: NVML's stand-in, and this module in the load's place."""
    folder.mkdir()
    # The repository comes last, so that pybench is the one that is installed.
    (folder / "sitecustomize.py").write_text(
        f"import sys\nsys.path.append({str(REPOSITORY)!r})\n"
        "from tests.measure import replayed_board\nreplayed_board.stand_in()\n"
    )
    paths = [str(folder), os.environ.get("PYTHONPATH", "")]
    return {
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "PYBENCH_NVML_LIBRARY": str(library),
        "PYBENCH_REPLAY_TRACE": str(trace),
    }


def stand_in() -> None:
    """Puts this load in the place of the real one, in this process."""
    module = ModuleType("pybench.measure.sensor.load")
    module.GpuLoad = GpuLoad  # type: ignore[attr-defined]
    sys.modules[module.__name__] = module
