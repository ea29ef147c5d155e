# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest

from pybench.catalogue.data_sets import DATA_SETS
from pybench.catalogue.models import MODELS
from pybench.errors import InputError
from pybench.models.volumes import CLASSES, draw, open_volumes
from pybench.workloads.tasks.segmentation import judge

ROW = MODELS["unet3d-small"]


def test_a_volume_is_drawn_from_its_number() -> None:
    assert np.array_equal(draw(7, 16).values, draw(7, 16).values)
    assert not np.array_equal(draw(7, 16).values, draw(8, 16).values)
    assert [int((draw(7, 16).labels == label).sum()) for label in range(3)] == [3768, 289, 39]


def test_every_volume_has_all_classes_and_the_inner_body_is_rare() -> None:
    judges = open_volumes("validation", ROW)
    truth = judges.all_truth()
    counts = np.stack([(truth == label).sum(axis=(1, 2, 3)) for label in range(len(CLASSES))], axis=1)
    assert (counts > 0).all()
    shares = counts.sum(axis=0) / counts.sum()
    assert shares == pytest.approx([0.924, 0.067, 0.009], abs=0.01)
    assert judges.load(np.array([0, 3])).shape == (2, 1, 16, 16, 16)


def test_no_volume_both_trains_and_judges() -> None:
    train, judges = open_volumes("train", ROW), open_volumes("validation", ROW)
    assert set(train.ids).isdisjoint(judges.ids)
    assert not np.array_equal(train.load(np.array([0])), judges.load(np.array([0])))


def test_a_model_of_images_takes_no_volume() -> None:
    with pytest.raises(InputError, match="resnet50 takes no cubes of one channel"):
        open_volumes("train", MODELS["resnet50"])


def test_the_floor_is_what_naive_bayes_reaches_on_value_and_place() -> None:
    """Values of each class are taken as normal, and a place has the shares of classes that it has in training."""
    volumes, judges = open_volumes("train", ROW), open_volumes("validation", ROW)
    everything = np.arange(len(volumes))
    values, labels = volumes.load(everything)[:, 0], volumes.truth(everything)
    classes = range(len(volumes.classes))
    shares = np.stack([((labels == one).sum(axis=0) + 1) / (len(labels) + len(classes)) for one in classes])
    mean, deviation = (np.array([moment(values[labels == one]) for one in classes]) for moment in (np.mean, np.std))
    judged = judges.load(np.arange(len(judges)))  # [n, 1, D, D, D]
    z = (judged - mean[:, None, None, None]) / deviation[:, None, None, None]
    scores = np.log(shares) - np.log(deviation)[:, None, None, None] - z**2 / 2  # [n, classes, D, D, D]
    outputs = [(slice(0, len(judges)), scores)]
    reached = judge(outputs, judges, "naive Bayes", "volume").metrics["dice_percent"].value
    floor = DATA_SETS["nested-volumes"].floor
    assert floor is not None
    assert reached == pytest.approx(floor.value, abs=0.5)
