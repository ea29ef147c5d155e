# SPDX-License-Identifier: Apache-2.0
"""Automatic mixed precision of trainings: other weights, recipes, and what a CPU does not train in."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from pybench.artefacts import checkpoint
from pybench.artefacts.request import MakeRequest
from pybench.campaign.recipe import in_making_order, recipes_of
from pybench.case import Case
from pybench.case.factors import idle_factors
from pybench.errors import UnsupportedError
from pybench.models.building import build
from pybench.models.images import open_images
from pybench.models.training.digits import train_digits
from pybench.models.training.mixed import MixedPrecision

CPU = torch.device("cpu")
DIGITS = Case(workload="accuracy", model="digits-cnn", runtime="onnxruntime", precision="int8", images="digits")


def recipe(case: Case, kind: str = "checkpoint") -> dict[str, object]:
    (found,) = (one for one in in_making_order(recipes_of(case)) if one.kind == kind)
    return dict(found.parameters)


def test_operators_cast_under_autocast_and_weights_stay_in_fp32() -> None:
    images = open_images("digits", "train", (1, 8, 8)).limited(128)
    states = {
        precision: train_digits(build("digits-cnn"), images, seed=1, epochs=1, precision=precision).state_dict()
        for precision in ("fp32", "amp-bf16")
    }
    for name, value in states["fp32"].items():
        other = states["amp-bf16"][name]
        assert other.dtype == value.dtype
        if name.endswith("conv1.weight"):
            assert not torch.equal(value, other)
            assert torch.allclose(value, other, atol=0.05)


def test_a_step_shortens_gradients_by_their_norm() -> None:
    layer = torch.nn.Linear(2, 1)
    mixed, optimiser = MixedPrecision("fp32", CPU), torch.optim.SGD(layer.parameters(), lr=0.0)
    mixed.backward(100 * layer(torch.ones(1, 2)).sum())
    mixed.step(optimiser, layer.parameters(), 0.5)
    norm = torch.stack([p.grad.norm() for p in layer.parameters() if p.grad is not None]).norm()
    assert float(norm) == pytest.approx(0.5, rel=1e-4)


def test_a_cpu_does_not_train_in_fp16() -> None:
    with pytest.raises(UnsupportedError, match="amp-fp16 in torch needs a GPU") as raised:
        MixedPrecision("amp-fp16", CPU)
    assert raised.value.reason.stored_code == "no_gpu"


def test_the_precision_and_the_seed_of_weights_are_part_of_their_recipe_alone_where_they_are_asked_for() -> None:
    assert recipe(DIGITS) == {"model": "digits-cnn", "trained_on": "digits", "seed": 0}
    asked = DIGITS.with_factors(trained_in="amp-bf16", training_seed=3)
    assert recipe(asked) == {**recipe(DIGITS), "trained_in": "amp-bf16", "seed": 3}
    assert recipe(DIGITS.with_factors(quantiser="qat"), "onnx-quantised")["seed"] == 1
    assert recipe(asked.with_factors(quantiser="qat"), "onnx-quantised")["seed"] == 4


def test_weights_that_nobody_trains_beforehand_have_no_training() -> None:
    names = {"trained_in", "training_seed"}
    assert not names & idle_factors(DIGITS)
    for other in (DIGITS.with_factors(checkpoint="mine.pt"), Case(workload="infer", model="mlp", runtime="torch")):
        assert names <= idle_factors(other)


@pytest.mark.slow
def test_the_maker_is_told_the_precision(tmp_path: Path) -> None:
    weights = {}
    for trained_in in (None, "fp32", "amp-bf16"):
        request = MakeRequest("checkpoint", recipe(DIGITS.with_factors(trained_in=trained_in)), {}, {})
        result = checkpoint.make(request, tmp_path / "weights.pt")
        assert (result.metrics["top1_percent"].value or 0.0) > 95
        weights[trained_in] = torch.load(tmp_path / "weights.pt", weights_only=True)["fc.weight"]
    if not torch.cuda.is_available():  # a GPU sums in another order
        assert torch.equal(weights[None], weights["fp32"])
    assert not torch.equal(weights["fp32"], weights["amp-bf16"])
