# SPDX-License-Identifier: Apache-2.0
"""3D U-Net (Cicek et al. 2016, arXiv:1606.06650): volumes in, a class for each voxel out; 19,072,899 parameters.

The paper's widths and steps: two 3x3x3 convolutions with batch norm a level, channels doubled before each pooling,
2x2x2 up-convolutions, concatenation. With the paper's three input channels its convolutions have the paper's 19,069,955
parameters; here volumes have one, as computed tomography has. Convolutions are padded, so that a volume keeps its size,
where the paper's shrink it. N: samples of a batch; D, H, W: multiples of 8.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

WIDTH = 32  # channels of the first convolution
SMALL_WIDTH = 4  # of `unet3d-small`
LEVELS = 3  # halvings


class ConvolutionPair(nn.Module):
    """Two convolutions with batch norm; [N, inputs, D, H, W] -> [N, outputs, D, H, W]."""

    def __init__(self, inputs: int, between: int, outputs: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv3d(inputs, between, 3, padding=1)
        self.bn1 = nn.BatchNorm3d(between)
        self.conv2 = nn.Conv3d(between, outputs, 3, padding=1)
        self.bn2 = nn.BatchNorm3d(outputs)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(self.bn1(self.conv1(x)))
        out: Tensor = self.relu(self.bn2(self.conv2(x)))
        return out


class Unet3d(nn.Module):
    """[N, channels, D, H, W] -> logits [N, classes, D, H, W]."""

    def __init__(self, classes: int = 3, channels: int = 1, width: int = WIDTH) -> None:
        super().__init__()
        widths = [width * 2**level for level in range(LEVELS + 2)]  # 32, 64, 128, 256, 512
        self.down = nn.ModuleList(
            ConvolutionPair(channels if level == 0 else widths[level], widths[level], widths[level + 1])
            for level in range(LEVELS + 1)
        )
        self.pool = nn.MaxPool3d(2)
        self.widen = nn.ModuleList(
            nn.ConvTranspose3d(widths[level + 2], widths[level + 2], 2, stride=2, bias=False)
            for level in reversed(range(LEVELS))
        )
        self.up = nn.ModuleList(
            ConvolutionPair(widths[level + 2] + widths[level + 1], widths[level + 1], widths[level + 1])
            for level in reversed(range(LEVELS))
        )
        self.head = nn.Conv3d(widths[1], classes, 1)
        for module in self.modules():
            if isinstance(module, nn.Conv3d):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")

    def forward(self, volumes: Tensor) -> Tensor:
        kept: list[Tensor] = []
        x = volumes
        for level, pair in enumerate(self.down):
            x = pair(x if level == 0 else self.pool(x))  # [N, 64 2^level, D/2^level, ...]
            kept.append(x)
        for widen, pair, beside in zip(self.widen, self.up, reversed(kept[:-1]), strict=True):
            x = pair(torch.cat((beside, widen(x)), 1))
        logits: Tensor = self.head(x)
        return logits


def small(classes: int) -> Unet3d:
    """The same network with an eighth of the channels, which a CPU trains within a minute."""
    return Unet3d(classes, width=SMALL_WIDTH)
