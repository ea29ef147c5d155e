# SPDX-License-Identifier: Apache-2.0
"""Files of paddle2onnx."""

from __future__ import annotations

from pathlib import Path

import paddle
import paddle2onnx
from made import made
from paddle import nn

PADDLE = f"paddle2onnx {paddle2onnx.__version__} of Paddle {paddle.__version__}"


def export(net: nn.Layer, shape: list[int], path: Path, dtype: str = "float32", **how: object) -> None:
    net.eval()
    inputs = [paddle.static.InputSpec(shape, dtype, name="x")]
    paddle.onnx.export(net, str(path.with_suffix("")), input_spec=inputs, **how)


@made("paddle-convolutions", PADDLE, "batch free, sizes of -1")
def _(path: Path) -> None:
    net = nn.Sequential(nn.Conv2D(3, 4, 3), nn.BatchNorm2D(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5))
    export(net, [-1, 3, 8, 8], path)


@made("paddle-any-size", PADDLE, "batch, height and width free, opset 16")
def _(path: Path) -> None:
    net = nn.Sequential(nn.Conv2D(3, 4, 3), nn.Hardswish(), nn.AdaptiveAvgPool2D(1), nn.Flatten(), nn.Linear(4, 2))
    export(net, [-1, 3, -1, -1], path, opset_version=16)


@made("paddle-ids", PADDLE, "int64 ids")
def _(path: Path) -> None:
    export(nn.Sequential(nn.Embedding(20, 6), nn.Linear(6, 2)), [-1, -1], path, "int64")
