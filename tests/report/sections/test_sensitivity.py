# SPDX-License-Identifier: Apache-2.0
"""The section "Where the error comes from", of a campaign that runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybench.cli import main
from pybench.dataset import load
from pybench.dataset.sensitivity import read_sensitivities
from pybench.errors import CorruptError
from pybench.report import write_report
from tests.report.pages import rows_of
from tests.workloads.test_sensitivity import fragile

PLAN = """
schema_version: 1
name: fragile
repetitions: 2
defaults: {device: cpu, threads: 1, calibration_images: 8}
matrix:
  - {workload: sensitivity, model: fragile.onnx, precision: int8, quantiser: pybench, batch: 8,
     granularity: [tensor, channel], calibration: [minmax, percentile]}
"""


pytestmark = pytest.mark.process  # the campaign runs


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fragile")
    fragile(folder / "fragile.onnx", "b1")
    (folder / "plan.yaml").write_text(PLAN)
    assert main(["run", str(folder / "plan.yaml"), "--out", str(folder / "c")]) == 0
    return folder / "c"


@pytest.mark.slow
def test_the_fragile_node_leads_the_table_the_figure_and_the_sentences(campaign: Path) -> None:
    dataset = load(campaign)
    page = write_report(dataset)
    text = page.read_text()
    assert "<h2>Where the error comes from</h2>" in text
    assert "of b1." in text
    ranked = rows_of(page, "sensitivity")
    for case in dataset.plan.cases:
        of_case = [row for row in ranked if row["case_id"] == case.id]
        errors = [float(row["only_relative_error"]) for row in of_case]
        assert errors == sorted(errors, reverse=True)
        assert len(of_case) == 8
        if case.granularity == "tensor":
            assert of_case[0]["node"] == "b1"
    assert len(dataset.runs) == len(dataset.plan.cases) == 4  # once each, whatever the plan's repetitions
    assert {f"sensitivity-{number}.svg" for number in range(1, 5)} == {
        file.name for file in (page.parent / "figures").glob("sensitivity-*.svg")
    }


def test_each_calibration_has_its_rounding_and_clipping(campaign: Path) -> None:
    dataset = load(campaign)
    page = write_report(dataset)
    clipping = {
        dataset.cases[row["case_id"]].calibration: float(row["activations_clipping_ratio"])
        for row in rows_of(page, "calibration-errors")
    }
    assert clipping["percentile"] >= clipping["minmax"] > 0  # on other samples than those that chose the range
    kinds = {row["kind"] for row in rows_of(page, "tensor-errors")}
    assert kinds == {"weight", "activation"}


def test_a_table_that_cannot_be_read_is_named(campaign: Path) -> None:
    dataset = load(campaign)
    (file, *_) = sorted(campaign.glob("runs/*/*/*/sensitivity.csv"))
    before = file.read_bytes()
    try:
        file.write_text("node,operator\n1,2\n")
        with pytest.raises(CorruptError, match=r"sensitivity\.csv cannot be read"):
            read_sensitivities(dataset)
    finally:
        file.write_bytes(before)
