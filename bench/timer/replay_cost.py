# SPDX-License-Identifier: Apache-2.0
"""What it costs to replay a CUDA graph: pybench's timer against plain loops in C and in Python, on one GPU.

    python -P -m bench.timer.replay_cost [--rounds 15] [--json]

Each loop replays the same captured graphs: `empty` (one kernel on one number: the loop decides), `short` (twenty such)
and `long` (a matrix product: the GPU decides). Rounds are interleaved and in random order, so that clocks and other
work hit all loops alike. Printed: ns a replay, median over rounds with the quartiles, and the ratio to the plain C
loop. Needs g++ and, for the Python loop and the graphs, torch with a GPU. With PYBENCH_CUDA_LIBRARY naming the
simulated driver it runs anywhere, and then measures the simulation.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import random
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pybench.measure import GraphReplayer, monotonic_ns

SOURCE = Path(__file__).with_name("plain_loop.cpp")
BASELINE = "C loop: launches only"
REPLAYS_S = 0.1  # of GPU or host time, whichever is longer, that one round of one loop takes
MOST_REPLAYS = 5000


@dataclass(frozen=True, slots=True)
class Graph:
    """One captured graph. `replay`: torch's own; None where there is no torch. `keep`: what it needs to live."""

    name: str
    handle: int
    stream: int
    replay: Callable[[int], None] | None
    keep: object


@dataclass(frozen=True, slots=True)
class Row:
    """One loop on one graph, ns a replay."""

    graph: str
    loop: str
    median_ns: float
    lower_ns: float
    upper_ns: float
    ratio: float


Loop = Callable[[Graph, int], float]


def main(arguments: Sequence[str] | None = None) -> list[Row]:
    options = _parser().parse_args(arguments)
    library = os.environ.get("PYBENCH_CUDA_LIBRARY")
    graphs = capture_graphs() if library is None else simulated_graphs(library)
    with tempfile.TemporaryDirectory(prefix="pybench-plain-loop-") as folder:
        loops = make_loops(Path(folder), library or "libcuda.so.1")
        rows = [row for graph in graphs for row in measure_graph(graph, loops, options.rounds)]
    print(json.dumps([row_json(row) for row in rows]) if options.json else table(rows))
    return rows


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", action="store_true", help="one object a row instead of the table")
    return parser


# --- graphs ----------------------------------------------------------------------------------------------------------


def capture_graphs() -> list[Graph]:
    """The three graphs on the first GPU."""
    import torch

    if not torch.cuda.is_available():
        sys.exit("torch sees no GPU; set PYBENCH_CUDA_LIBRARY to the simulated driver to try the program without one")
    one = torch.zeros(1, device="cuda")
    square = torch.randn(4096, 4096, device="cuda", dtype=torch.float16)
    works = {
        "empty": lambda: one.add_(1),
        "short": lambda: [one.add_(1) for _ in range(20)],
        "long": lambda: square @ square,
    }
    return [_captured(name, work, (one, square)) for name, work in works.items()]


def _captured(name: str, work: Callable[[], object], tensors: object) -> Graph:
    import torch

    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        for _ in range(3):
            work()
    stream.synchronize()
    with torch.cuda.graph(graph, stream=stream):
        output = work()
    stream.synchronize()

    def replay(count: int) -> None:
        with torch.cuda.stream(stream):
            for _ in range(count):
                graph.replay()
            stream.synchronize()

    return Graph(name, graph.raw_cuda_graph_exec(), stream.cuda_stream, replay, (graph, stream, output, tensors))


def simulated_graphs(library: str) -> list[Graph]:
    """The one graph of native/tests/fake_cuda.cpp."""
    driver, stream = ctypes.CDLL(library), ctypes.c_void_p()
    if driver.cuInit(0) != 0 or driver.cuStreamCreate(ctypes.byref(stream), 1) != 0 or stream.value is None:
        sys.exit(f"{library} cannot be used as a simulated driver")
    return [Graph("simulated", 0x6E41, stream.value, None, driver)]


# --- loops -----------------------------------------------------------------------------------------------------------


def make_loops(folder: Path, library: str) -> dict[str, Loop]:
    """Name -> a loop that replays a graph so many times and returns the ns that it took; the baseline first."""
    plain = ctypes.CDLL(str(_compile(folder)))
    plain.plain_loop.restype = ctypes.c_int64
    plain.plain_loop.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int]

    def in_c(with_events: bool) -> Loop:
        def loop(graph: Graph, count: int) -> float:
            taken_ns = plain.plain_loop(library.encode(), graph.handle, graph.stream, count, int(with_events))
            if taken_ns < 0:
                sys.exit(f"the plain loop failed with the driver's code {-taken_ns}")
            return float(taken_ns)

        return loop

    def timed(depth: int) -> Loop:
        def loop(graph: Graph, count: int) -> float:
            times = GraphReplayer(graph.handle, graph.stream, keep=graph).replay(count, depth=depth)
            return float(times.end_ns[-1] - times.begin_ns[0])

        return loop

    def in_python(graph: Graph, count: int) -> float:
        begin_ns = monotonic_ns()
        assert graph.replay is not None  # it is only offered where there is one
        graph.replay(count)
        return float(monotonic_ns() - begin_ns)

    return {
        BASELINE: in_c(with_events=False),
        "C loop: events, depth 2": in_c(with_events=True),
        "pybench: depth 2": timed(2),
        "pybench: depth 1": timed(1),
        "Python loop: graph.replay()": in_python,
    }


def _compile(folder: Path) -> Path:
    built = folder / "libplain_loop.so"
    compiler = shlex.split(os.environ.get("CXX", "g++"))
    subprocess.run([*compiler, "-std=c++20", "-O2", "-shared", "-fPIC", str(SOURCE), "-o", str(built)], check=True)
    return built


# --- measuring -------------------------------------------------------------------------------------------------------


def measure_graph(graph: Graph, loops: dict[str, Loop], rounds: int) -> list[Row]:
    """Interleaved rounds of every loop that can replay this graph."""
    offered = {name: loop for name, loop in loops.items() if graph.replay is not None or "Python" not in name}
    first_ns = max(loop(graph, 50) / 50 for loop in offered.values())  # also warms up
    count = int(min(max(REPLAYS_S * 1e9 / first_ns, 20), MOST_REPLAYS))
    order, shuffle = list(offered), random.Random(0)
    taken: dict[str, list[float]] = {name: [] for name in offered}
    for _ in range(rounds):
        shuffle.shuffle(order)
        for name in order:
            taken[name].append(offered[name](graph, count) / count)
    baseline = float(np.median(taken[BASELINE]))
    return [_row(graph.name, name, np.array(values), baseline) for name, values in taken.items()]


def _row(graph: str, loop: str, values: np.ndarray, baseline: float) -> Row:
    lower, median, upper = (float(each) for each in np.percentile(values, [25, 50, 75]))
    return Row(graph, loop, median, lower, upper, median / baseline)


def row_json(row: Row) -> dict[str, object]:
    return {name: getattr(row, name) for name in Row.__slots__}


def table(rows: Sequence[Row]) -> str:
    """As Markdown."""
    lines = ["| graph | loop | ns a replay | quartiles | of the plain C loop |", "| --- | --- | --- | --- | --- |"]
    for row in rows:
        spread = f"{row.lower_ns:.0f} to {row.upper_ns:.0f}"
        lines.append(f"| {row.graph} | {row.loop} | {row.median_ns:.0f} | {spread} | {row.ratio:.3f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
