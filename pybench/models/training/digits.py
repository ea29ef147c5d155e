# SPDX-License-Identifier: Apache-2.0
"""Training of the digits network: deterministic, seconds on one core.

Adam with a one-cycle learning rate and images shifted by up to one pixel (AdamW, Loshchilov and Hutter 2017; one cycle,
Smith 2017). Not a recipe for anything else: TinyLM's training is a workload, not a preparation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
import torch.nn.functional as functional
from torch import nn

from pybench.catalogue.data_sets import DIGITS
from pybench.catalogue.models import Model
from pybench.models.building import build
from pybench.models.images import Images
from pybench.models.images.digits import read_digits
from pybench.models.training.mixed import MixedPrecision
from pybench.models.training.trained import Trained, training_device

EPOCHS = 12
BATCH = 64
LEARNING_RATE = 0.01


def train_on_digits(row: Model, parameters: Mapping[str, Any]) -> Trained:
    """The model trained on the digits that do not judge. On one thread: the order of sums must not depend on the
    machine's number of CPUs."""
    torch.set_num_threads(1)
    seed, precision = parameters["seed"], parameters.get("trained_in")
    device = torch.device("cpu") if precision is None else training_device(row, DIGITS)
    model = build(row, seed=seed).to(device)
    train_digits(model, read_digits("train"), seed, precision=precision or "fp32").cpu()
    judges = read_digits("validation")
    with torch.inference_mode():
        hits = model(torch.from_numpy(judges.load_all())).argmax(1).numpy() == judges.labels
    return Trained(model, {"top1_percent": 100 * float(hits.mean())}, len(hits))


def train_digits(
    model: nn.Module,
    images: Images,
    seed: int,
    epochs: int = EPOCHS,
    rate: float = LEARNING_RATE,
    precision: str = "fp32",
) -> nn.Module:
    """Trains in place, where the model is, on all of `images`; returns it in evaluation mode. On a CPU equal seeds give
    equal weights.

    `rate`: the highest of the cycle.
    """
    device = next(model.parameters()).device
    mixed = MixedPrecision(precision, device)
    pixels = torch.from_numpy(images.load_all()).to(device)  # [N, 1, 8, 8]
    labels = torch.from_numpy(images.labels).to(device)
    order = np.random.default_rng(seed)
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate)
    steps = epochs * (len(labels) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=rate, total_steps=steps)
    model.train()
    for _ in range(epochs):
        shuffled = torch.from_numpy(order.permutation(len(labels)))
        for chosen in torch.split(shuffled, BATCH):
            if len(chosen) < BATCH:
                continue
            right, down = order.integers(-1, 2, size=2)
            shifted = torch.roll(pixels[chosen], (int(down), int(right)), dims=(2, 3))
            optimiser.zero_grad(set_to_none=True)
            with mixed.casts():
                loss = functional.cross_entropy(model(shifted), labels[chosen])
            mixed.backward(loss)
            mixed.step(optimiser)
            schedule.step()
    return model.eval()
