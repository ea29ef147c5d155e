# SPDX-License-Identifier: Apache-2.0
"""A training to an accuracy on images of the user's that cannot be done is told by the plan."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pybench.models.images import open_images
from pybench.plan import Plan
from tests.support.making import write_images

Load = Callable[..., Plan]
FIT = "  - {{workload: fit, model: digits-cnn, batch: {batch}, images: {images}, target_top1_percent: 90}}\n"


def write_splits(root: Path) -> None:
    """Five images that train and two that judge, of two classes."""
    write_images(root / "train", {"ant": 3, "bee": 2})
    write_images(root / "val", {"ant": 1, "bee": 1})


def test_images_of_which_none_are_held_out_judge_no_training(
    tmp_path: Path, problems: Callable[..., list[str]]
) -> None:
    write_splits(tmp_path / "own")
    values = np.zeros((2, 1, 8, 8), np.float32)
    np.savez(tmp_path / "arrays.npz", images=values, labels=np.array([0, 1]))
    for images in ("own/val", "arrays.npz"):
        (problem,) = problems(FIT.format(batch=1, images=images))
        assert f"`images`: {images} has no images that are held out, so nothing would judge the training" in problem
        assert problem.endswith("(put images into train/ and val/, as ImageNet has them)")


def test_a_batch_is_no_larger_than_the_images_that_train(
    load: Load, tmp_path: Path, problems: Callable[..., list[str]]
) -> None:
    write_splits(tmp_path / "own")
    assert len(load(FIT.format(batch="[1, 5]", images="own")).cases) == 2
    (problem,) = problems(FIT.format(batch="[5, 6]", images="own"))
    assert "`batch` 6 is more than the 5 images of own that train (use a `batch` of at most 5)" in problem


@pytest.mark.parametrize("images", ["digits", "synthetic-100"])
def test_a_batch_is_no_larger_than_what_trains_of_a_data_set(
    images: str, load: Load, problems: Callable[..., list[str]]
) -> None:
    trains = len(open_images(images, "train", (1, 8, 8) if images == "digits" else (3, 32, 32)))
    text = FIT.replace("digits-cnn", "digits-cnn" if images == "digits" else "resnet50")
    assert load(text.format(batch=trains, images=images)).cases
    (problem,) = problems(text.format(batch=trains + 1, images=images))
    assert f"`batch` {trains + 1} is more than the {trains} images of {images} that train" in problem
