# SPDX-License-Identifier: Apache-2.0
"""The sections "Published values" and "Effects over cells" of a page and of `pybench analyse`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from pybench.case import Case
from pybench.case.references import Reference
from pybench.catalogue.metrics import METRICS
from pybench.cli import main
from pybench.dataset import load
from pybench.report import write_report
from tests.report.pages import rows_of, section
from tests.support.campaigns import CampaignBuilder

FP32 = Case(workload="infer", model="digits-cnn", runtime="onnxruntime")
CASES = [FP32.with_factors(precision=precision, batch=batch) for precision in ("fp32", "int8") for batch in (1, 8)]
LATENCY = METRICS["latency_mean_ms"]
SPEEDUP = {"name": "speedup", "row": LATENCY, "kind": "ratio", "inverse": True, "source": "A paper <i>"}
REFERENCES = (
    Reference(value=5.26, device="RTX 5090", where={"batch": (8,)}, **SPEEDUP),
    Reference(value=0.5, where={"batch": (1,)}, **SPEEDUP),
    Reference(value=3.0, over_cells=True, **SPEEDUP),
    Reference(
        name="latency_mean_ms",
        row=LATENCY,
        kind="absolute",
        value=20.0,
        source="A paper <i>",
        device="RTX 5090",
        where={"precision": ("int8",), "batch": (8,)},
    ),
)


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    declared = {"baseline": {"precision": "fp32"}, "reference": REFERENCES}
    folder = tmp_path_factory.mktemp("references") / "c"
    builder = CampaignBuilder(folder, CASES, repetitions=5, declared=declared)
    for block in range(1, 6):
        for case in CASES:
            faster = (3 if case.batch == 8 else 2) + 0.01 * block if case.precision == "int8" else 1
            builder.run(case, block, {"latency_mean_ms": case.batch * (10.0 + block) / faster})
    return builder.path


def test_each_value_stands_next_to_this_campaign(campaign: Path) -> None:
    page = write_report(load(campaign))
    rows = rows_of(page, "published")
    assert [(row["name"], float(row["published"]), row["relation"]) for row in rows] == [
        ("speedup", 5.26, "same side of 1"),
        ("speedup", 0.5, "neither"),
        ("speedup", 3.0, "same side of 1"),
        ("latency_mean_ms", 20.0, "not comparable"),
    ]
    assert [round(float(row["ours"]), 1) for row in rows[:3]] == [3.0, 2.0, 2.5]
    text = page.read_text()
    assert "published on RTX 5090, measured here on " in text
    assert "A paper &lt;i&gt;" in text
    shown = section(page, "published")
    assert "4 comparisons: 2 on the same side, 1 neither and 1 not comparable." in shown
    assert not re.search(r"accepted|rejected|passed|failed", shown.partition("</p>")[2])


def test_the_mean_over_cells_names_its_cells(campaign: Path) -> None:
    page = write_report(load(campaign))
    (row,) = rows_of(page, "cells")
    assert (row["cells"], row["metric"], row["blocks"]) == ("2", "latency_mean_ms", "5")
    assert float(row["mean_ratio"]) == pytest.approx(1 / 6**0.5, rel=0.02)
    assert float(row["highest"]) == pytest.approx(0.5, rel=0.02)
    assert "infer: int8 instead of fp32</b>: Mean latency" in page.read_text()
    assert "over 2 cells (batch 1, 8)" in page.read_text()


def test_analyse_prints_both_and_gives_them_as_json(campaign: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyse", str(campaign)]) == 0
    printed = capsys.readouterr().out
    assert "\nPublished values\n" in printed
    assert "\nEffects over cells\n" in printed
    assert main(["analyse", str(campaign), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert [found["relation"] for found in content["references"]].count("same side of 1") == 2
    assert content["effects_over_cells"][0]["metric"] == "latency_mean_ms"


def test_a_campaign_without_published_values_has_no_such_section(tmp_path: Path) -> None:
    builder = CampaignBuilder(tmp_path / "c", [FP32], repetitions=1)
    builder.run(FP32, 1, {"latency_mean_ms": 1.0})
    text = write_report(load(builder.path)).read_text()
    assert 'id="published"' not in text
    assert 'id="cells"' not in text
