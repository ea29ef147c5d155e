# SPDX-License-Identifier: Apache-2.0
"""The section "Training to an accuracy", of a campaign that runs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pybench.analysis import analyse
from pybench.analysis.measurements import MetricValues, withhold
from pybench.catalogue.reasons import reason_from_text
from pybench.cli import main
from pybench.dataset import load
from pybench.dataset.learning_curves import read_learning_curves
from pybench.errors import CorruptError
from pybench.report import write_report
from pybench.report.sections.fits import median_epochs
from tests.report.pages import rows_of, section
from tests.support.ready_workers import ReadyWorkers

pytestmark = pytest.mark.slow  # trains a network first

PLAN = """
schema_version: 1
name: fits
repetitions: 2
defaults: {device: cpu, threads: 1}
matrix:
  - {workload: fit, model: digits-cnn, batch: 64, learning_rate: 0.003, target_top1_percent: [20, 99.99], epochs_max: 1}
criteria: {baseline: {target_top1_percent: 20}}
"""


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory, served_workers: ReadyWorkers) -> Path:
    folder = tmp_path_factory.mktemp("fits")
    (folder / "plan.yaml").write_text(PLAN)
    with served_workers.in_place():
        assert main(["run", str(folder / "plan.yaml"), "--out", str(folder / "c")]) == 0
    return folder / "c"


def test_what_was_reached_has_costs_and_what_was_not_has_none(campaign: Path) -> None:
    page = write_report(load(campaign))
    easy, hard = rows_of(page, "fits")
    assert (easy["reached_runs"], hard["reached_runs"]) == ("2", "0")
    assert easy["median_epochs"] == "1"
    assert float(easy["time_to_target_s"]) > 0
    assert hard["median_epochs"] == hard["time_to_target_s"] == ""
    assert float(hard["final_top1_percent"]) > 20
    assert len(rows_of(page, "learning-curve")) == 4
    shown = section(page, "fits")
    assert "0 of 2 runs reached 99.99 % within 1 epoch; a mean is not known." in shown
    assert "not_reached: 2 of 2 runs did not reach the target" in shown
    assert (page.parent / "figures" / "fit-1.svg").exists()


def test_a_mean_needs_every_run(campaign: Path) -> None:
    dataset = load(campaign)
    easy, hard = dataset.plan.cases
    analysis = analyse(dataset)
    found = {case.case.id: case for case in analysis.cases}
    assert found[easy.id].metrics["time_to_target_s"].estimate is not None
    assert found[hard.id].metrics["time_to_target_s"].estimate is None
    (pair,) = analysis.contrasts[0].pairs
    why = pair.effects["time_to_target_s"].why_none
    assert why is not None
    assert "not_reached: 2 of 2" in why


@pytest.mark.parametrize("early", [0, 1])
def test_one_run_that_ended_early_takes_the_mean_of_all(early: int) -> None:
    cell = MetricValues(values={1: 3.0, 2: 4.0}, u_absolute={1: 0.1, 2: 0.1}, missing={})
    if early:
        del cell.values[2]
        cell.missing[2] = reason_from_text("not_reached: at most 90 %")
    withhold(cell)
    assert cell.values == ({} if early else {1: 3.0, 2: 4.0})
    why = reason_from_text("not_reached: 1 of 2 runs did not reach the target")
    assert cell.missing == (dict.fromkeys((1, 2), why) if early else {})


def test_a_median_is_known_from_more_than_half_of_the_runs(campaign: Path) -> None:
    easy, hard = read_learning_curves(load(campaign))
    assert median_epochs(easy) == 1
    assert median_epochs(hard) is None
    easy.reached[1] = False  # type: ignore[index]
    assert median_epochs(easy) is None


def test_a_training_that_diverged_is_told(campaign: Path, tmp_path: Path) -> None:
    """The loss of one run is infinite, and that of the other is NaN, which is stored as an empty field."""
    copy = shutil.copytree(campaign, tmp_path / "c")
    dataset = load(copy)
    case = dataset.plan.cases[1]
    for block, losses in ((1, "3.5,inf"), (2, ",")):
        (file,) = copy.glob(f"runs/{case.id}/*{block}/*/learning_curve.csv")
        file.write_text(
            f"epoch,images,elapsed_s,training_loss_nats,held_out_loss_nats,top1_percent\n1,64,0.5,{losses},10.0\n"
        )
    page = write_report(dataset)
    lost = [row for row in rows_of(page, "learning-curve") if row["case_id"] == case.id]
    assert [(row["training_loss_nats"], row["held_out_loss_nats"]) for row in lost] == [("3.5", ""), ("", "")]
    shown = section(page, "fits")
    assert "0 of 2 runs reached 99.99 %, and 2 diverged; a mean is not known." in shown
    assert "NaN or infinite" in shown


def test_a_curve_that_cannot_be_read_is_named(campaign: Path) -> None:
    dataset = load(campaign)
    (file, *_) = sorted(campaign.glob("runs/*/*/*/learning_curve.csv"))
    before = file.read_bytes()
    try:
        file.write_text("epoch,images\n1,2\n")
        with pytest.raises(CorruptError, match=r"learning_curve\.csv cannot be read"):
            read_learning_curves(dataset)
    finally:
        file.write_bytes(before)
