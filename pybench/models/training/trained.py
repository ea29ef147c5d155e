# SPDX-License-Identifier: Apache-2.0
"""What the training of a data set gives back, and where it may run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from pybench.catalogue.causes import Cause
from pybench.catalogue.models import Model
from pybench.errors import UnsupportedError


@dataclass(frozen=True, slots=True)
class Trained:
    """A model with its weights, and how good it is in FP32.

    scores: metric -> value, on samples that did not train it
    judged: how many samples that were
    labels: further facts, which the making of the artefact stores
    """

    model: nn.Module
    scores: Mapping[str, float]
    judged: int
    labels: Mapping[str, Any] = field(default_factory=dict)


def training_device(row: Model, data_set: str) -> torch.device:
    """The first GPU, else the CPU. Raises UnsupportedError (`no_gpu`) for a model that a CPU would take days for."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device.type == "cpu" and not row.trains_on_cpu:
        raise UnsupportedError(
            f"training {row.name} on {data_set} needs a GPU",
            code=Cause.NO_GPU,
            hint="give `checkpoint` a file of weights",
        )
    return device


def device_name(device: torch.device) -> str:
    """What a training stores of where it ran: the name of the GPU, or `cpu`."""
    return torch.cuda.get_device_name() if device.type == "cuda" else "cpu"
