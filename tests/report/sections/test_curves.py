# SPDX-License-Identifier: Apache-2.0
"""The section "Curves": its figures, the places where lines cross, and what a plan asks for."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from pybench.campaign.layout import PLAN_RESOLVED
from pybench.case import Case
from pybench.cli import main
from pybench.dataset import load
from pybench.report import write_report
from tests.report.pages import rows_of
from tests.support.campaigns import CampaignBuilder

CASES = [
    Case(workload="infer", model="digits-cnn", runtime=runtime, batch=batch)
    for runtime in ("torch", "onnxruntime")
    for batch in (1, 2, 8)
]


def campaign(folder: Path, cases: list[Case] = CASES, curves: Any = None) -> Path:
    """torch costs 2 ms whatever the batch, onnxruntime 0.5 ms a sample."""
    declared = {"baseline": {"runtime": "torch"}}
    builder = CampaignBuilder(folder / "c", cases, repetitions=6, declared=declared)
    for block in range(1, 7):
        for case in cases:
            noise = 1 + 0.01 * math.sin(block * 12.9898 + case.batch * 78.233 * len(case.runtime or ""))
            latency_ms = (2.0 if case.runtime == "torch" else 0.5 * case.batch) * noise
            builder.run(case, block, {"latency_mean_ms": latency_ms, "throughput_samples_per_s": 1000 / latency_ms})
    if curves is not None:
        path = builder.path / PLAN_RESOLVED
        path.write_text(json.dumps({**json.loads(path.read_text()), "curves": curves}))
    return builder.path


def test_a_curve_is_drawn_and_says_where_lines_cross(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = campaign(tmp_path)
    page = write_report(load(path))
    svg = (page.parent / "figures" / "curve-1.svg").read_text()
    assert "Mean latency (ms)" in svg
    assert "onnxruntime" in svg
    (crossing,) = rows_of(page, "crossings")
    assert (crossing["first"], crossing["second"], crossing["factor"]) == ("torch", "onnxruntime", "batch")
    assert float(crossing["at"]) == pytest.approx(4.0, rel=0.03)
    assert float(crossing["at_lower"]) < float(crossing["at"]) < float(crossing["at_upper"])
    points = rows_of(page, "curves")
    assert [float(row["at"]) for row in points] == [1, 2, 8, 1, 2, 8]
    assert re.search(r"torch and onnxruntime cross at batch [34]\.\d+ \[", page.read_text())
    assert main(["analyse", str(path)]) == 0
    assert "\nWhere lines cross\n" in capsys.readouterr().out


def test_a_plan_says_what_is_drawn(tmp_path: Path) -> None:
    wanted = [{"over": "batch", "metric": "throughput_samples_per_s"}, {"over": "batch", "metric": "speedup"}]
    page = write_report(load(campaign(tmp_path, curves=wanted)))
    figures = page.parent / "figures"
    assert "Samples/s" in (figures / "curve-1.svg").read_text()
    assert "Speed-up" in (figures / "curve-2.svg").read_text()
    assert not (figures / "curve-3.svg").exists()


def test_without_three_values_there_is_no_such_section(tmp_path: Path) -> None:
    page = write_report(load(campaign(tmp_path, cases=[case for case in CASES if case.batch != 2])))
    assert 'id="curves"' not in page.read_text()
