# SPDX-License-Identifier: Apache-2.0
"""Training to an accuracy: it stops at the target, costs that are not known are not told, seeds are other trainings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from pybench.case import Case
from pybench.case.yields import metrics_of
from pybench.errors import InputError
from pybench.measurement.result import Result
from pybench.models.building import build
from tests.support.making import codes, run, write_images

DIGITS = Case(
    workload="fit", model="digits-cnn", runtime="torch", device="cpu", images="digits", batch=64, threads=1,
    learning_rate=0.003, target_top1_percent=95.0, epochs_max=10, idle_window_s=0.0,
)  # fmt: skip


def curve(result: Result) -> np.ndarray:
    return result.tables["learning_curve"]["top1_percent"]


@pytest.mark.parametrize("precision", ["fp32", "bf16", "amp-bf16"])
def test_training_ends_with_the_epoch_that_reaches_the_target(precision: str) -> None:
    case = DIGITS.with_factors(precision=precision)
    result = run(case)
    top1 = curve(result)
    assert top1[-1] >= 95 > max(top1[:-1], default=0)
    assert result.metrics["epochs_to_target_count"].value == len(top1) < 10
    assert result.metrics["final_top1_percent"].value == top1[-1]
    columns = result.tables["learning_curve"]
    assert list(columns["images"]) == [epoch * (1347 // 64) * 64 for epoch in columns["epoch"]]
    assert result.metrics["time_to_target_s"].value == columns["elapsed_s"][-1]
    window = result.windows["timing"]
    assert columns["elapsed_s"][-1] <= (window["end_ns"] - window["begin_ns"]) * 1e-9
    assert list(columns["elapsed_s"]) == sorted(columns["elapsed_s"])
    assert result.valid["precision"].value is True


def test_a_target_that_is_not_reached_has_no_cost_and_is_no_failure() -> None:
    result = run(DIGITS.with_factors(target_top1_percent=100.0, epochs_max=1))
    for name in ("epochs_to_target_count", "time_to_target_s"):
        assert result.metrics[name].value is None
        assert str(result.metrics[name].reasons[0]).startswith("not_reached: at most ")
    assert result.metrics["final_top1_percent"].value == curve(result)[-1]
    assert result.labels["fit"]["reached"] is False


@pytest.mark.parametrize("target", [5.0, 95.0])
def test_a_training_that_diverges_ends_and_reaches_nothing(target: float) -> None:
    """Even where one class for all images would be enough."""
    result = run(DIGITS.with_factors(learning_rate=1e30, optimiser="sgd", epochs_max=5, target_top1_percent=target))
    assert len(curve(result)) == 1
    assert not np.isfinite(result.tables["learning_curve"]["held_out_loss_nats"][-1])
    assert result.labels["fit"]["reached"] is False
    assert str(result.metrics["time_to_target_s"].reasons[0]).startswith("not_reached: the held-out loss is ")
    assert "training_diverged" in codes(result)


def test_a_training_that_does_not_diverge_says_nothing_of_it() -> None:
    assert "training_diverged" not in codes(run(DIGITS.with_factors(epochs_max=1)))


def test_a_seed_is_a_training_of_its_own_and_repeats() -> None:
    case = DIGITS.with_factors(epochs_max=2, target_top1_percent=100.0)
    first, again, other = (run(case, seed=seed).tables["learning_curve"]["training_loss_nats"] for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_smaller_rate_learns_less_in_an_epoch() -> None:
    slow, quick = (
        run(DIGITS.with_factors(epochs_max=1, learning_rate=rate)).tables["learning_curve"]["training_loss_nats"][0]
        for rate in (1e-5, 3e-3)
    )
    assert slow > quick


@pytest.mark.slow
def test_generated_images_are_drawn_anew_in_each_epoch() -> None:
    case = DIGITS.with_factors(images="synthetic-100", batch=1000, image_limit=40, epochs_max=2)
    result = run(case)
    assert result.labels["inputs"].startswith("10000 images an epoch, 40 held out")
    losses = result.tables["learning_curve"]["training_loss_nats"]
    assert len(losses) == 2
    assert losses[1] < losses[0]


def test_a_folder_without_held_out_images_is_refused(tmp_path: Path) -> None:
    folder = write_images(tmp_path / "images", {"a": 2, "b": 2}, size=(8, 8), mode="L")
    with pytest.raises(InputError, match="no images that are held out") as raised:
        run(DIGITS.with_factors(images=str(folder), batch=2), files={"images": folder})
    assert "train/ and val/" in str(raised.value.hint)


def test_held_out_images_may_lack_classes(tmp_path: Path) -> None:
    write_images(tmp_path / "images" / "train", {"a": 2, "b": 2, "c": 2}, size=(8, 8), mode="L")
    write_images(tmp_path / "images" / "val", {"a": 2, "c": 2}, size=(8, 8), mode="L")
    case = DIGITS.with_factors(images=str(tmp_path / "images"), batch=2, epochs_max=1)
    assert run(case, files={"images": tmp_path / "images"}).metrics["final_top1_percent"].samples == 4


def test_held_out_images_of_a_class_that_nothing_trains_are_refused(tmp_path: Path) -> None:
    for split, labels in (("train", [0, 1, 0, 1]), ("val", [0, 2])):
        (tmp_path / "images" / split).mkdir(parents=True)
        np.save(tmp_path / "images" / split / "images.npy", np.zeros((len(labels), 8, 8), np.uint8))
        np.save(tmp_path / "images" / split / "labels.npy", np.array(labels))
    with pytest.raises(InputError, match=r"class 2 of .* is in the images that are held out, and not in those that"):
        run(DIGITS.with_factors(images=str(tmp_path / "images"), batch=2), files={"images": tmp_path / "images"})


def test_a_checkpoint_with_fewer_outputs_than_the_images_have_classes_is_refused(tmp_path: Path) -> None:
    checkpoint = tmp_path / "three.pt"
    torch.save(build("digits-cnn", outputs=3).state_dict(), checkpoint)
    case = DIGITS.with_factors(images=None, checkpoint="three.pt", sources=(("checkpoint", "1" * 64),))
    with pytest.raises(InputError, match="digits has 10 classes, and the weights of digits-cnn tell 3 apart"):
        run(case, {"checkpoint": checkpoint})


def test_a_batch_above_the_images_is_refused() -> None:
    with pytest.raises(InputError, match="1347 images that train, which is less than a batch of 2000"):
        run(DIGITS.with_factors(batch=2000))


def test_a_users_folder_is_learned(tmp_path: Path) -> None:
    for split in ("train", "val"):
        write_images(tmp_path / "images" / split, {"a": 4, "b": 4}, size=(8, 8), mode="L")
    case = DIGITS.with_factors(images=str(tmp_path / "images"), batch=4, epochs_max=2, target_top1_percent=100.0)
    result = run(case, files={"images": tmp_path / "images"})
    assert result.labels["inputs"].startswith("8 images an epoch, 8 held out")
    assert set(result.metrics) <= metrics_of(case)
