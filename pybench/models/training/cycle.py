# SPDX-License-Identifier: Apache-2.0
"""Epochs of AdamW under one cycle of the learning rate (Loshchilov and Hutter 2017; Smith 2017).

Samples are shuffled in each epoch, and the last, incomplete batch is left out. No augmentation, no stopping by what
judges: a data set's own module adds what it needs in its loss.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from pybench.catalogue.models import Model
from pybench.models.training.mixed import MixedPrecision

WEIGHT_DECAY = 0.01

LossOf = Callable[[Tensor, np.random.Generator], Tensor]
"""From the numbers of a batch's samples (int64 [N], on the device), and the generator of every random choice, to the
loss, a scalar. It is called under the autocast of the precision."""


def train_in_cycle(
    model: nn.Module, samples: int, row: Model, seed: int, device: torch.device, precision: str | None, loss_of: LossOf
) -> None:
    """Trains a model in place, where it is, and leaves it in evaluation mode.

    `samples`: how many there are; `row`: says rate, batch and epochs; `precision`: None: the usual one of the device.
    """
    mixed = MixedPrecision(precision, device)
    order = np.random.default_rng(seed)
    optimiser = torch.optim.AdamW(model.parameters(), lr=row.training_rate, weight_decay=WEIGHT_DECAY)
    batches = samples // row.training_batch
    steps = row.training_epochs * batches
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=row.training_rate, total_steps=steps)
    model.train()
    for _ in range(row.training_epochs):
        shuffled = torch.from_numpy(order.permutation(samples)).to(device)
        for chosen in torch.split(shuffled, row.training_batch)[:batches]:
            with mixed.casts():
                loss = loss_of(chosen, order)
            optimiser.zero_grad(set_to_none=True)
            mixed.backward(loss)
            mixed.step(optimiser)
            schedule.step()
    model.eval()
