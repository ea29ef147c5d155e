# SPDX-License-Identifier: Apache-2.0
"""MobileNet at width 1: v1 (Howard et al. 2017, arXiv:1704.04861) and v2 (Sandler et al. 2018, arXiv:1801.04381).

v1: 4,231,976 parameters, names equal timm's `mobilenetv1_100` (ReLU6). v2: 3,504,872 parameters, names equal
torchvision's `mobilenet_v2`. Depthwise convolutions have one filter a channel, so that per-channel ranges matter to
them more than to any other model here. Left out: other widths, and v1's other activations. N: samples of a batch.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

# v1: stages of (blocks, channels); the first block of every stage but the first halves the image.
STAGES_V1 = ((1, 64), (2, 128), (2, 256), (6, 512), (2, 1024))
# v2, its table 2: expansion, channels, blocks, stride of the first block.
STAGES_V2 = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


class SeparableBlock(nn.Module):
    """3x3 for each channel, then 1x1 across them; [N, inputs, H, W] -> [N, outputs, H/stride, W/stride]."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv_dw = nn.Conv2d(inputs, inputs, 3, stride, padding=1, groups=inputs, bias=False)
        self.bn1 = nn.BatchNorm2d(inputs)
        self.conv_pw = nn.Conv2d(inputs, outputs, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.act = nn.ReLU6(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        y = self.act(self.bn1(self.conv_dw(x)))  # [N, inputs, H/stride, W/stride]
        out: Tensor = self.act(self.bn2(self.conv_pw(y)))
        return out


class MobileNetV1(nn.Module):
    """[N, 3, 224, 224] -> logits [N, classes]."""

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        self.conv_stem = nn.Conv2d(3, 32, 3, stride=2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(32)
        self.act = nn.ReLU6(inplace=True)
        stages, inputs = [], 32
        for number, (blocks, channels) in enumerate(STAGES_V1):
            stage = []
            for block in range(blocks):
                stage.append(SeparableBlock(inputs, channels, stride=2 if number > 0 and block == 0 else 1))
                inputs = channels
            stages.append(nn.Sequential(*stage))
        self.blocks = nn.Sequential(*stages)
        self.global_pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(1024, classes)
        _initialise(self)

    def forward(self, images: Tensor) -> Tensor:
        x = self.act(self.bn1(self.conv_stem(images)))  # [N, 32, 112, 112]
        x = self.global_pool(self.blocks(x))  # [N, 1024, 1, 1]
        logits: Tensor = self.classifier(torch.flatten(x, 1))  # [N, classes]
        return logits


class InvertedResidual(nn.Module):
    """1x1 expand, 3x3 for each channel, 1x1 reduce without activation, beside a shortcut where the shapes allow it."""

    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int) -> None:
        super().__init__()
        hidden = inputs * expansion
        layers: list[nn.Module] = [] if expansion == 1 else [_convolution(inputs, hidden, 1)]
        layers += [
            _convolution(hidden, hidden, 3, stride, groups=hidden),
            nn.Conv2d(hidden, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
        ]
        self.conv = nn.Sequential(*layers)
        self.shortcut = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.conv(x)
        return x + y if self.shortcut else y


class MobileNetV2(nn.Module):
    """[N, 3, 224, 224] -> logits [N, classes]."""

    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        layers: list[nn.Module] = [_convolution(3, 32, 3, stride=2)]
        inputs = 32
        for expansion, channels, blocks, stride in STAGES_V2:
            for block in range(blocks):
                layers.append(InvertedResidual(inputs, channels, stride if block == 0 else 1, expansion))
                inputs = channels
        layers.append(_convolution(inputs, 1280, 1))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, classes))
        _initialise(self)

    def forward(self, images: Tensor) -> Tensor:
        x = self.features(images)  # [N, 1280, 7, 7]
        x = nn.functional.adaptive_avg_pool2d(x, 1)  # [N, 1280, 1, 1]
        logits: Tensor = self.classifier(torch.flatten(x, 1))  # [N, classes]
        return logits


def _convolution(inputs: int, outputs: int, size: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU6(inplace=True),
    )


def _initialise(model: nn.Module) -> None:
    """He's normal distribution (fan out) for convolutions, deviation 0.01 for linear layers.

    A depthwise filter feeds one channel, so its fan is its group's, as timm counts it. Counted over all channels, as
    torchvision does, untrained outputs vanish (1e-18 of the input's size in v1) and nothing can be compared on them.
    """
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            fan_out = module.kernel_size[0] * module.kernel_size[1] * module.out_channels // module.groups
            nn.init.normal_(module.weight, std=(2 / fan_out) ** 0.5)
        elif isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=0.01)
            nn.init.zeros_(module.bias)
