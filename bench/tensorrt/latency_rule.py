# SPDX-License-Identifier: Apache-2.0
"""Latency of one engine by pybench, beside a plain C++ loop with trtexec's options and percentile rule.

    python3 -P -m bench.tensorrt.latency_rule ENGINE [--rounds 5]

Both replay the same captured graph, in alternating rounds of 3 s after 200 ms of warm-up, as trtexec does by itself.
Printed: median, p95 and p99 of each by trtexec's rule (no interpolation, float32 index), medians over rounds, and the
ratio of the medians, which is to be within 1 %. Needs a GPU, g++ and TensorRT.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pybench.measure import summarise_latency
from pybench.runtimes.session import TensorSpec

SOURCE = Path(__file__).with_name("trtexec_loop.cpp")
WARMUP_MS, DURATION_MS, ITERATIONS = 200.0, 3000.0, 10  # trtexec's defaults
CAPACITY = 10_000_000


def trtexec_percentile(sorted_ms: np.ndarray, percentile: float) -> float:
    """sampleReporting.cpp: the value at max(n - 1 - int((1 - p/100) * n), 0), computed in float32."""
    exclude = int((np.float32(1) - np.float32(percentile) / np.float32(100)) * np.float32(len(sorted_ms)))
    return float(sorted_ms[max(len(sorted_ms) - 1 - exclude, 0)])


def of_plain_loop(
    loop: ctypes.CDLL, graph: int, stream: int, duration_ms: float = DURATION_MS
) -> tuple[float, float, float]:
    """(median, p95, p99) in ms."""
    times = np.empty(CAPACITY, np.float32)
    pointer = times.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
    driver = os.environ.get("PYBENCH_CUDA_LIBRARY", "libcuda.so.1").encode()
    count = loop.trtexec_loop(driver, graph, stream, ITERATIONS, WARMUP_MS, duration_ms, pointer, CAPACITY)
    if count <= 0:
        sys.exit(f"the plain loop failed with code {-count}")
    ordered = np.sort(times[:count])
    middle = float(ordered[(count - 1) // 2] + ordered[count // 2]) / 2
    return middle, trtexec_percentile(ordered, 95), trtexec_percentile(ordered, 99)


def compile_loop(folder: Path) -> ctypes.CDLL:
    built = folder / "trtexec_loop.so"
    compiler = shlex.split(os.environ.get("CXX", "g++"))
    subprocess.run([*compiler, "-std=c++20", "-O2", "-shared", "-fPIC", SOURCE, "-o", built, "-ldl"], check=True)
    loop = ctypes.CDLL(str(built))
    loop.trtexec_loop.restype = ctypes.c_int64
    loop.trtexec_loop.argtypes = [
        ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_double, ctypes.c_double,
        ctypes.POINTER(ctypes.c_float), ctypes.c_int64,
    ]  # fmt: skip
    return loop


def drawn(generator: np.random.Generator, spec: TensorSpec) -> np.ndarray:
    """Standard normal numbers; ids that every vocabulary has."""
    shape = [size or 1 for size in spec.shape]
    if spec.dtype.kind == "i":
        return generator.integers(0, 2, shape).astype(spec.dtype)
    return generator.standard_normal(shape).astype(spec.dtype)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("engine", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    from pybench.runtimes.tensorrt.session import open_session

    session = open_session(options.engine, launch="graph", device="auto")
    generator = np.random.default_rng(0)
    inputs = {spec.name: drawn(generator, spec) for spec in session.inputs}
    replayer = session.bind_replay(inputs, transfers=False)
    graph = session.graph
    if graph is None:
        sys.exit("the engine could not be captured")
    rows: dict[str, list[tuple[float, float, float]]] = {"pybench": [], "plain C++ loop, trtexec's rule": []}
    with tempfile.TemporaryDirectory(prefix="pybench-trtexec-") as folder:
        loop = compile_loop(Path(folder))
        for _ in range(options.rounds):
            replayer.replay(1, WARMUP_MS * 1e-3)
            found = summarise_latency(replayer.replay(ITERATIONS, DURATION_MS * 1e-3).latency_ns)
            rows["pybench"].append((found.p50_s * 1e3, found.p95_s * 1e3, found.p99_s * 1e3))
            rows["plain C++ loop, trtexec's rule"].append(of_plain_loop(loop, graph.handle, graph.stream.handle))
    medians = {name: np.median(np.array(values), axis=0) for name, values in rows.items()}
    for name, (p50, p95, p99) in medians.items():
        print(f"{name:32} median {p50:.5f} ms   p95 {p95:.5f}   p99 {p99:.5f}")
    ours, theirs = (values[0] for values in medians.values())
    print(f"ratio of medians {ours / theirs:.5f}")


if __name__ == "__main__":
    main()
