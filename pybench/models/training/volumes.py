# SPDX-License-Identifier: Apache-2.0
"""Training of a 3D U-Net on `nested-volumes`: cross-entropy plus soft Dice (Milletari et al. 2016, arXiv:1606.04797).

Volumes are mirrored at random. Without the Dice term the inner body, a hundredth of the voxels, is learned last.
Channels last, which halves a step on a CPU. Under bfloat16 autocast not bit-reproducible, on a CPU neither.
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
from pybench.models.training.cycle import train_in_cycle
from pybench.models.training.trained import Trained, device_name, training_device
from pybench.models.volumes import open_volumes


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
    """Trains in place and leaves the model on `device` in evaluation mode.

    `precision`: of the steps; None: the usual one of the device.
    """
    everything = np.arange(len(volumes))
    values = torch.from_numpy(volumes.load(everything)).to(device)  # [N, 1, D, D, D]
    labels = torch.from_numpy(volumes.truth(everything).astype(np.int64)).to(device)  # [N, D, D, D]
    model.to(device=device, memory_format=torch.channels_last_3d)  # type: ignore[call-overload]

    def loss_of(chosen: Tensor, order: np.random.Generator) -> Tensor:
        mirrored = [axis for axis in (1, 2, 3) if order.random() < 0.5]
        inputs = values[chosen].flip([axis + 1 for axis in mirrored])
        scores = model(inputs.contiguous(memory_format=torch.channels_last_3d))
        return dice_and_entropy(scores, labels[chosen].flip(mirrored))

    train_in_cycle(model, len(volumes), row, seed, device, precision, loss_of)


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
