# SPDX-License-Identifier: Apache-2.0
"""Small ONNX graphs by hand for the tests of precision, each with what makes one rule visible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from pybench.precision.execution import open_model
from pybench.precision.network import as_network
from pybench.precision.placement import calibrated_tensors
from tests.support import onnx_models

CHANNELS = 32


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Sequence[int | str]],
    outputs: Mapping[str, Sequence[int | str] | None],
    constants: Mapping[str, np.ndarray],
    opset: int = 20,
) -> onnx.ModelProto:
    """A checked model with FP32 inputs and outputs."""
    fed = [(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()]
    written = [(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()]
    made = onnx_models.model(nodes, fed, written, dict(constants), opset=opset)
    onnx.checker.check_model(made, full_check=True)
    return made


def residual_block(channels: int = CHANNELS) -> onnx.ModelProto:
    """Two blocks as in ResNet, the first with a down-sampling convolution; then mean, flattening, head.

    x -> stem -> relu s -> [a1 relu a2] + [d] -> relu r1 -> [b1 relu b2] + r1 -> relu r2 -> mean -> flat -> head
    """
    generator = np.random.default_rng(0)
    constants = {"axes": np.array([2, 3]), "shape": np.array([-1, channels])}

    def convolution(name: str, source: str, inputs: int, kernel: int = 1) -> onnx.NodeProto:
        weight = generator.standard_normal((channels, inputs, kernel, kernel)) / (kernel * inputs**0.5)
        constants[f"{name}.weight"] = weight.astype(np.float32)
        constants[f"{name}.bias"] = (0.1 * generator.standard_normal(channels)).astype(np.float32)
        inner = [source, f"{name}.weight", f"{name}.bias"]
        pads = [kernel // 2] * 4
        return helper.make_node("Conv", inner, [f"{name}_out"], name, pads=pads)

    def node(op: str, inputs: list[str], output: str, **attributes: int) -> onnx.NodeProto:
        return helper.make_node(op, inputs, [output], f"node_{output}", **attributes)

    nodes = [
        convolution("stem", "x", 3, 3), node("Relu", ["stem_out"], "s"),
        convolution("d", "s", channels), convolution("a1", "s", channels),
        node("Relu", ["a1_out"], "a"), convolution("a2", "a", channels, 3),
        node("Add", ["a2_out", "d_out"], "sum1"), node("Relu", ["sum1"], "r1"),
        convolution("b1", "r1", channels, 3), node("Relu", ["b1_out"], "b"), convolution("b2", "b", channels),
        node("Add", ["b2_out", "r1"], "sum2"), node("Relu", ["sum2"], "r2"),
        node("ReduceMean", ["r2", "axes"], "mean", keepdims=1), node("Reshape", ["mean", "shape"], "flat"),
        helper.make_node("Gemm", ["flat", "head.weight", "head.bias"], ["y"], "head", transB=1),
    ]  # fmt: skip
    constants["head.weight"] = generator.standard_normal((10, channels)).astype(np.float32)
    constants["head.bias"] = generator.standard_normal(10).astype(np.float32)
    return model(nodes, {"x": ["n", 3, 8, 8]}, {"y": ["n", 10]}, constants)


def attention() -> onnx.ModelProto:
    """One head over [n, 4, 16]: norm, three products, scores with a mask of -inf, softmax, sum, residual add."""
    generator = np.random.default_rng(1)
    weights = {name: generator.standard_normal((16, 16)).astype(np.float32) / 4 for name in ("wq", "wk", "wv")}
    mask = np.triu(np.full((4, 4), -np.inf, np.float32), 1)
    constants = {**weights, "gain": np.ones(16, np.float32), "mask": mask}
    nodes = [
        helper.make_node("LayerNormalization", ["x", "gain"], ["h"], "norm", axis=-1, epsilon=1e-5),
        *[helper.make_node("MatMul", ["h", f"w{one}"], [one], f"project_{one}") for one in "qkv"],
        helper.make_node("Transpose", ["k"], ["kt"], "turn", perm=[0, 2, 1]),
        helper.make_node("MatMul", ["q", "kt"], ["scores"], "product_scores"),
        helper.make_node("Add", ["scores", "mask"], ["masked"], "add_mask"),
        helper.make_node("Softmax", ["masked"], ["p"], "softmax"),
        helper.make_node("MatMul", ["p", "v"], ["mixed"], "product_values"),
        helper.make_node("Add", ["mixed", "x"], ["y"], "residual"),
    ]
    return model(nodes, {"x": ["n", 4, 16]}, {"y": ["n", 4, 16]}, constants)


def two_products() -> onnx.ModelProto:
    """A convolution without a name, and a product that onnxruntime fuses with the Add behind it."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], ""),
        helper.make_node("Flatten", ["c"], ["flat"], "flatten"),
        helper.make_node("MatMul", ["flat", "v"], ["p"], "product"),
        helper.make_node("Add", ["p", "bias"], ["y"], "plus"),
    ]
    generator = np.random.default_rng(0)
    constants = {
        name: generator.standard_normal(shape).astype(np.float32)
        for name, shape in {"w": (4, 3, 1, 1), "v": (64, 5), "bias": (5,)}.items()
    }
    return model(nodes, {"x": ["n", 3, 4, 4]}, {"y": ["n", 5]}, constants)


def images(shape: Sequence[int], seed: int = 0) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(seed).standard_normal(shape).astype(np.float32)}


def saved(made: onnx.ModelProto, path: Path) -> Path:
    onnx.save(made, path)
    return path


def pooled(
    window: int, size: int, *, dimensions: int = 2, outputs: Sequence[str] = ("y",), **attributes: Any
) -> onnx.ModelProto:
    """x -> first -> relu a -> MaxPool p -> second -> y, for images of `size`; windows side by side unless told."""
    generator = np.random.default_rng(0)
    weights = {
        f"{name}.weight": (generator.standard_normal((CHANNELS, CHANNELS, *[1] * dimensions)) / CHANNELS**0.5).astype(
            np.float32
        )
        for name in ("first", "second")
    }
    given = {"kernel_shape": [window] * dimensions, "strides": [window] * dimensions, "auto_pad": "NOTSET"} | attributes
    nodes = [
        helper.make_node("Conv", ["x", "first.weight"], ["first_out"], "first"),
        helper.make_node("Relu", ["first_out"], ["a"], "relu"),
        helper.make_node("MaxPool", ["a"], ["p"], "pool", **given),
        helper.make_node("Conv", ["p", "second.weight"], ["y"], "second"),
    ]
    free = ["depth", "rows", "columns"][-dimensions:]
    shapes = {"y": ["n", CHANNELS, *free], "a": ["n", CHANNELS, *[size] * dimensions]}
    return model(nodes, {"x": shapes["a"]}, {name: shapes[name] for name in outputs}, weights)


def clipped(convolutions: int, size: int = 4) -> onnx.ModelProto:
    """x -> (conv1, clip to 0..6) -> (conv2, clip) ... -> mean -> flat -> head; much of it is above 6 unclipped."""
    generator = np.random.default_rng(0)
    constants = {"low": np.array(0, np.float32), "high": np.array(6, np.float32), "axes": np.array([2, 3])}
    constants["shape"] = np.array([-1, CHANNELS])
    constants["head.weight"] = (generator.standard_normal((CHANNELS, 10)) / CHANNELS**0.5).astype(np.float32)
    nodes, source = [], "x"
    for number in range(1, convolutions + 1):
        weight = 16 * generator.standard_normal((CHANNELS, CHANNELS, 3, 3)) / (9 * CHANNELS) ** 0.5
        constants[f"conv{number}.weight"] = weight.astype(np.float32)
        inputs, clipping = [source, f"conv{number}.weight"], [f"conv{number}_out", "low", "high"]
        nodes.append(helper.make_node("Conv", inputs, clipping[:1], f"conv{number}", pads=[1] * 4))
        source = f"c{number}"
        nodes.append(helper.make_node("Clip", clipping, [source], f"clip{number}"))
    nodes += [
        helper.make_node("ReduceMean", [source, "axes"], ["mean"], "mean"),
        helper.make_node("Reshape", ["mean", "shape"], ["flat"], "flat"),
        helper.make_node("MatMul", ["flat", "head.weight"], ["y"], "head"),
    ]
    return model(nodes, {"x": ["n", CHANNELS, size, size]}, {"y": ["n", 10]}, constants)


def clipped_summand(size: int = 4) -> onnx.ModelProto:
    """x -> first -> clip a -> second; a + second -> y."""
    generator = np.random.default_rng(0)
    constants = {"low": np.array(0, np.float32), "high": np.array(6, np.float32)}
    for name in ("first", "second"):
        weight = 4 * generator.standard_normal((CHANNELS, CHANNELS, 1, 1)) / CHANNELS**0.5
        constants[f"{name}.weight"] = weight.astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "first.weight"], ["first_out"], "first"),
        helper.make_node("Clip", ["first_out", "low", "high"], ["a"], "clip"),
        helper.make_node("Conv", ["a", "second.weight"], ["second_out"], "second"),
        helper.make_node("Add", ["second_out", "a"], ["y"], "add"),
    ]
    shape = ["n", CHANNELS, size, size]
    return model(nodes, {"x": shape}, {"y": shape}, constants)


def clipped_depthwise(size: int = 4) -> onnx.ModelProto:
    """x -> (depthwise, clip to 0..6) -> projection -> y, as in a MobileNet; much of it is above 6 unclipped."""
    generator = np.random.default_rng(0)
    constants = {"low": np.array(0, np.float32), "high": np.array(6, np.float32)}
    weights = {"depthwise": 16 * generator.standard_normal((CHANNELS, 1, 3, 3)) / 3}
    weights["projection"] = generator.standard_normal((CHANNELS, CHANNELS, 1, 1)) / CHANNELS**0.5
    constants |= {f"{name}.weight": weight.astype(np.float32) for name, weight in weights.items()}
    depthwise = {"pads": [1] * 4, "group": CHANNELS}
    nodes = [
        helper.make_node("Conv", ["x", "depthwise.weight"], ["depthwise_out"], "depthwise", **depthwise),
        helper.make_node("Clip", ["depthwise_out", "low", "high"], ["c"], "clip"),
        helper.make_node("Conv", ["c", "projection.weight"], ["y"], "projection"),
    ]
    shape = ["n", CHANNELS, size, size]
    return model(nodes, {"x": shape}, {"y": shape}, constants)


def ranges_of(made: onnx.ModelProto, feed: dict[str, np.ndarray]) -> dict[str, float]:
    """Largest magnitudes, by asking onnxruntime for every tensor."""
    exposed = onnx.ModelProto()
    exposed.CopyFrom(made)
    network = as_network(made)
    names = [name for name in calibrated_tensors(network) if name not in feed]
    exposed.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names)
    values = (
        dict(zip(names, open_model(exposed.SerializeToString()).run(feed)[len(made.graph.output) :], strict=True))
        | feed
    )
    return {name: float(np.abs(values[name]).max()) for name in calibrated_tensors(network)}


def skipped(dimensions: int) -> onnx.ModelProto:
    """One level of a U-Net: x -> down1 -> down2 = s -> pool -> bottom -> up; s beside up -> join -> head."""
    generator = np.random.default_rng(3)
    constants: dict[str, np.ndarray] = {}

    def convolution(name: str, source: str, inputs: int, op: str = "Conv", size: int = 3) -> onnx.NodeProto:
        weight = (
            generator.standard_normal((CHANNELS, inputs, *[size] * dimensions)) / (inputs * size**dimensions) ** 0.5
        )
        constants[f"{name}.weight"] = weight.astype(np.float32)
        shape = {"strides": [2] * dimensions} if op == "ConvTranspose" else {"pads": [size // 2] * 2 * dimensions}
        return helper.make_node(op, [source, f"{name}.weight"], [f"{name}_out"], name, **shape)

    def relu(source: str, output: str) -> onnx.NodeProto:
        return helper.make_node("Relu", [source], [output], f"node_{output}")

    halved = {"kernel_shape": [2] * dimensions, "strides": [2] * dimensions}
    nodes = [
        convolution("down1", "x", CHANNELS), relu("down1_out", "d"),
        convolution("down2", "d", CHANNELS), relu("down2_out", "s"),
        helper.make_node("MaxPool", ["s"], ["pooled"], "pool", **halved),
        convolution("bottom", "pooled", CHANNELS), relu("bottom_out", "b"),
        convolution("up", "b", CHANNELS, "ConvTranspose", 2),
        helper.make_node("Concat", ["s", "up_out"], ["both"], "beside", axis=1),
        convolution("join", "both", 2 * CHANNELS), relu("join_out", "j"),
        helper.make_node("Conv", ["j", "head.weight"], ["y"], "head"),
    ]  # fmt: skip
    constants["head.weight"] = generator.standard_normal((3, CHANNELS, *[1] * dimensions)).astype(np.float32)
    sizes = [4] * dimensions
    return model(nodes, {"x": ["n", CHANNELS, *sizes]}, {"y": ["n", 3, *sizes]}, constants)
