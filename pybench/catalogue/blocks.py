# SPDX-License-Identifier: Apache-2.0
"""The blocks that a `stack` is made of: a row for each. Their order is that of lists for people.

All of them take and give as many channels at as many positions, so that one stack differs from another in them alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pybench.catalogue.rows import Rows

PATCH = 4  # height and width of the pixels that become one position
WIDTH_STEP = 32  # channels of one attention head; a bottleneck needs a multiple of 4


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockType:
    """One kind of block.

    name: as plans name it
    meaning: what it computes, in a phrase for plans' authors
    build: `module:callable`, from the number of channels to a torch module
    squared, linear, paired: multiply-adds of one position: squared * width**2 + linear * width, and paired * width for
        each position that it looks at
    """

    name: str
    meaning: str
    build: str
    squared: float
    linear: float = 0.0
    paired: float = 0.0

    def multiply_adds(self, width: int, positions: int) -> float:
        """Of one sample in one block."""
        return positions * (self.squared * width**2 + self.linear * width + self.paired * width * positions)


_ROWS = (
    BlockType(name="conv", meaning="a 3x3 convolution", build="pybench.models.stack:ConvBlock", squared=9),
    BlockType(
        name="bottleneck",
        meaning="ResNet's 1x1, 3x3 and 1x1 convolution on a quarter of the channels, with a shortcut",
        build="pybench.models.stack:BottleneckBlock",
        squared=1 / 4 + 9 / 16 + 1 / 4,
    ),
    BlockType(
        name="depthwise",
        meaning="MobileNet's 3x3 convolution within each channel, then a 1x1 convolution",
        build="pybench.models.stack:DepthwiseBlock",
        squared=1,
        linear=9,
    ),
    BlockType(
        name="attention",
        meaning="the attention half of a transformer's block",
        build="pybench.models.stack:AttentionBlock",
        squared=4,
        paired=2,
    ),
    BlockType(
        name="mlp",
        meaning="the other half of a transformer's block: two linear layers",
        build="pybench.models.stack:FeedForwardBlock",
        squared=8,
    ),
)

BLOCKS = Rows("block type", _ROWS)


def stack_multiply_adds(shape: Sequence[int], outputs: int, arguments: Mapping[str, str | int]) -> float:
    """Of one sample of shape [channels, height, width] in a stack of `block_type`, `depth` and `width`."""
    width, depth = int(arguments["width"]), int(arguments["depth"])
    positions = (shape[1] // PATCH) * (shape[2] // PATCH)
    stem = positions * shape[0] * PATCH**2 * width
    return stem + depth * BLOCKS[str(arguments["block_type"])].multiply_adds(width, positions) + width * outputs
