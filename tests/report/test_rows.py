# SPDX-License-Identifier: Apache-2.0
"""Figures of more cases than can be named show all of them on a page, by the numbers of their rows in a table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pybench.case import Case
from pybench.dataset import load
from pybench.report import write_report
from pybench.report.rows import NAMED_ROWS
from tests.support.campaigns import CampaignBuilder

INFER = Case(workload="infer", model="digits-cnn", runtime="onnxruntime")
DECLARED = {"baseline": {"precision": "fp32"}, "accept": {"speedup_min": 1.15}}


def _figures(folder: Path, batches: int) -> dict[str, str]:
    """The SVGs of a campaign with so many cases in INT8 that are compared with as many in FP32; one did not run."""
    every = [INFER.with_factors(batch=batch) for batch in range(1, batches + 1)]
    cases = [case.with_factors(precision=name) for case in every for name in ("fp32", "int8")]
    builder = CampaignBuilder(folder, cases, repetitions=2, declared=DECLARED)
    for block in (1, 2):
        for case in cases[2:]:
            builder.run(case, block, {"latency_mean_ms": (2.0 if case.precision == "fp32" else 1.5) + 0.1 * block})
    page = write_report(load(builder.path))
    figures = {file.stem: file.read_text() for file in (page.parent / "figures").iterdir()}
    return {**figures, "page": page.read_text()}


def _height_inch(svg: str) -> float:
    found = re.search(r'height="([\d.]+)pt"', svg)
    assert found is not None
    return float(found[1]) / 72


def test_few_cases_are_named(tmp_path: Path) -> None:
    shown = _figures(tmp_path, 3)
    assert "int8, batch 2" in shown["infer-latency_mean"]
    assert "batch 2" in shown["forest-1"]
    assert "Rows are" not in shown["page"]


@pytest.mark.parametrize("batches", [NAMED_ROWS + 2, pytest.param(150, marks=pytest.mark.slow)])
def test_many_cases_are_numbered_on_a_page_as_in_the_table(tmp_path: Path, batches: int) -> None:
    shown = _figures(tmp_path, batches)
    for name in ("infer-latency_mean", "forest-1"):
        assert "batch" not in shown[name]
        assert ">Row<" in shown[name].replace("</text>", "<")
        assert _height_inch(shown[name]) == pytest.approx(9, abs=0.1)
    assert "Rows are those of tables/cases-infer.csv." in shown["page"]
    assert "Rows are the candidates in the order of tables/verdicts-1.csv." in shown["page"]
