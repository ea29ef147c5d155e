# SPDX-License-Identifier: Apache-2.0
"""Accuracy, size and latency in one table, and scores that are paired unit by unit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pybench.analysis import Analysis, analyse
from pybench.analysis.findings.planes import find_planes
from pybench.case import Case
from pybench.dataset import load
from pybench.report.sections.findings.accuracies import accuracy_tables
from pybench.report.sections.findings.contrast_tables import judged_tables
from pybench.report.sections.findings.plane import draw_planes
from tests.support.campaigns import CampaignBuilder

DICE = {"fp32": (80.0, 84.0, 82.0, 90.0), "int8": (79.0, 83.5, 82.0, 88.5)}


@pytest.fixture
def found(tmp_path: Path) -> Analysis:
    cases = [
        Case(workload=workload, model="unet3d-small", runtime="onnxruntime", precision=precision, device="cpu")
        for workload in ("infer", "accuracy")
        for precision in DICE
    ]
    builder = CampaignBuilder(tmp_path / "c", cases, repetitions=2, declared={"baseline": {"precision": "fp32"}})
    for case in cases:
        for block in (1, 2):
            scores = DICE[case.precision]
            if case.workload == "accuracy":
                lines = [f"validation-{i},{score}" for i, score in enumerate(scores)]
                text = "\n".join(["unit_id,dice_percent", *lines]) + "\n"
                builder.run(case, block, {"dice_percent": sum(scores) / 4}, predictions=text)
            else:
                builder.run(case, block, {"latency_mean_ms": 10.0 + block, "model_bytes": 1.2e6})
    return analyse(load(builder.path))


def test_a_table_joins_dice_size_and_latency(found: Analysis) -> None:
    (table,) = accuracy_tables(found)
    assert (table.name, table.title) == ("accuracy-dice_percent", "Dice, size and latency")
    assert [column.title for column in table.columns] == ["Case", "Dice (%)", "Model size (MB)", "Mean latency (ms)"]
    assert [row[0].text for row in table.rows] == ["unet3d-small, fp32", "unet3d-small, int8"]
    assert [row[1].number for row in table.rows] == [84.0, 83.25]


def test_scores_are_paired_by_volume(found: Analysis) -> None:
    effect = found.contrasts[0].pairs[-1].effects["dice_percent"]
    assert effect.units is not None
    assert effect.units.estimate.value == pytest.approx((-1 - 0.5 + 0 - 1.5) / 4)
    assert (effect.units.n, effect.units.groups, effect.units.pairs) == (4, None, None)
    (table,) = [table for table in judged_tables(found) if table.name.startswith("scores")]
    assert table.title.startswith("Scores, volume by volume")


def test_each_row_has_the_accuracy_of_its_own_answers(tmp_path: Path) -> None:
    """Quantised in another way it is another network, of the same precision."""
    (table,) = accuracy_tables(judged(tmp_path, {"granularity": "tensor"}, {"granularity": "channel"}, batches=(1,)))
    assert [row[0].text.split(", ")[1] for row in table.rows] == ["tensor", "channel"]
    assert [row[1].number for row in table.rows] == [98.0, 97.0]


def test_accuracies_that_differ_are_shown_as_several(tmp_path: Path) -> None:
    analysis = judged(tmp_path, {"batch": 1}, {"batch": 8}, batches=(1, 8))
    (table,) = accuracy_tables(analysis)
    assert [row[1].text for row in table.rows] == ["2 accuracies: 97.0 to 98.0"] * 2
    assert [row[1].note for row in table.rows] == ["the accuracy cases differ in batch"] * 2
    assert table.rows[0][1].csv == ("", "97.0", "98.0", "2", "several")
    (draw,) = draw_planes(find_planes(analysis.cases))
    assert "A case has a point for each accuracy" in draw().caption


def judged(folder: Path, *factors: dict[str, Any], batches: tuple[int, ...]) -> Analysis:
    """One accuracy case of each, at 98 %, 97 % and so on, and a speed of each at these batches."""
    made = [
        Case(**{"workload": "accuracy", "model": "digits-cnn", "runtime": "onnxruntime", "precision": "int8"} | one)
        for one in factors
    ]
    speeds = {case.with_factors(workload="infer", batch=batch): None for case in made for batch in batches}
    builder = CampaignBuilder(folder / "c", [*speeds, *made], repetitions=2)
    for block in (1, 2):
        for case in speeds:
            builder.run(case, block, {"latency_mean_ms": 10.0 * case.batch + block, "model_bytes": 1.2e6})
        for position, case in enumerate(made):
            builder.run(case, block, {"top1_percent": 98.0 - position})
    return analyse(load(builder.path))
