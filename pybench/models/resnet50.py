# SPDX-License-Identifier: Apache-2.0
"""ResNet-50 v1.5 (He et al. 2015, arXiv:1512.03385; stride in the 3x3 convolution), 25,557,032 parameters.

Parameter names equal torchvision's, so that its `state_dict` loads. Leaves out everything else of torchvision: other
depths, groups, dilation, zero-initialised residuals, downloads. N: samples of a batch.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

EXPANSION = 4  # a bottleneck's output has four times the channels of its 3x3 convolution


class Bottleneck(nn.Module):
    """1x1 reduce, 3x3, 1x1 expand, beside a shortcut; [N, inputs, H, W] -> [N, 4 width, H/stride, W/stride]."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = width * EXPANSION
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample: nn.Sequential | None = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x if self.downsample is None else self.downsample(x)
        y = self.relu(self.bn1(self.conv1(x)))  # [N, width, H, W]
        y = self.relu(self.bn2(self.conv2(y)))  # [N, width, H/stride, W/stride]
        y = self.bn3(self.conv3(y))  # [N, 4 width, H/stride, W/stride]
        out: Tensor = self.relu(y + shortcut)
        return out


class ResNet50(nn.Module):
    """[N, 3, 224, 224] -> logits [N, classes]; convolutions start from He's normal distribution (fan out)."""

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = _stage(64, 64, blocks=3, stride=1)
        self.layer2 = _stage(256, 128, blocks=4, stride=2)
        self.layer3 = _stage(512, 256, blocks=6, stride=2)
        self.layer4 = _stage(1024, 512, blocks=3, stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(2048, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Tensor) -> Tensor:
        x = self.relu(self.bn1(self.conv1(images)))  # [N, 64, 112, 112]
        x = self.maxpool(x)  # [N, 64, 56, 56]
        x = self.layer1(x)  # [N, 256, 56, 56]
        x = self.layer2(x)  # [N, 512, 28, 28]
        x = self.layer3(x)  # [N, 1024, 14, 14]
        x = self.layer4(x)  # [N, 2048, 7, 7]
        x = torch.flatten(self.avgpool(x), 1)  # [N, 2048]
        logits: Tensor = self.fc(x)  # [N, classes]
        return logits


def _stage(inputs: int, width: int, blocks: int, stride: int) -> nn.Sequential:
    rest = [Bottleneck(width * EXPANSION, width, stride=1) for _ in range(blocks - 1)]
    return nn.Sequential(Bottleneck(inputs, width, stride), *rest)
