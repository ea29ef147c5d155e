# SPDX-License-Identifier: Apache-2.0
"""A small network of linear layers: 64 numbers in, 10 classes out, 85,002 parameters.

Its passes take microseconds, so that what is measured is the launch: the lower end of every comparison.
"""

from __future__ import annotations

from torch import Tensor, nn


class Mlp(nn.Module):
    """[N, 64] -> logits [N, classes]."""

    def __init__(self, classes: int = 10, inputs: int = 64, width: int = 256) -> None:
        super().__init__()
        self.fc1 = nn.Linear(inputs, width)
        self.fc2 = nn.Linear(width, width)
        self.fc3 = nn.Linear(width, classes)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, vectors: Tensor) -> Tensor:
        x = self.relu(self.fc1(vectors))
        x = self.relu(self.fc2(x))
        logits: Tensor = self.fc3(x)
        return logits
