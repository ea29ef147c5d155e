# SPDX-License-Identifier: Apache-2.0
"""Scores of each task, worked by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from pybench.campaign.layout import SUMMARY
from pybench.catalogue.metrics import METRICS
from pybench.errors import InputError
from pybench.measurement.result import Result
from pybench.models.samples import Samples
from pybench.worker.storing import store
from pybench.workloads.tasks import classification, language, regression, segmentation
from pybench.workloads.tasks.scores import TaskScores


def samples(truth: npt.NDArray[Any], classes: tuple[str, ...] = ()) -> Samples:
    return Samples(
        ids=tuple(str(i) for i in range(len(truth))),
        shape=(1,),
        load=lambda indices: np.zeros((len(indices), 1), np.float32),
        truth=lambda indices: truth[indices],
        classes=classes,
    )


def batches(outputs: npt.NDArray[Any], size: int) -> list[tuple[slice, npt.NDArray[Any]]]:
    return [(slice(i, min(i + size, len(outputs))), outputs[i : i + size]) for i in range(0, len(outputs), size)]


def test_ties_of_classes_go_to_the_lower_one() -> None:
    outputs = batches(np.array([[1.0, 1.0], [0.0, 2.0]]), 1)
    found = classification.judge(outputs, samples(np.array([0, 1]), ("a", "b")), "m", "window")
    assert found.columns["top1"].tolist() == [0, 1]
    assert found.metrics["top1_percent"].value == 100.0
    assert found.metrics["top1_percent"].method == "share of windows; binomial deviation"


def test_dice_of_a_volume_is_that_of_its_classes_and_leaves_out_what_is_absent() -> None:
    truth = np.array([[[[1, 1, 2, 0]]], [[[1, 0, 0, 0]]]], np.uint8)  # two volumes of four voxels
    predicted = np.array([[[[1, 2, 2, 0]]], [[[1, 1, 2, 0]]]])
    scores = np.moveaxis(np.eye(3, dtype=np.float32)[predicted], -1, 1)
    found = segmentation.judge(batches(scores, 1), samples(truth, ("nothing", "outer", "inner")), "m", "volume")
    # First: outer 2 x 1 / (2 + 1), inner 2 x 1 / (1 + 2). Second: outer 2 x 1 / (1 + 2); it has no inner voxel.
    assert found.columns["dice_percent"].tolist() == pytest.approx([200 / 3, 200 / 3])
    assert np.isnan(found.columns["dice_inner_percent"][1])
    assert found.metrics["dice_percent"].value == pytest.approx(200 / 3)
    with pytest.raises(InputError, match=r"m gives \[1, 2, 1, 1, 4\], and the volumes need \[1, 3, 1, 1, 4\]"):
        segmentation.judge(batches(scores[:1, :2], 1), samples(truth, ("nothing", "outer", "inner")), "m", "volume")


def test_perplexity_of_even_scores_is_the_vocabulary() -> None:
    found = language.judge(batches(np.zeros((3, 50), np.float32), 2), samples(np.array([0, 7, 49])), "m", "window")
    assert found.metrics["perplexity"].value == pytest.approx(50)
    sure = np.array([[math.log(3), 0.0]], np.float32)
    assert language.judge(batches(sure, 1), samples(np.array([0])), "m", "window").metrics["perplexity"].value == (
        pytest.approx(4 / 3)
    )
    with pytest.raises(InputError, match="whose next ids reach 60"):
        language.judge(batches(np.zeros((1, 50)), 1), samples(np.array([60])), "m", "window")


def test_errors_of_a_regression_are_taken_in_float64() -> None:
    truth = np.array([[1.0], [2.0], [1e-9]])
    outputs = np.array([[1.5], [2.0], [0.0]], np.float32)
    found = regression.judge(batches(outputs, 2), samples(truth), "m", "point")
    assert found.columns["absolute_error"].tolist() == pytest.approx([0.5, 0.0, 1e-9])
    assert found.metrics["l1_error"].value == pytest.approx((0.5 + 1e-9) / 3)
    assert found.metrics["linf_error"].value == 0.5
    assert found.labels == {"negative_outputs": 0}
    below = regression.judge(batches(-outputs, 2), samples(truth), "m", "point")
    assert below.labels == {"negative_outputs": 2}
    with pytest.raises(InputError, match=r"m gives \[2, 2\], and the truth has \[2, 1\]"):
        regression.judge(batches(outputs.repeat(2, 1), 2), samples(truth), "m", "point")


def stored_metrics(found: TaskScores, folder: Path) -> dict[str, Any]:
    """The metrics as they are in summary.json."""
    store(Result(metrics=dict(found.metrics), tables={"predictions": dict(found.columns)}), folder, METRICS)
    stored: dict[str, Any] = json.loads((folder / SUMMARY).read_bytes())["metrics"]
    return stored


@pytest.mark.parametrize("lost", [np.nan, np.inf, -np.inf])
def test_an_error_that_is_no_number_is_stored_as_missing(lost: float, tmp_path: Path) -> None:
    outputs = np.array([[lost], [1.0]], np.float32)
    found = regression.judge(batches(outputs, 1), samples(np.zeros((2, 1))), "m", "point")
    assert not found.is_finite
    for metric in stored_metrics(found, tmp_path).values():
        assert metric["value"] is None
        assert metric["samples"] == 2
        assert metric["reason"] == "not_finite: 1 of 2 points have no finite score"


@pytest.mark.parametrize("lost", [np.nan, np.inf])
def test_a_perplexity_of_scores_that_are_no_numbers_is_stored_as_missing(lost: float, tmp_path: Path) -> None:
    outputs = np.array([[lost, 0.0], [1.0, 0.0]], np.float32)
    found = language.judge(batches(outputs, 1), samples(np.array([1, 0])), "m", "window")
    assert not found.is_finite
    stored = stored_metrics(found, tmp_path)["perplexity"]
    assert stored["value"] is None
    assert stored["reason"] == "not_finite: 1 of 2 windows have no finite score"


def test_a_perplexity_above_every_float_is_stored_as_missing(tmp_path: Path) -> None:
    outputs = np.array([[800.0, 0.0], [750.0, 0.0]], np.float32)
    found = language.judge(batches(outputs, 2), samples(np.array([1, 1])), "m", "window")
    assert found.is_finite
    stored = stored_metrics(found, tmp_path)["perplexity"]
    assert stored["value"] is None
    assert stored["reason"] == "not_finite: the exponential of 775 nats is larger than any float64"


def test_dice_of_an_image_whose_model_tells_more_classes_apart() -> None:
    truth = np.array([[[1, 0]]], np.uint8)  # one image of two pixels
    scores = np.array([[[[0.0, 3.0]], [[2.0, 0.0]], [[0.0, 0.0]], [[1.0, 1.0]]]])
    found = segmentation.judge(batches(scores, 1), samples(truth, ("0", "1", "2")), "m", "sample")
    assert found.metrics["dice_percent"].value == 100.0
    assert found.labels["dice_percent_by_class"] == {"1": 100.0}  # nothing is of class 2


def test_a_window_of_several_tokens_has_the_mean_of_their_nats() -> None:
    scores = np.log(np.array([[[0.5, 0.5], [0.25, 0.75]]]))
    found = language.judge(batches(scores, 1), samples(np.array([[0, 1]])), "m", "sample")
    assert found.columns["nats"].tolist() == pytest.approx([(math.log(2) + math.log(4 / 3)) / 2])
    with pytest.raises(InputError, match=r"m gives \[1, 2, 2\] for 1 samples"):
        language.judge(batches(scores, 1), samples(np.array([[0, 1, 1]])), "m", "sample")


def test_a_dimension_of_one_value_is_none() -> None:
    found = regression.judge(batches(np.array([[1.0], [2.0]]), 2), samples(np.array([1.0, 4.0])), "m", "sample")
    assert found.columns["absolute_error"].tolist() == [0.0, 2.0]
