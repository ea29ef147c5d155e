# SPDX-License-Identifier: Apache-2.0
"""A small convolutional network for 8x8 grey digits: 25,978 parameters, trained in seconds on a CPU.

Small enough to be trained anew in a campaign, yet built like its large relatives: convolution, batch norm that folds
into it, ReLU, pooling, linear head. So quantising it does what quantising them does. N: samples of a batch.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class DigitsCnn(nn.Module):
    """[N, 1, size, size] with values in [0, 1] -> logits [N, classes]; shapes in comments are for a size of 8."""

    def __init__(self, classes: int = 10, size: int = 8) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(32)
        self.conv3 = nn.Conv2d(32, 64, 3, padding=1, bias=False)
        self.bn3 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.pool = nn.MaxPool2d(2)
        self.fc = nn.Linear(64 * (size // 4) ** 2, classes)

    def forward(self, images: Tensor) -> Tensor:
        x = self.relu(self.bn1(self.conv1(images)))  # [N, 16, 8, 8]
        x = self.relu(self.bn2(self.conv2(x)))  # [N, 32, 8, 8]
        x = self.pool(x)  # [N, 32, 4, 4]
        x = self.relu(self.bn3(self.conv3(x)))  # [N, 64, 4, 4]
        x = self.pool(x)  # [N, 64, 2, 2]
        logits: Tensor = self.fc(torch.flatten(x, 1))  # [N, 10]
        return logits
