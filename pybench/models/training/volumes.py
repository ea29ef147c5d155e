# SPDX-License-Identifier: Apache-2.0
"""Training of a 3D U-Net on `nested-volumes`: cross-entropy plus soft Dice (Milletari et al. 2016, arXiv:1606.04797).

AdamW with one cycle of the learning rate; volumes are shuffled in each epoch and mirrored at random. Without the Dice
term the inner body, a hundredth of the voxels, is learned last. Channels last, which halves a step on a CPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from pybench.catalogue.models import Model
from pybench.models.building import build
from pybench.models.samples import Samples
from pybench.models.training.mixed import MixedPrecision
from pybench.models.training.trained import Trained, device_name, training_device
from pybench.models.volumes import open_volumes

WEIGHT_DECAY = 0.01


def train_on_volumes(row: Model, parameters: Mapping[str, Any]) -> Trained:
    """A network trained on the volumes that do not judge, with its Dice on those that do."""
    device, seed = training_device(row, parameters["trained_on"]), parameters["seed"]
    torch.set_num_threads(1)  # the order of sums must not depend on the machine, and small volumes gain nothing
    volumes, judges = open_volumes("train", row), open_volumes("validation", row)
    model = build(row, seed=seed, outputs=len(volumes.classes))
    train_volumes(model, volumes, row, seed, device, parameters.get("trained_in"))
    labels = {
        "device": device_name(device),
        "volumes": len(volumes),
        "epochs": row.training_epochs,
    }
    return Trained(model, {"dice_percent": mean_dice(model, judges, device)}, len(judges), labels)


def train_volumes(
    model: nn.Module, volumes: Samples, row: Model, seed: int, device: torch.device, precision: str | None = None
) -> None:
    """Trains in place and leaves the model on `device` in evaluation mode. The last, incomplete batch is left out.

    `precision`: of the steps; None: the usual one of the device.
    """
    mixed = MixedPrecision(precision, device)
    everything = np.arange(len(volumes))
    values = torch.from_numpy(volumes.load(everything)).to(device)  # [N, 1, D, D, D]
    labels = torch.from_numpy(volumes.truth(everything).astype(np.int64)).to(device)  # [N, D, D, D]
    model.to(device=device, memory_format=torch.channels_last_3d).train()  # type: ignore[call-overload]
    order = np.random.default_rng(seed)
    optimiser = torch.optim.AdamW(model.parameters(), lr=row.training_rate, weight_decay=WEIGHT_DECAY)
    batches = len(volumes) // row.training_batch
    steps = row.training_epochs * batches
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=row.training_rate, total_steps=steps)
    for _ in range(row.training_epochs):
        shuffled = torch.from_numpy(order.permutation(len(volumes))).to(device)
        for chosen in torch.split(shuffled, row.training_batch)[:batches]:
            mirrored = [axis for axis in (1, 2, 3) if order.random() < 0.5]
            inputs = values[chosen].flip([axis + 1 for axis in mirrored])
            with mixed.casts():
                scores = model(inputs.contiguous(memory_format=torch.channels_last_3d))
                loss = dice_and_entropy(scores, labels[chosen].flip(mirrored))
            optimiser.zero_grad(set_to_none=True)
            mixed.backward(loss)
            mixed.step(optimiser)
            schedule.step()
    model.eval()


def dice_and_entropy(scores: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy plus 1 minus the mean soft Dice of the classes but the background; a scalar.

    `scores`: [N, classes, D, D, D]; `labels`: int64 [N, D, D, D].
    """
    shares = scores.float().softmax(1)[:, 1:]
    truth = functional.one_hot(labels, scores.shape[1]).movedim(-1, 1)[:, 1:].float()
    both, either = (shares * truth).sum((0, 2, 3, 4)), (shares + truth).sum((0, 2, 3, 4))
    return functional.cross_entropy(scores.float(), labels) + 1 - (2 * both / (either + 1)).mean()


def mean_dice(model: nn.Module, volumes: Samples, device: torch.device) -> float:
    """Dice in percent, in FP32: mean over the classes but the background, then over volumes, each of which has all."""
    found = []
    for i in range(len(volumes)):
        with torch.inference_mode():
            scores = model(torch.from_numpy(volumes.load(np.array([i]))).to(device))
        predicted, truth = scores.argmax(1).cpu().numpy(), volumes.truth(np.array([i]))
        for label in range(1, len(volumes.classes)):
            mine, true = predicted == label, truth == label
            found.append(2 * (mine & true).sum() / max(1, mine.sum() + true.sum()))
    return 100 * float(np.mean(found))
