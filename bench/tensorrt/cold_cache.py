# SPDX-License-Identifier: Apache-2.0
"""What an engine costs with its weights and activations in the L2 cache, and after they were thrown out of it.

    python3 -P -m bench.tensorrt.cold_cache OUT [--model resnet50] [--batches 1 32] [--only fp16 int8+fp16]
        [--rounds 5] [--window 1.0] [--profile FILE]

Each engine is captured as a CUDA graph and replayed in three loops that alternate in every round. They are the engine
(`warm`), the engine after a memset of four times the L2 (`cold`), and the memset alone. The memset stands where nvbench
and Triton put it, so its dirty lines are written back while the engine runs. Times are of CUDA events around the engine
alone. Joules of a cold execution are those of its loop less those of the memset's. Intervals are Student's t over
rounds.

Printed as each engine is done: ms and mJ of an execution, warm and cold, and cold over warm. Weights are random and
ranges constant, as in quantised.py. Needs a GPU, TensorRT, torch and onnx. FILE: a stored profile of the board's power
sensor.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.stats
from cuda.bindings import driver

from bench.tensorrt.quantised import built, variants
from pybench import measure
from pybench.catalogue.models import MODELS
from pybench.errors import PybenchError
from pybench.measure.energy.profile import ASSUMED, SensorProfile, profile_from_json
from pybench.measurement.inputs import random_arrays
from pybench.models.building import build
from pybench.models.export import export_onnx
from pybench.runtimes import cuda
from pybench.runtimes.tensorrt.session import TensorRtSession

L2_SIZES = 4  # of the memset: more than one, because replacement in the L2 is not strictly by age
DEPTH = 8  # executions enqueued before the host waits for the oldest
WARMUP_S = 0.2
PRECISIONS = ("fp16", "int8+fp16", "fp8+fp16")
WARM, COLD, FLUSH = "warm", "cold", "flush"
LOOPS = (WARM, COLD, FLUSH)


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean over rounds with the half width of its 95 % interval."""

    mean: float
    half_width: float

    def __str__(self) -> str:
        return f"{self.mean:.4g} ± {self.half_width:.2g}"


def figure(values: Sequence[float]) -> Figure:
    """Student's t over `values`; infinitely wide for fewer than two."""
    if len(values) < 2:
        return Figure(float(np.mean(values)), float("inf"))
    error = float(np.std(values, ddof=1)) / len(values) ** 0.5
    return Figure(float(np.mean(values)), float(scipy.stats.t.ppf(0.975, len(values) - 1)) * error)


class Loop:
    """Executions of an engine's graph one after the other, with or without a memset before each."""

    def __init__(self, graph: cuda.CudaGraph, kind: str, flushed: cuda.Buffer) -> None:
        self._graph, self._kind, self._flushed = graph, kind, flushed
        self._events = [tuple(cuda.check(driver.cuEventCreate(0)) for _ in range(2)) for _ in range(DEPTH)]

    def run(self, seconds: float) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Runs for `seconds` at least; float64 [n]: ms of each engine by its events (of the memset's, without one)."""
        found: list[float] = []
        count, until_ns = 0, measure.monotonic_ns() + round(seconds * 1e9)
        while count < 2 * DEPTH or measure.monotonic_ns() < until_ns:
            if count >= DEPTH:
                found.append(self._wait(count - DEPTH))
            self._enqueue(count)
            count += 1
        found += [self._wait(number) for number in range(count - DEPTH, count)]
        return np.array(found)

    def _enqueue(self, number: int) -> None:
        stream = self._graph.stream.raw
        begin, end = self._events[number % DEPTH]
        if self._kind == COLD:
            self._flush()
        cuda.check(driver.cuEventRecord(begin, stream))
        if self._kind == FLUSH:
            self._flush()
        else:
            self._graph.launch()
        cuda.check(driver.cuEventRecord(end, stream))

    def _flush(self) -> None:
        words = self._flushed.size_bytes // 4
        cuda.check(driver.cuMemsetD32Async(self._flushed.address, 1, words, self._graph.stream.raw))

    def _wait(self, number: int) -> float:
        begin, end = self._events[number % DEPTH]
        cuda.check(driver.cuEventSynchronize(end))
        return float(cuda.check(driver.cuEventElapsedTime(begin, end)))


def l2_bytes() -> int:
    """Of the first GPU."""
    attribute = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE
    return int(cuda.check(driver.cuDeviceGetAttribute(attribute, cuda.check(driver.cuDeviceGet(0)))))


def measured(session: TensorRtSession, options: argparse.Namespace) -> dict[str, Any]:
    """Rounds of the three loops: ms by loop, and mJ of an execution, each a list over rounds."""
    inputs = random_arrays(session.inputs, options.model, options.batch, options.tokens, 0)
    session.bind_replay(inputs, transfers=False)
    if session.graph is None:
        raise PybenchError(session.labels["launch"])
    flushed = cuda.Buffer(L2_SIZES * l2_bytes())
    loops = {kind: Loop(session.graph, kind, flushed) for kind in LOOPS}
    times_ms: dict[str, list[float]] = {kind: [] for kind in LOOPS}
    with measure.MeasuringSession(session.device_uuid, profile=options.profile) as measuring:
        for number in range(options.rounds):
            for kind in LOOPS if number % 2 == 0 else reversed(LOOPS):
                loops[kind].run(WARMUP_S)
                with measuring.window(f"{kind}-{number}") as window:
                    each_ms = loops[kind].run(options.window)
                    window.iterations = len(each_ms)
                times_ms[kind].append(float(np.mean(each_ms)))
    return {"ms": times_ms, "mj": {kind: _energies_mj(measuring, kind, options.rounds) for kind in LOOPS}}


def _energies_mj(measuring: measure.MeasuringSession, kind: str, rounds: int) -> list[float]:
    windows = {window.name: window.iterations for window in measuring.windows}
    found = []
    for number in range(rounds):
        name = f"{kind}-{number}"
        joules = measuring.energy(name)["gpu_energy_j"].value
        found.append(float("nan") if joules is None else 1e3 * joules / windows[name])
    return found


def rows_of(found: dict[str, Any]) -> dict[str, Figure]:
    """The figures of one engine, paired within rounds."""
    warm_ms, cold_ms = (np.array(found["ms"][kind]) for kind in (WARM, COLD))
    warm_mj, both_mj, flush_mj = (np.array(found["mj"][kind]) for kind in LOOPS)
    cold_mj = both_mj - flush_mj
    columns = {
        "warm, ms": warm_ms,
        "cold, ms": cold_ms,
        "cold / warm, time": cold_ms / warm_ms,
        "warm, mJ": warm_mj,
        "cold, mJ": cold_mj,
        "cold / warm, energy": cold_mj / warm_mj,
    }
    return {name: figure(values.tolist()) for name, values in columns.items()}


def table(found: dict[str, dict[str, Any]]) -> list[str]:
    """Markdown, a row for each engine."""
    rows = {name: rows_of(each) for name, each in found.items()}
    columns = list(next(iter(rows.values())))
    lines = [f"| engine | {' | '.join(columns)} |", "| --- " * (len(columns) + 1) + "|"]
    return lines + [f"| {name} | {' | '.join(str(row[column]) for column in columns)} |" for name, row in rows.items()]


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    found: dict[str, dict[str, Any]] = {}
    for batch in options.batches:
        work = options.out / f"batch-{batch}"
        work.mkdir(parents=True, exist_ok=True)
        source = work / f"{options.model}.onnx"
        export_onnx(build(options.model), MODELS[options.model], source, {})
        of_batch = argparse.Namespace(**vars(options) | {"out": work, "batch": batch})
        for precision in options.only:
            name = f"{precision}, batch {batch}"
            try:
                found[name] = measured(built(precision, variants()[precision], source, of_batch), of_batch)
            except PybenchError as error:  # an engine that TensorRT refuses must not cost the others
                print(f"{name}: {error}", file=sys.stderr, flush=True)
                continue
            lines = table(found)
            print("\n".join(lines if len(found) == 1 else lines[-1:]), flush=True)
            (options.out / "rounds.json").write_text(json.dumps(found, indent=1))  # what is measured survives a kill


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--model", default="resnet50", choices=list(MODELS))
    parser.add_argument("--batches", type=int, nargs="*", default=[1, 32])
    parser.add_argument("--only", nargs="*", choices=list(variants()), default=list(PRECISIONS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--window", type=float, default=1.0, help="seconds of each loop in a round")
    parser.add_argument("--tokens", type=int, default=128, help="of a sequence, where the model takes ids")
    parser.add_argument("--profile", type=_profile, default=ASSUMED, help="as `pybench sensor` stored it")
    return parser.parse_args(arguments)


def _profile(path: str) -> SensorProfile:
    return profile_from_json(json.loads(Path(path).read_text()), path)


if __name__ == "__main__":
    main()
