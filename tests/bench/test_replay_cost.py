# SPDX-License-Identifier: Apache-2.0
"""The comparison of replay loops runs, here against the simulated driver; its figures need a GPU."""

from __future__ import annotations

import json

import pytest

from bench.timer import replay_cost
from tests.measure.simulated_cuda import SimulatedDriver


def test_every_loop_replays_the_graph_at_the_speed_of_the_gpu_or_slower(
    simulated: SimulatedDriver, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYBENCH_FAKE_CUDA_GRAPH_US", "200")
    rows = {row.loop: row for row in replay_cost.main(["--rounds", "3"])}
    assert list(rows) == [replay_cost.BASELINE, "C loop: events, depth 2", "pybench: depth 2", "pybench: depth 1"]
    assert all(row.lower_ns >= 199_000 for row in rows.values())
    assert rows[replay_cost.BASELINE].ratio == 1
    assert "| simulated | pybench: depth 2 |" in capsys.readouterr().out
    replay_cost.main(["--rounds", "1", "--json"])
    assert len(json.loads(capsys.readouterr().out)) == 4


def test_a_loop_that_the_driver_refuses_ends_with_its_code(
    simulated: SimulatedDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYBENCH_FAKE_CUDA_FAIL", "cuGraphLaunch:700:10")
    with pytest.raises(SystemExit, match="700"):
        replay_cost.main(["--rounds", "1"])
