# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import torch
from torch import nn

from pybench.models.images.generated import open_synthetic
from pybench.models.resnet50 import ResNet50
from pybench.models.training.synthetic import Course, Step, draw_batch, judge, train

CPU = torch.device("cpu")


def small() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 24, 5, 2, 2, bias=False), nn.BatchNorm2d(24), nn.ReLU(),
        nn.Conv2d(24, 48, 3, 2, 1, bias=False), nn.BatchNorm2d(48), nn.ReLU(),
        nn.Conv2d(48, 96, 3, 1, 1, bias=False), nn.BatchNorm2d(96), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(96, 100),
    )  # fmt: skip


def test_a_batch_is_what_the_data_set_reads() -> None:
    pixels, labels = draw_batch("validation", np.arange(3), (3, 24, 24), CPU)
    images = open_synthetic("validation", (3, 24, 24))
    assert np.allclose(pixels.numpy(), np.stack([images.read(i) for i in range(3)]), atol=1e-5)
    assert labels.tolist() == images.labels[:3].tolist()


def test_a_small_network_learns_something_in_a_few_steps() -> None:
    """Four thousand images of 24x24: the loss falls below the 4.6 nats of guessing and chance is left behind."""
    torch.set_num_threads(1)
    model, losses = small(), []
    seen = train(model, (3, 24, 24), Course(6_400, batch=64, rate=0.8), 0, CPU, lambda s: losses.append(float(s.loss)))
    assert seen == 6_400
    assert len(losses) == 100
    assert np.mean(losses[-10:]) < np.mean(losses[:10]) - 0.3
    assert judge(model, (3, 24, 24), CPU, images=1000) > 3  # of 100 classes; five standard errors above chance
    assert not model.training


def test_equal_seeds_train_alike_and_other_seeds_see_other_images() -> None:
    torch.set_num_threads(1)
    course = Course(128, batch=32)
    models = [small() for _ in range(3)]
    for model, seed in zip(models, (1, 1, 2), strict=True):
        train(model, (3, 16, 16), course, seed, CPU)
    one, same, other = (dict(model.named_parameters())["0.weight"] for model in models)
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_time_ends_a_training_with_its_cycle_complete() -> None:
    steps: list[Step] = []
    course = Course(10**9, batch=16, limit_s=0.5)
    seen = train(small(), (3, 16, 16), course, 0, CPU, steps.append)
    assert seen == steps[-1].images < 10**6
    assert steps[-1].progress < 1
    assert steps[-1].elapsed_s <= 0.5


def test_residual_blocks_start_as_their_shortcuts() -> None:
    model = ResNet50(classes=100)
    train(model, (3, 16, 16), Course(0), 0, CPU)
    assert not model.layer1[0].bn3.weight.any()
    assert model.layer1[0].bn2.weight.all()
