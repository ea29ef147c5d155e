# SPDX-License-Identifier: Apache-2.0
"""What the notes of a table of cases say of their intervals."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybench.analysis import analyse
from pybench.case import Case
from pybench.dataset import load
from pybench.report.sections.results.cases import workload_tables
from tests.support.campaigns import CampaignBuilder

CASE = Case(workload="accuracy", model="unet3d-small", runtime="onnxruntime", device="cpu")
SCORES = "unit_id,dice_percent\nvalidation-0,80\nvalidation-1,84\n"


@pytest.mark.parametrize(
    ("runs", "predictions", "said", "unsaid"),
    [
        (2, SCORES, "95 % intervals over the 2 volumes of one run.", "No predictions"),  # as many volumes as runs
        (2, None, "No predictions are stored, so the choice of volumes is not included.", "of one run"),
        (0, None, "n is the number of runs, not of volumes.", "No predictions"),
    ],
)
def test_an_accuracys_interval_is_over_what_is_stored(
    tmp_path: Path, runs: int, predictions: str | None, said: str, unsaid: str
) -> None:
    builder = CampaignBuilder(tmp_path / "c", [CASE], repetitions=2)
    for block in range(1, 1 + runs):
        builder.run(CASE, block, {"dice_percent": 82.0}, predictions=predictions)
    dataset = load(builder.path)
    (table,) = workload_tables(analyse(dataset), "runs", dataset)
    assert any(said in note for note in table.notes), table.notes
    assert not any(unsaid in note for note in table.notes), table.notes
