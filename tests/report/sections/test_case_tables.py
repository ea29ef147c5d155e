# SPDX-License-Identifier: Apache-2.0
"""What the notes of a table of cases say of their intervals."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybench.analysis import analyse
from pybench.case import Case
from pybench.catalogue.metrics import METRICS
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


def test_means_that_are_not_geometric_are_named(tmp_path: Path) -> None:
    case = Case(workload="infer", model="mlp", runtime="onnxruntime", device="cpu")
    builder = CampaignBuilder(tmp_path / "c", [case], repetitions=2)
    for block in (1, 2):
        metrics = {"latency_mean_ms": 1.0, "cpu_utilisation_ratio": 0.5, "gpu_net_energy_per_sample_j": block - 1.5}
        builder.run(case, block, metrics)
    dataset = load(builder.path)
    tables = workload_tables(analyse(dataset), "runs", dataset)
    notes = {note for table in tables for note in table.notes if "is arithmetic" in note or "are arithmetic" in note}
    label = METRICS["gpu_net_energy_per_sample_j"].label
    assert f"The mean of {label} is arithmetic where a value is not above 0." in notes
    assert "These means are arithmetic: CPU utilisation." in notes
