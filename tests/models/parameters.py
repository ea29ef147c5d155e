# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from torch import nn


def parameter_count(model: nn.Module) -> int:
    """Trainable numbers of a model."""
    return sum(parameter.numel() for parameter in model.parameters())
