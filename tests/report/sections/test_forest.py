# SPDX-License-Identifier: Apache-2.0
"""The figure of a comparison: a panel for each bound."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pybench.dataset import load
from pybench.report import write_report
from tests.support.campaigns import build_typical

BOUNDS = {
    "speedup_min": 1.1,
    "latency_p50_ratio_max": 1.0,
    "latency_p95_ratio_max": 1.0,
    "peak_host_bytes_ratio_max": 1.0,
    "model_bytes_ratio_max": 0.5,
}


@pytest.mark.parametrize("number", [1, 2, 3, 5])
def test_every_bound_has_a_panel_that_is_wide_enough_for_its_title(tmp_path: Path, number: int) -> None:
    declared = {"name": "int8", "baseline": {"precision": "fp32"}, "accept": dict([*BOUNDS.items()][:number])}
    page = write_report(load(build_typical(tmp_path / "c", repetitions=2, declared=declared).path))
    svg = (page.parent / "figures" / "forest-1.svg").read_text(encoding="utf-8")
    assert svg.count(">required ") == number
    panels = re.findall(r'<clipPath id="\w+">\s*<rect x="[\d.]+" y="[\d.]+" width="([\d.]+)"', svg)
    assert len(panels) == number
    assert min(map(float, panels)) > 130  # points, of 518
