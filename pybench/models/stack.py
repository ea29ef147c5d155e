# SPDX-License-Identifier: Apache-2.0
"""A stack of equal blocks: what a compiler does to one architecture, by depth and width.

Images of 64x64 are cut into patches of 4x4; each becomes a position with `width` channels. `depth` blocks of one type
follow, then a mean over positions and a linear layer. Stem and head are the same for every type of block.
Blocks are those of VGG (with batch norm), ResNet (He et al. 2015), MobileNet (Howard et al. 2017) and the pre-norm
transformer. It has random weights only: it is there to be timed.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from pybench.catalogue.blocks import BLOCKS, PATCH, WIDTH_STEP
from pybench.catalogue.code import named_code


class ConvBlock(nn.Module):
    """[N, width, H, W] -> the same shape, as the next two."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(width)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.bn(self.conv(x)))


class BottleneckBlock(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        inner = width // 4
        self.conv1, self.bn1 = nn.Conv2d(width, inner, 1, bias=False), nn.BatchNorm2d(inner)
        self.conv2, self.bn2 = nn.Conv2d(inner, inner, 3, padding=1, bias=False), nn.BatchNorm2d(inner)
        self.conv3, self.bn3 = nn.Conv2d(inner, width, 1, bias=False), nn.BatchNorm2d(width)

    def forward(self, x: Tensor) -> Tensor:
        y = functional.relu(self.bn1(self.conv1(x)))
        y = functional.relu(self.bn2(self.conv2(y)))
        return functional.relu(self.bn3(self.conv3(y)) + x)


class DepthwiseBlock(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv_dw, self.bn1 = nn.Conv2d(width, width, 3, padding=1, groups=width, bias=False), nn.BatchNorm2d(width)
        self.conv_pw, self.bn2 = nn.Conv2d(width, width, 1, bias=False), nn.BatchNorm2d(width)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.relu(self.bn1(self.conv_dw(x)))
        return functional.relu(self.bn2(self.conv_pw(x)))


class AttentionBlock(nn.Module):
    """[N, width, H, W] -> the same shape; inside it is [N, positions, width], as in the next one."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = width // WIDTH_STEP
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        positions = _as_positions(x)
        parts = self.qkv(self.norm(positions)).unflatten(-1, (3, self.heads, WIDTH_STEP))
        query, key, value = (part.transpose(1, 2) for part in parts.unbind(2))  # [N, heads, positions, WIDTH_STEP]
        mixed = functional.scaled_dot_product_attention(query, key, value)
        positions = positions + self.out(mixed.transpose(1, 2).flatten(2))
        return _as_images(positions, x.shape)


class FeedForwardBlock(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        positions = _as_positions(x)
        positions = positions + self.down(functional.gelu(self.up(self.norm(positions))))
        return _as_images(positions, x.shape)


def _as_positions(x: Tensor) -> Tensor:
    """[N, width, H, W] -> [N, H * W, width]."""
    return x.flatten(2).transpose(1, 2)


def _as_images(positions: Tensor, shape: torch.Size) -> Tensor:
    """The inverse; `shape`: [N, width, H, W]."""
    return positions.transpose(1, 2).reshape(shape)


class Stack(nn.Module):
    """[N, 3, H, W] -> logits [N, classes]; H and W are multiples of `PATCH`."""

    def __init__(self, classes: int, *, block_type: str, depth: int, width: int) -> None:
        super().__init__()
        block = named_code(BLOCKS[block_type].build)
        self.stem = nn.Conv2d(3, width, PATCH, stride=PATCH)
        self.blocks = nn.Sequential(*(block(width) for _ in range(depth)))
        self.head = nn.Linear(width, classes)

    def forward(self, images: Tensor) -> Tensor:
        positions = self.blocks(self.stem(images))
        logits: Tensor = self.head(positions.mean((2, 3)))
        return logits
