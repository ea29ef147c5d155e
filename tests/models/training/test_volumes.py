# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from pybench.catalogue.models import MODELS
from pybench.models.building import build
from pybench.models.training.volumes import dice_and_entropy, mean_dice, train_volumes
from pybench.models.volumes import open_volumes

ROW = replace(MODELS["unet3d-small"], training_epochs=12)


def test_the_loss_of_a_perfect_answer_is_small_and_that_of_background_is_not() -> None:
    labels = torch.zeros(1, 4, 4, 4, dtype=torch.int64)
    labels[0, :2], labels[0, 0, 0] = 1, 2
    right = 20 * torch.nn.functional.one_hot(labels, 3).movedim(-1, 1).float()
    background = torch.zeros(1, 3, 4, 4, 4)
    background[:, 0] = 20
    assert dice_and_entropy(right, labels) < 0.1
    assert dice_and_entropy(background, labels) > 5


@pytest.mark.slow
def test_a_few_volumes_are_learned() -> None:
    torch.set_num_threads(1)
    few, cpu = open_volumes("train", ROW).limited(8), torch.device("cpu")
    model = build(ROW, seed=3)
    before = mean_dice(model, few, cpu)
    train_volumes(model, few, ROW, 3, cpu)
    assert before < 20
    assert mean_dice(model, few, cpu) > 40


def test_the_small_network_has_the_operations_that_its_row_states() -> None:
    """Each output of a convolution takes one multiplication for each input of its window."""
    counted = 0

    def count(module: torch.nn.Module, _: object, output: torch.Tensor) -> None:
        nonlocal counted
        weight = module.weight
        assert isinstance(weight, torch.Tensor)
        window = 1 if isinstance(module, torch.nn.ConvTranspose3d) else weight[0, 0].numel()
        inputs = weight.shape[0] if isinstance(module, torch.nn.ConvTranspose3d) else weight.shape[1]
        counted += output.numel() * inputs * window

    model = build(ROW)
    for module in model.modules():
        if isinstance(module, torch.nn.Conv3d | torch.nn.ConvTranspose3d):
            module.register_forward_hook(count)
    with torch.inference_mode():
        model(torch.zeros(1, *ROW.shape))
    assert counted == pytest.approx(ROW.multiply_adds, rel=0.03)
