# SPDX-License-Identifier: Apache-2.0
"""Files of spox, a builder, and of onnxslim, which rewrites a file."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import numpy as np
import onnx
import onnxslim
import spox
import spox.opset.ai.onnx.v21 as op
from made import made

SPOX = f"spox {version('spox')}"


@made("spox-scalar", SPOX, "a scalar input next to a matrix")
def _(path: Path) -> None:
    x, scale = spox.argument(spox.Tensor(np.float32, ("N", 6))), spox.argument(spox.Tensor(np.float32, ()))
    weight = op.const(np.ones((6, 2), np.float32))
    onnx.save(spox.build({"x": x, "scale": scale}, {"y": op.matmul(op.mul(x, scale), weight)}), path)


@made("spox-sequence", SPOX, "the input is a sequence of tensors")
def _(path: Path) -> None:
    x = spox.argument(spox.Sequence(spox.Tensor(np.float32, ("N", 3))))
    onnx.save(spox.build({"x": x}, {"y": op.concat_from_sequence(x, axis=0)}), path)


@made("spox-optional-output", SPOX, "outputs: a product, and a sequence")
def _(path: Path) -> None:
    x = spox.argument(spox.Tensor(np.float32, ("N", 6)))
    y = op.matmul(x, op.const(np.ones((6, 2), np.float32)))
    onnx.save(spox.build({"x": x}, {"y": y, "parts": op.split_to_sequence(y, axis=1)}), path)


@made("slimmed", f"onnxslim {version('onnxslim')}", "rewritten from a file of spox")
def _(path: Path) -> None:
    x = spox.argument(spox.Tensor(np.float32, ("N", 6)))
    weight = op.mul(op.const(np.ones((6, 2), np.float32)), op.const(np.float32(0.5)))
    onnx.save(onnxslim.slim(spox.build({"x": x}, {"y": op.relu(op.matmul(op.identity(x), weight))})), path)
