# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from pybench.catalogue.data_sets import DATA_SETS
from pybench.catalogue.models import MODELS
from pybench.errors import InputError
from pybench.models.text.packages import open_text
from pybench.models.tinylm import Size, TinyLm
from pybench.models.training.language import counted_perplexity, perplexity, train_language, train_on_text

ROW = replace(MODELS["tinylm-tiny"], training_epochs=6, training_batch=4)


def test_counts_worked_by_hand() -> None:
    # Ids 0 0 1 of three: with one added, 3/6, 2/6 and 1/6; the perplexity of 0 and 2 is (3/6 x 1/6) ** -1/2.
    assert counted_perplexity(np.array([0, 0, 1]), np.array([0, 2]), 3) == pytest.approx((3 / 36) ** -0.5)


def test_the_floor_is_what_counts_reach() -> None:
    windows, judges = open_text("train", ROW), open_text("validation", ROW)
    ids = np.concatenate([windows.load(np.arange(len(windows))).ravel(), windows.all_truth()])
    floor = DATA_SETS["stdlib-text"].floor
    assert floor is not None
    assert counted_perplexity(ids, judges.all_truth()) == pytest.approx(floor.value, rel=1e-3)


def test_training_lowers_the_perplexity_of_what_was_seen() -> None:
    torch.set_num_threads(1)
    few, cpu = open_text("train", ROW).limited(8), torch.device("cpu")
    torch.manual_seed(0)
    model = TinyLm(Size(64, 1, 1))
    before = perplexity(model, few, cpu)
    train_language(model, few, ROW, 3, cpu)
    assert before == pytest.approx(32_000, rel=0.1)
    assert perplexity(model, few, cpu) < before / 5


def test_a_perplexity_above_every_float_is_infinite() -> None:
    few, cpu = open_text("train", ROW).limited(2), torch.device("cpu")
    model = TinyLm(Size(64, 1, 1))
    with torch.no_grad():
        model.head.weight.mul_(1e6)
    assert perplexity(model, few, cpu) == np.inf


@pytest.mark.parametrize("name", ["text-encoder", "tinylm-classifier"])
def test_a_classifier_is_not_trained_as_a_language_model(name: str) -> None:
    with pytest.raises(InputError, match=f"{name} has no scores of every position"):
        train_on_text(MODELS[name], {"trained_on": "stdlib-text", "seed": 0})
