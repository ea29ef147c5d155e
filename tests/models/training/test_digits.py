# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
import torch

from pybench.models.building import build
from pybench.models.images.digits import read_digits
from pybench.models.training.digits import train_digits


@pytest.mark.slow
def test_training_learns_the_digits_and_repeats_exactly() -> None:
    torch.set_num_threads(1)
    first = train_digits(build("digits-cnn"), read_digits("train"), seed=0)
    judges = read_digits("validation")
    with torch.inference_mode():
        hits = first(torch.from_numpy(judges.load_all())).argmax(1).numpy() == judges.labels
    assert hits.mean() > 0.97
    few = read_digits("train").limited(200)
    one = train_digits(build("digits-cnn"), few, seed=4)
    same = train_digits(build("digits-cnn"), few, seed=4)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), same.parameters(), strict=True))
