# SPDX-License-Identifier: Apache-2.0
"""The program that counts false alarms of `compare`, on made-up campaigns whose truth is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.comparing import false_alarms
from pybench.case import Case
from tests.support.campaigns import CampaignBuilder

INFER = Case(workload="infer", model="digits-cnn", runtime="onnxruntime")


def test_a_planted_slow_down_is_found_and_no_change_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(5)
    folders = []
    for name in "abcd":
        builder = CampaignBuilder(tmp_path / name, [INFER], repetitions=5)
        for block in range(1, 6):
            latency = float(np.exp(rng.normal(0, 0.01)))
            compiled = 1.0 + "abcd".index(name) + float(rng.normal(0, 0.01))  # later campaigns compile longer
            builder.run(INFER, block, {"latency_p50_ms": latency, "compile_s": compiled})
        folders.append(str(builder.path))
    monkeypatch.setattr("sys.argv", ["false_alarms", *folders, "--pairs", "2"])
    false_alarms.main()
    real, *_ = capsys.readouterr().out.split("simulated")
    tables = real.split("| rule |")[1:]
    assert len(tables) == 4
    for place, table in enumerate(tables):
        rows = {cells[0]: cells[1:] for line in table.splitlines() if (cells := line.strip("| ").split(" | "))}
        assert (rows["gated metrics, Holm"][0], rows["gated metrics, Holm"][-1]) == ("0.0", "100.0")
        is_in_turns = place == 3  # then each side has short and long times
        assert rows["every metric, uncorrected"][0] == ("0.0" if is_in_turns else "100.0")
