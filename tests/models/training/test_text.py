# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from pybench.catalogue.data_sets import DATA_SETS
from pybench.catalogue.models import MODELS
from pybench.errors import UnsupportedError
from pybench.models.building import build
from pybench.models.text.packages import open_packages
from pybench.models.training.text import (
    baselines,
    chosen_smoothing,
    naive_bayes,
    predicted,
    train_on_packages,
    train_windows,
    with_noise,
)

ROW = replace(MODELS["text-encoder"], training_epochs=12)


def test_naive_bayes_worked_by_hand() -> None:
    # Class 0 has ids 0 0 1, class 1 has 2 2 1; of [1, 0] the classes have (2/6)(3/6) and (2/6)(1/6) of likelihood.
    ids = np.array([[0, 0, 1], [2, 2, 1]])
    assert naive_bayes(ids, np.array([0, 1]), np.array([[1, 0], [1, 2]]), 2, 3).tolist() == [0, 1]


def test_smoothing_is_chosen_by_files_that_did_not_train() -> None:
    """Each file of a class has an id of its own: by windows alone, little smoothing would seem to be enough."""
    random = np.random.default_rng(3)
    files = np.repeat(np.arange(40), 5)
    labels = files % 2
    common = random.integers(0, 20, (200, 12)) + 20 * (random.random((200, 12)) < np.where(labels, 0.7, 0.3)[:, None])
    own = np.repeat(50 + np.arange(40), 5)[:, None]
    ids = np.concatenate([common, own], axis=1)
    assert chosen_smoothing(ids, labels, files, 2, 100) == 1.0
    alone = np.arange(200)
    assert chosen_smoothing(ids, labels, alone, 2, 100) < 1.0


def test_what_is_reached_without_a_network() -> None:
    found = baselines(open_packages("train", ROW), open_packages("validation", ROW))
    assert found["majority class"] == pytest.approx(19.4, abs=0.1)
    floor = DATA_SETS["stdlib-packages"].floor
    assert floor is not None
    assert found["naive Bayes"] == pytest.approx(floor.value, abs=0.1)


def test_noise_replaces_a_share_of_the_ids_and_none_without_a_share() -> None:
    ids = torch.full((64, 128), -1)
    noisy = with_noise(ids, replace(ROW, training_noise_ratio=0.3), np.random.default_rng(0))
    assert (noisy >= 0).float().mean().item() == pytest.approx(0.3, abs=0.02)
    assert with_noise(ids, ROW, np.random.default_rng(0)) is ids


@pytest.mark.slow
@pytest.mark.parametrize("name", ["text-encoder", "tinylm-classifier"])
def test_a_few_windows_are_learned_by_heart_and_equal_seeds_give_equal_weights(name: str) -> None:
    torch.set_num_threads(1)
    row = replace(MODELS[name], training_epochs=12)
    few, cpu = open_packages("train", row).limited(64), torch.device("cpu")
    models = [build(row, seed=3) for _ in range(2)]
    for model in models:
        train_windows(model, few, row, 3, cpu)
    assert (predicted(models[0], few, cpu) == few.all_truth()).mean() > 0.9
    assert all(torch.equal(one, other) for one, other in zip(*(m.state_dict().values() for m in models), strict=True))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_distilbert_is_not_trained_without_a_gpu() -> None:
    with pytest.raises(UnsupportedError, match="training distilbert on stdlib-packages needs a GPU"):
        train_on_packages(MODELS["distilbert"], {"trained_on": "stdlib-packages", "seed": 0})
