# SPDX-License-Identifier: Apache-2.0
"""trtexec's loop, against the simulated driver, and its percentile rule, against numbers worked by hand."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from bench.tensorrt.latency_rule import compile_loop, of_plain_loop, trtexec_percentile
from bench.timer.replay_cost import simulated_graphs
from tests.measure.simulated_cuda import SimulatedDriver


@pytest.mark.parametrize(
    ("count", "percentile", "index"), [(1000, 99.0, 990), (1000, 95.0, 949), (10, 99.0, 9), (1, 99.0, 0)]
)
def test_a_percentile_is_an_observation_by_trtexecs_rule(count: int, percentile: float, index: int) -> None:
    assert trtexec_percentile(np.arange(count, dtype=np.float32), percentile) == index


def test_the_loop_times_the_graph_as_long_as_it_is(
    simulated: SimulatedDriver, simulated_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYBENCH_FAKE_CUDA_GRAPH_US", "300")
    (graph,) = simulated_graphs(str(simulated_library))
    loop: ctypes.CDLL = compile_loop(tmp_path)
    median_ms, p95_ms, p99_ms = of_plain_loop(loop, graph.handle, graph.stream, duration_ms=50.0)
    assert median_ms == pytest.approx(0.3, rel=0.05)
    assert median_ms <= p95_ms <= p99_ms
