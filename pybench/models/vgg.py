# SPDX-License-Identifier: Apache-2.0
"""VGG16 (Simonyan and Zisserman 2014, arXiv:1409.1556, configuration D), for ImageNet and for CIFAR-10.

`vgg16`: no batch norm, three linear layers, 138,357,544 parameters; names equal torchvision's `vgg16`. For images of
another size than 224 nothing is pooled to 7x7, which would be exported as a chain of Gathers. The first linear layer
then has as many inputs as the features (512 at 48). `vgg16-cifar10`: 32x32 images, batch norm after each convolution
(Ioffe and Szegedy 2015) and one linear layer, 14,728,266 parameters: what is usually meant by VGG16 on CIFAR-10; its
features are named as torchvision's `vgg16_bn`. N: samples of a batch.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

# Channels of each convolution; None: pooling halves the image.
CONFIGURATION_D: tuple[int | None, ...] = (
    64, 64, None, 128, 128, None, 256, 256, 256, None, 512, 512, 512, None, 512, 512, 512, None,
)  # fmt: skip


PUBLISHED_SIZE = 224
POOLINGS = 5  # each halves the image, rounded down


class Vgg16(nn.Module):
    """[N, 3, size, size] -> logits [N, classes]."""

    def __init__(self, classes: int = 1000, size: int = PUBLISHED_SIZE) -> None:
        super().__init__()
        self.features = _features(batch_norm=False)
        self.avgpool: nn.Module = nn.AdaptiveAvgPool2d(7) if size == PUBLISHED_SIZE else nn.Identity()
        self.classifier = nn.Sequential(
            nn.Linear(_features_count(size), 4096),
            nn.ReLU(inplace=True),
            nn.Dropout(),
            nn.Linear(4096, 4096),
            nn.ReLU(inplace=True),
            nn.Dropout(),
            nn.Linear(4096, classes),
        )
        _initialise(self)

    def forward(self, images: Tensor) -> Tensor:
        x = self.avgpool(self.features(images))  # [N, 512, size / 32, size / 32]; at 224 [N, 512, 7, 7]
        logits: Tensor = self.classifier(torch.flatten(x, 1))  # [N, classes]
        return logits


class Vgg16Cifar10(nn.Module):
    """[N, 3, size, size] -> logits [N, classes]."""

    def __init__(self, classes: int = 10, size: int = 32) -> None:
        super().__init__()
        self.features = _features(batch_norm=True)
        self.classifier = nn.Linear(_features_count(size), classes)
        _initialise(self)

    def forward(self, images: Tensor) -> Tensor:
        x = self.features(images)  # [N, 512, size / 32, size / 32]
        logits: Tensor = self.classifier(torch.flatten(x, 1))  # [N, classes]
        return logits


def _features_count(size: int) -> int:
    """How many numbers the features of an image have."""
    side: int = size >> POOLINGS
    return 512 * side * side


def _features(batch_norm: bool) -> nn.Sequential:
    layers: list[nn.Module] = []
    inputs = 3
    for channels in CONFIGURATION_D:
        if channels is None:
            layers.append(nn.MaxPool2d(2))
            continue
        layers.append(nn.Conv2d(inputs, channels, 3, padding=1))
        if batch_norm:
            layers.append(nn.BatchNorm2d(channels))
        layers.append(nn.ReLU(inplace=True))
        inputs = channels
    return nn.Sequential(*layers)


def _initialise(model: nn.Module) -> None:
    """He's normal distribution (fan out) for convolutions, deviation 0.01 for linear layers: as torchvision does."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=0.01)
            nn.init.zeros_(module.bias)
