# SPDX-License-Identifier: Apache-2.0
"""Accuracy over models and trainings: a case worked by hand, and its table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from pybench.analysis import analyse
from pybench.analysis.findings.cell_differences import CellsDifference
from pybench.analysis.statistics.estimate import Sample
from pybench.analysis.statistics.intervals import estimate_mean
from pybench.case import Case
from pybench.dataset import load
from pybench.report import write_report
from tests.report.pages import rows_of, section
from tests.support.campaigns import CampaignBuilder

FP32 = Case(
    workload="accuracy", model="digits-cnn", runtime="onnxruntime", checkpoint="synthetic-100", images="synthetic-100"
)
LOSSES = {"digits-cnn": 1.0, "mobilenet-v1": 2.0, "mobilenet-v2": 6.0}  # of INT8, percentage points


def campaign(folder: Path, losses: Mapping[Case, float]) -> Path:
    """Each case with its case in INT8, which loses so many points. A run of each, without predictions."""
    pairs = {case: case.with_factors(precision="int8", quantiser="pybench") for case in losses}
    cases = [one for pair in pairs.items() for one in pair]
    builder = CampaignBuilder(folder / "c", cases, repetitions=1, declared={"baseline": {"precision": "fp32"}})
    for case, loss in losses.items():
        builder.run(case, 1, {"top1_percent": 90.0})
        builder.run(pairs[case], 1, {"top1_percent": 90.0 - loss})
    return builder.path


def differences(folder: Path, losses: Mapping[Case, float]) -> tuple[CellsDifference, ...]:
    return analyse(load(campaign(folder, losses))).cell_differences


def test_models_are_the_unit_and_each_counts_once(tmp_path: Path) -> None:
    """digits-cnn is trained twice, with losses of 0 and 2, so that it loses 1 in the mean, as one of three models."""
    losses = {FP32.with_factors(model=name, training_seed=0): loss for name, loss in LOSSES.items()}
    losses[FP32] = 0.0
    losses[FP32.with_factors(training_seed=1)] = 2.0
    (found,) = differences(tmp_path, losses)
    assert found.unit == "model"
    assert dict(found.differences) == pytest.approx({name: -loss for name, loss in LOSSES.items()})
    assert found.estimate.value == pytest.approx(-3.0)
    assert found.estimate == estimate_mean(Sample.of(found.differences.values()))
    assert found.estimate.n == 3
    assert found.estimate.lower is not None
    assert found.estimate.upper is not None
    assert found.estimate.lower < -3.0 < found.estimate.upper
    assert len(found.pairs) == 4


def test_groups_are_subtracted_training_by_training(tmp_path: Path) -> None:
    """Losses of FP32's weights 1, 2, 4 and of AMP's 0, 2, 1: differences of -(0 - 1), 0, 3, in the mean 4 / 3."""
    losses = {
        FP32.with_factors(trained_in=trained_in, training_seed=seed): loss
        for trained_in, three in (("fp32", (1.0, 2.0, 4.0)), ("amp-bf16", (0.0, 2.0, 1.0)))
        for seed, loss in enumerate(three)
    }
    first, second, between = differences(tmp_path, losses)
    assert [one.unit for one in (first, second, between)] == ["training_seed"] * 3
    assert first.estimate.value == pytest.approx(-7 / 3)
    assert second.estimate.value == pytest.approx(-1.0)
    assert between.factor == "trained_in"
    stored = between.as_json()
    assert (stored["value"], stored["base_value"]) == ("amp-bf16", "fp32")
    assert dict(between.differences) == pytest.approx({"0": 1.0, "1": 0.0, "2": 3.0})
    assert between.estimate.value == pytest.approx(4 / 3)


def test_a_unit_that_one_group_lacks_is_not_subtracted(tmp_path: Path) -> None:
    losses = {
        FP32.with_factors(trained_in=trained_in, training_seed=seed): float(seed)
        for trained_in, seeds in (("fp32", (0, 1)), ("amp-bf16", (1, 2)))
        for seed in seeds
    }
    assert [one.factor for one in differences(tmp_path, losses)] == [None, None]  # one training is in both


def test_one_model_that_is_trained_once_has_no_interval_over_units(tmp_path: Path) -> None:
    assert differences(tmp_path, {FP32: 1.0}) == ()


def test_groups_that_differ_in_two_factors_are_not_subtracted(tmp_path: Path) -> None:
    losses = {
        FP32.with_factors(trained_in=trained_in, batch=batch, training_seed=seed): float(seed)
        for trained_in, batch in (("fp32", 1), ("amp-bf16", 2))
        for seed in (0, 1, 2)
    }
    assert [one.factor for one in differences(tmp_path, losses)] == [None, None]


def test_cells_of_one_model_and_training_do_not_replace_each_other(tmp_path: Path) -> None:
    """Three models at two sizes each: a group for each size, and the difference of the sizes, model by model."""
    losses = {
        FP32.with_factors(model=name, image_size=size): loss * factor
        for name, loss in LOSSES.items()
        for size, factor in ((24, 1.0), (48, 2.0))
    }
    *groups, between = differences(tmp_path, losses)
    means = {one.pairs[0].case.image_size: one.estimate.value for one in groups}
    assert means == pytest.approx({24: -3.0, 48: -6.0})
    assert between.factor == "image_size"
    first, second = (pair.case.image_size for pair in (between.base, between.pairs[0]) if pair is not None)
    assert between.estimate.value == pytest.approx(means[second] - means[first])


def test_models_may_have_images_of_sizes_of_their_own(tmp_path: Path) -> None:
    sizes = dict(zip(LOSSES, (24, 48, 96), strict=True))
    losses = {FP32.with_factors(model=name, image_size=sizes[name]): loss for name, loss in LOSSES.items()}
    (found,) = differences(tmp_path, losses)
    assert found.estimate.value == pytest.approx(-3.0)


def test_groups_that_differ_in_two_factors_are_told_apart(tmp_path: Path) -> None:
    losses = {
        FP32.with_factors(trained_in=trained_in, batch=batch, training_seed=seed): float(seed)
        for trained_in, batch in (("fp32", 1), ("amp-bf16", 2))
        for seed in (0, 1, 2)
    }
    rows = rows_of(write_report(load(campaign(tmp_path, losses))), "cell-differences")
    assert [row["comparison"] for row in rows] == [
        "int8 instead of fp32 (trained in fp32, batch 1)",
        "int8 instead of fp32 (trained in amp-bf16, batch 2)",
    ]


def test_the_report_names_units_and_groups(tmp_path: Path) -> None:
    losses = {
        FP32.with_factors(trained_in=trained_in, training_seed=seed): loss
        for trained_in, three in (("fp32", (1.0, 2.0, 4.0)), ("amp-bf16", (0.0, 2.0, 1.0)))
        for seed, loss in enumerate(three)
    }
    page = write_report(load(campaign(tmp_path, losses)))
    rows = rows_of(page, "cell-differences")
    assert [row["comparison"] for row in rows] == [
        "int8 instead of fp32 (trained in fp32)",
        "int8 instead of fp32 (trained in amp-bf16)",
        "int8 instead of fp32: trained in amp-bf16 minus fp32",
    ]
    assert rows[2]["units"] == "3"
    assert float(rows[2]["difference"]) == pytest.approx(4 / 3)
    assert (float(rows[2]["lowest"]), rows[2]["highest_unit"]) == (pytest.approx(0.0), "2")
    assert "over 3 trainings" in section(page, "cell-differences")


def test_a_factor_that_is_not_set_is_the_default_in_words(tmp_path: Path) -> None:
    losses = {
        FP32.with_factors(trained_in=trained_in, training_seed=seed): float(seed)
        for trained_in in (None, "fp32")
        for seed in (0, 1, 2)
    }
    rows = rows_of(write_report(load(campaign(tmp_path, losses))), "cell-differences")
    assert {row["comparison"] for row in rows} == {
        "int8 instead of fp32 (trained in default)",
        "int8 instead of fp32 (trained in fp32)",
        "int8 instead of fp32: trained in fp32 minus default",
    }
