# SPDX-License-Identifier: Apache-2.0
"""Planes of trade-offs in a report: figures with rings, and the table that says what beats each case."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pybench.case import Case
from pybench.dataset import load
from pybench.report import write_report
from tests.report.pages import rows_of, section
from tests.support.campaigns import CampaignBuilder

INFER = Case(workload="infer", model="digits-cnn", runtime="onnxruntime", threads=2)
INT8 = INFER.with_factors(precision="int8")
SLOW = INFER.with_factors(threads=1)


def report(folder: Path, *, spread: float = 0.001) -> Path:
    """INT8 is fast and less accurate; `SLOW` is FP32 that takes longer and more energy. `spread`: between blocks."""
    numbers = {INFER: (2.0, 3.0), INT8: (1.0, 1.0), SLOW: (2.1, 3.1)}
    accuracies = {INFER: 98.0, INT8: 90.0}
    judges = {case.with_factors(workload="accuracy", batch=32): top1 for case, top1 in accuracies.items()}
    builder = CampaignBuilder(folder / "c", [*numbers, *judges], repetitions=3, declared=[])
    for block in (1, 2, 3):
        for number, (case, (latency_ms, energy_j)) in enumerate(numbers.items()):
            noise = 1 + spread * ((block + number) % 3)
            metrics = {"latency_mean_ms": latency_ms * noise, "cpu_energy_per_sample_j": energy_j * noise}
            builder.run(case, block, metrics | {"model_bytes": 1e6})
        for case, top1 in judges.items():
            builder.run(case, block, {"top1_percent": top1})
    return write_report(load(builder.path))


def test_the_table_says_what_beats_each_case(tmp_path: Path) -> None:
    rows = {row["case"]: row for row in rows_of(report(tmp_path), "fronts")}
    assert [rows[case.id]["plane"] for case in (INFER, INT8, SLOW)] == ["front", "front", "beaten"]
    assert rows[SLOW.id]["plane_by"] == INFER.id
    assert rows[SLOW.id]["plane_shown"] == "true"
    assert rows[INFER.id]["plane_energy_latency"] == "beaten"
    assert rows[INFER.id]["plane_energy_latency_by"] == INT8.id


def test_the_page_names_the_winner_by_what_differs(tmp_path: Path) -> None:
    found = section(report(tmp_path), "found")
    assert "beaten by threads 2<" in found
    assert "beaten by int8<" in found


def test_overlapping_intervals_are_told(tmp_path: Path) -> None:
    page = report(tmp_path, spread=0.2)
    assert {row["case"]: row["plane_shown"] for row in rows_of(page, "fronts")}[SLOW.id] == "false"
    assert "beaten by threads 2, not shown" in section(page, "found")


def test_a_figure_has_a_ring_for_each_case_of_the_front(tmp_path: Path) -> None:
    figures = report(tmp_path).parent / "figures"
    found = {path.stem: path.read_text() for path in figures.glob("plane*.svg")}
    assert sorted(found) == ["plane-1", "plane-accuracy-energy-1", "plane-energy-latency-1"]
    rings = {name: svg.count("fill-opacity: 0; stroke: #1a1a1a") for name, svg in found.items()}
    marks = {name: len(set(re.findall(r'data-cases="([^" ]+)', svg))) for name, svg in found.items()}
    assert set(marks.values()) == {3}
    assert rings["plane-1"] == 2 * rings["plane-energy-latency-1"] > 0


@pytest.mark.parametrize(("characters", "is_named"), [(20, True), (150, False)])
def test_points_have_names_that_leave_room_for_them(tmp_path: Path, characters: int, is_named: bool) -> None:
    cases = [INFER.with_factors(checkpoint=f"{number}{'n' * characters}.pt") for number in (1, 2)]
    builder = CampaignBuilder(tmp_path / "c", cases, repetitions=1, declared=[])
    for number, case in enumerate(cases, start=1):
        builder.run(case, 1, {"latency_mean_ms": 1.0 * number, "cpu_energy_per_sample_j": 3.0 / number})
    page = write_report(load(builder.path))
    svg = (page.parent / "figures" / "plane-energy-latency-1.svg").read_text()
    assert ("nnn.pt<" in svg) is is_named
    assert ("tables/fronts.csv names all 2 points." in page.read_text()) is not is_named


def test_a_campaign_without_a_trade_off_has_neither(tmp_path: Path) -> None:
    builder = CampaignBuilder(tmp_path / "c", [INFER], repetitions=2, declared=[])
    for block in (1, 2):
        builder.run(INFER, block, {"latency_mean_ms": 1.0, "cpu_energy_per_sample_j": 1.0})
    page = write_report(load(builder.path))
    assert not (page.parent / "tables" / "fronts.csv").exists()
    assert not [*(page.parent / "figures").glob("plane*")]
