# SPDX-License-Identifier: Apache-2.0
"""Small nets of three tasks with data that they are right about, mostly: a text classifier, a segmentation net and a
regressor. Each writes `NAME.onnx` and `NAME.npz` into a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto

from tests.support.onnx_models import ints, model, node

Arrays = dict[str, npt.NDArray[Any]]
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64

VOCABULARY, WIDTH, TOKENS, CLASSES = 50, 16, 12, 3
TEXTS, IN_A_GROUP = 200, 5
SIDE = 16
FEATURES = 8


def write_text_classifier(folder: Path, tokens: int | str = "tokens") -> Arrays:
    """Two inputs, `ids` and `mask`; of two outputs `logits` is the second. Texts of five are of one group, and nine of
    ten are labelled as the model says. `tokens`: the length of sequences that the model takes, or the name of any."""
    draw = np.random.default_rng(0)
    weights = {
        "table": draw.normal(size=(VOCABULARY, WIDTH)).astype(np.float32),
        "head": draw.normal(size=(WIDTH, CLASSES)).astype(np.float32),
        "last": ints(2),
    }
    nodes = [
        node("Gather", "table ids", "embedded"),
        node("Cast", "mask", "kept", to=FLOAT),
        node("Unsqueeze", "kept last", "wide"),
        node("Mul", "embedded wide", "seen"),
        node("ReduceMean", "seen middle", "pooled", keepdims=0),
        node("MatMul", "pooled head", "logits"),
    ]
    inputs = [(name, INT64, ("batch", tokens)) for name in ("ids", "mask")]
    outputs = [("pooled", FLOAT, ("batch", WIDTH)), ("logits", FLOAT, ("batch", CLASSES))]
    onnx.save(model(nodes, inputs, outputs, weights | {"middle": ints(1)}), folder / "text.onnx")
    ids = draw.integers(0, VOCABULARY, (TEXTS, TOKENS))
    mask = (np.arange(TOKENS) < draw.integers(4, TOKENS + 1, (TEXTS, 1))).astype(np.int64)
    scores = (weights["table"][ids] * mask[..., np.newaxis]).mean(1) @ weights["head"]
    is_right = draw.random(TEXTS) < 0.9
    labels = np.where(is_right, scores.argmax(1), draw.integers(0, CLASSES, TEXTS))
    arrays = {"ids": ids, "mask": mask, "labels": labels, "groups": np.arange(TEXTS) // IN_A_GROUP}
    np.savez(folder / "text.npz", **arrays)
    return arrays


def write_segmenter(folder: Path) -> Arrays:
    """One convolution, [batch, 1, 16, 16] -> [batch, 3, 16, 16]; its own classes are the labels. It has arrays that
    train."""
    draw = np.random.default_rng(1)
    kernel = draw.normal(size=(CLASSES, 1, 3, 3)).astype(np.float32)
    x, y = ("batch", 1, SIDE, SIDE), ("batch", CLASSES, SIDE, SIDE)
    nodes = [node("Conv", "x kernel", "y", pads=[1, 1, 1, 1])]
    onnx.save(model(nodes, [("x", FLOAT, x)], [("y", FLOAT, y)], {"kernel": kernel}), folder / "segmenter.onnx")
    pixels = draw.normal(size=(30, 1, SIDE, SIDE)).astype(np.float32)
    padded = np.pad(pixels, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded[:, 0], (3, 3), axis=(1, 2))
    labels = np.einsum("nhwij,cij->nchw", windows, kernel[:, 0]).argmax(1).astype(np.uint8)
    arrays = {"x": pixels[:20], "train_x": pixels[20:], "labels": labels[:20]}
    np.savez(folder / "segmenter.npz", **arrays)
    return arrays


def write_regressor(folder: Path) -> Arrays:
    """Two layers, [batch, 8] -> [batch, 1]; labels [n] are its outputs with noise of a tenth."""
    draw = np.random.default_rng(2)
    first = draw.normal(size=(FEATURES, 16)).astype(np.float32)
    second = draw.normal(size=(16, 1)).astype(np.float32)
    nodes = [node("MatMul", "x first", "h"), node("Relu", "h", "r"), node("MatMul", "r second", "y")]
    shapes: Any = [("x", FLOAT, ("batch", FEATURES))], [("y", FLOAT, ("batch", 1))]
    onnx.save(model(nodes, *shapes, {"first": first, "second": second}), folder / "regressor.onnx")
    x = draw.normal(size=(100, FEATURES)).astype(np.float32)
    arrays: Arrays = {"x": x, "labels": (np.maximum(x @ first, 0) @ second)[:, 0] + 0.1 * draw.normal(size=100)}
    np.savez(folder / "regressor.npz", **arrays)
    return arrays


def sources(folder: Path, name: str) -> dict[str, Any]:
    """The factors of a case of `NAME.onnx` and `NAME.npz`, and the digests that a plan gives it."""
    from pybench.campaign.storage import sha256_of

    files = {"model": f"{name}.onnx", "data": f"{name}.npz"}
    digests = tuple(sorted((factor, sha256_of(folder / value)) for factor, value in files.items()))
    return {**files, "sources": digests}
