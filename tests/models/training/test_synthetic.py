# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os

import numpy as np
import pytest
import torch
from torch import nn

from pybench.models.images.generated import open_synthetic
from pybench.models.resnet50 import ResNet50
from pybench.models.training.synthetic import TrainingSettings, TrainingStep, draw_batch, judge, train

CPU = torch.device("cpu")
ASKED_FOR = os.environ.get("PYBENCH_TEST_TRAINING") == "1"


def small(width: int = 12) -> nn.Module:
    def stage(inputs: int, outputs: int) -> list[nn.Module]:
        return [nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]

    torch.manual_seed(0)
    return nn.Sequential(
        *stage(3, width), *stage(width, 2 * width), nn.MaxPool2d(2),
        *stage(2 * width, 4 * width), *stage(4 * width, 4 * width), nn.MaxPool2d(2),
        *stage(4 * width, 6 * width), nn.MaxPool2d(2), *stage(6 * width, 6 * width),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6 * width, 100),
    )  # fmt: skip


def test_a_batch_is_what_the_data_set_reads() -> None:
    pixels, labels = draw_batch("validation", np.arange(3), (3, 24, 24), CPU)
    images = open_synthetic("validation", (3, 24, 24))
    assert np.allclose(pixels.numpy(), np.stack([images.read(i) for i in range(3)]), atol=1e-5)
    assert labels.tolist() == images.labels[:3].tolist()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not ASKED_FOR, reason="takes minutes: PYBENCH_TEST_TRAINING=1")
def test_a_small_network_leaves_guessing_behind() -> None:
    """Guessing costs ln 100 = 4.6 nats and hits 1 %. What a large network reaches is bench/tensorrt's to show."""
    torch.set_num_threads(1)
    model, losses = small(16), []
    course = TrainingSettings(20_480, batch=128)
    seen = train(model, (3, 32, 32), course, 0, CPU, lambda step: losses.append(float(step.loss)))
    assert seen == 20_480
    assert len(losses) == 160
    assert np.mean(losses[-20:]) < 4.4
    assert judge(model, (3, 32, 32), CPU, images=1000) > 3
    assert not model.training


def test_equal_seeds_train_alike_and_other_seeds_see_other_images() -> None:
    torch.set_num_threads(1)
    course = TrainingSettings(128, batch=32)
    models = [small() for _ in range(3)]
    for model, seed in zip(models, (1, 1, 2), strict=True):
        train(model, (3, 16, 16), course, seed, CPU)
    one, same, other = (dict(model.named_parameters())["0.weight"] for model in models)
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_time_ends_a_training_with_its_cycle_complete() -> None:
    steps: list[TrainingStep] = []
    course = TrainingSettings(10**9, batch=16, limit_s=0.5)
    seen = train(small(), (3, 16, 16), course, 0, CPU, steps.append)
    assert seen == steps[-1].images < 10**6
    assert steps[-1].progress < 1
    assert steps[-1].elapsed_s <= 0.5


def test_residual_blocks_start_as_their_shortcuts() -> None:
    model = ResNet50(classes=100)
    train(model, (3, 16, 16), TrainingSettings(0), 0, CPU)
    assert not model.layer1[0].bn3.weight.any()
    assert model.layer1[0].bn2.weight.all()
