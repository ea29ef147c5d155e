# SPDX-License-Identifier: Apache-2.0
"""Where Q/DQ nodes stand in a graph: symmetric INT8 or FP8 (E4M3), placed so that TensorRT fuses what it can.

| what | rule |
| --- | --- |
| which nodes | every Conv, ConvTranspose, Gemm and MatMul, attention's two products included; not those of `unfit`, not the keep-list |
| weights | one scale a channel of the output (one for all where the operator mixes them), found from the weights themselves |
| activations | one scale a tensor, zero point 0, one Q/DQ pair a tensor, shared by all who may read it |
| who reads it | all consumers where a convolution is among them: then the tensor is written in 8 bits only; else the products only, for norms and the residual stream of a transformer keep their floating type |
| residual add | the convolution that is deepest writes into the Add unquantised and fuses with it; the other summand gets a Q/DQ pair |
| global average | its input gets a pair where a convolution is behind it, so that this convolution writes 8 bits too |

Softmax, norms, GELU and element-wise operators are computed in the floating type. Scale: largest magnitude / 127, or
/ 448 in FP8 (docs/method.md). Does not find the ranges (`calibration` does) and does not change the floating type
(`conversion` does, afterwards).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper

from pybench.errors import InputError
from pybench.precision.conversion import matching_nodes
from pybench.precision.network import FLOATING, Array, Network

CONVOLUTIONS = frozenset({"Conv", "ConvTranspose"})
PRODUCTS = frozenset({"Gemm", "MatMul"})
MEANS = frozenset({"GlobalAveragePool", "ReduceMean"})

# Largest code: INT8's -128 is left out, so that the range is symmetric; E4M3's largest finite number.
LARGEST = {"int8": 127.0, "fp8": 448.0}
_CODES = {"int8": np.dtype(np.int8), "fp8": np.dtype(ml_dtypes.float8_e4m3fn)}
_FLOATING = {"fp32": np.dtype(np.float32), "fp16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
OPSET = 19  # the first with FP8, and with scales in FP16 and BF16
# TensorRT has no FP8 convolution for groups, nor for so few channels on either side (Model-Optimizer leaves the same out).
FEWEST_FP8_CHANNELS = 17

Reals = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Quantisation:
    """How a graph is quantised. `kind`: int8 or fp8; `floating`: the type around it, which scales are rounded to;
    `keep_fp32`: a regular expression on whole names of nodes that are left alone.

    The rest exists to be varied in experiments. `folded_weights`: weights are stored as codes behind a
    DequantizeLinear, not as floating numbers behind a pair. `bias`: `plain`, `int32` (codes at the product's scale) or
    `separate` (an Add of its own). `residual`, `pooled`, `attention`: whether those rules apply. `pool_operator`:
    a mean over all positions is written as GlobalAveragePool.
    """

    kind: str
    floating: str = "fp32"
    keep_fp32: str | None = None
    folded_weights: bool = False
    bias: str = "plain"
    residual: bool = True
    pooled: bool = True
    attention: bool = True
    pool_operator: bool = False


@dataclass(slots=True)
class Placement:
    """What was done. `quantised`: nodes whose factors are all quantised; `kept`: multiplying node -> why it is not;
    `scales`: activation -> its scale."""

    quantised: list[str] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)
    scales: dict[str, float] = field(default_factory=dict)


def insert_qdq(network: Network, ranges: Mapping[str, float], quantisation: Quantisation) -> Placement:
    """Rewrites an FP32 network. `ranges`: tensor -> largest magnitude, for all of `calibrated_tensors`.

    Raises InputError when a range is missing or a keep-list matches nothing.
    """
    network.raise_opset(OPSET)
    _fold_transposed_weights(network)
    if quantisation.pool_operator:
        _use_pool_operator(network)
    placement = Placement()
    chosen = _choose_nodes(network, quantisation, placement)
    tensors = _choose_tensors(network, chosen, quantisation)
    _Writing(network, ranges, quantisation, placement).write(chosen, tensors)
    network.infer()
    return placement


def calibrated_tensors(network: Network) -> list[str]:
    """Every activation that some quantisation of this graph may need the range of, in running order."""
    found: dict[str, None] = {}
    for node in network.nodes:
        if node.op_type in CONVOLUTIONS | PRODUCTS | MEANS | {"Add"}:
            found |= dict.fromkeys(name for name in node.input[:2] if _is_activation(network, name))
    return list(found)


def unfit(network: Network, node: onnx.NodeProto, quantisation: Quantisation) -> str | None:
    """Why a multiplying node cannot be quantised, in a word; None: it can."""
    weight = _weight_position(network, node)
    if weight is None:
        if not quantisation.attention:
            return "attention"
        return None if all(_is_activation(network, name) for name in node.input[:2]) else "constant_factors"
    shape = network.shape_of(node.input[weight]) or ()
    if node.op_type in CONVOLUTIONS and quantisation.kind == "fp8":
        if node.op_type == "ConvTranspose":
            return "no_fp8_kernel_transposed"
        if _groups(node) > 1:
            return "no_fp8_kernel_groups"
        if min(shape[0] or 0, shape[1] or 0) < FEWEST_FP8_CHANNELS:
            return "no_fp8_kernel_channels"
    if node.op_type in PRODUCTS and 1 in shape[-2:]:
        return "vector"  # a matrix times a vector has no tensor-core kernel
    return None


def _choose_nodes(network: Network, quantisation: Quantisation, placement: Placement) -> list[onnx.NodeProto]:
    named = matching_nodes(network, quantisation.keep_fp32)
    chosen = []
    for node in network.nodes:
        if node.op_type not in CONVOLUTIONS | PRODUCTS or network.type_of(node.output[0]) not in FLOATING:
            continue
        reason = "keep_fp32" if node.name in named else unfit(network, node, quantisation)
        if reason is None:
            chosen.append(node)
        else:
            placement.kept[node.name] = reason
    placement.quantised = [node.name for node in chosen]
    return chosen


def _choose_tensors(
    network: Network, chosen: list[onnx.NodeProto], quantisation: Quantisation
) -> dict[str, set[str] | None]:
    """Activation -> names of the nodes that read it quantised; None: all of them."""
    readers: dict[str, set[str]] = {}
    everyone: set[str] = set()
    for node in chosen:
        for name in node.input[:2]:
            if _is_activation(network, name):
                readers.setdefault(name, set()).add(node.name)
                if node.op_type in CONVOLUTIONS:
                    everyone.add(name)
    convolutions = {node.output[0] for node in chosen if node.op_type in CONVOLUTIONS}
    if quantisation.residual:
        for name in _second_summands(network, convolutions):
            readers.setdefault(name, set())
            everyone.add(name)
    if quantisation.pooled:
        for node in network.nodes:
            if node.op_type in MEANS and _ends_convolution(network, node.input[0], convolutions):
                readers.setdefault(node.input[0], set())
                everyone.add(node.input[0])
    return {name: None if name in everyone else names for name, names in readers.items()}


def _second_summands(network: Network, convolutions: set[str]) -> list[str]:
    """Of every Add that a quantised convolution can fuse with: the summand that the convolution does not compute."""
    depth = _depths(network)
    found = []
    for node in network.nodes:
        if node.op_type != "Add" or not all(_is_activation(network, name) for name in node.input):
            continue
        first = [name for name in node.input if name in convolutions and len(network.consumers(name)) == 1]
        if first and len(set(node.input)) == 2:
            main = max(first, key=lambda name: depth.get(name, 0))
            found += [name for name in node.input if name != main]
    return found


def _depths(network: Network) -> dict[str, int]:
    """Tensor -> the most multiplying nodes on a way from the graph's inputs to it."""
    depth: dict[str, int] = {}
    for node in network.nodes:
        before = max((depth.get(name, 0) for name in node.input), default=0)
        after = before + (node.op_type in CONVOLUTIONS | PRODUCTS)
        depth |= dict.fromkeys(node.output, after)
    return depth


def _ends_convolution(network: Network, name: str, convolutions: set[str]) -> bool:
    """Whether a tensor is what a quantised convolution computes, behind an Add or an activation function."""
    for _ in range(3):
        if name in convolutions:
            return True
        node = network.producer(name)
        if node is None or node.op_type not in ("Relu", "Clip", "Add"):
            return False
        name = next((entry for entry in node.input if entry in convolutions), node.input[0])
    return False


class _Writing:
    """One pass over the nodes in running order, with pairs put behind activations and before weights."""

    def __init__(
        self, network: Network, ranges: Mapping[str, float], quantisation: Quantisation, placement: Placement
    ) -> None:
        self.network, self.ranges, self.quantisation, self.placement = network, ranges, quantisation, placement
        self._zeros: dict[int, str] = {}  # elements (0: a scalar) -> name of the zero point
        self._weights: dict[tuple[str, int | None], tuple[str, Reals]] = {}

    def write(self, chosen: list[onnx.NodeProto], tensors: Mapping[str, set[str] | None]) -> None:
        selected = {node.name for node in chosen}
        written: list[onnx.NodeProto] = []
        pairs: dict[str, str] = {}
        for entry in self.network.graph.input:
            if entry.name in tensors:
                pairs[entry.name] = self._activation(entry.name, written)
        for original in self.network.nodes:
            node = onnx.NodeProto()
            node.CopyFrom(original)
            for position, name in enumerate(original.input):
                if name in pairs:
                    readers = tensors[name]
                    if readers is None or node.name in readers:
                        node.input[position] = pairs[name]
            after = self._factors(original, node, written) if node.name in selected else []
            written += [node, *after]
            for name in original.output:
                if name in tensors:
                    pairs[name] = self._activation(name, written)
        self.network.replace_nodes(written)

    def _activation(self, name: str, written: list[onnx.NodeProto]) -> str:
        if name not in self.ranges:
            raise InputError(f"the calibration has no range for {name}", hint="calibrate this very graph")
        scale = scales_of(np.array(self.ranges[name], np.float32), self.quantisation)
        self.placement.scales[name] = float(scale)
        return self._pair(name, name, scale, None, written)

    def _pair(self, source: str, name: str, scale: Reals, axis: int | None, written: list[onnx.NodeProto]) -> str:
        """Quantises and dequantises a tensor; returns the name of the result."""
        factors = [self.network.add_constant(f"{name}_scale", scale), self._zero(scale)]
        codes, result = self.network.free_name(f"{name}_quantised"), self.network.free_name(f"{name}_dequantised")
        attributes = {} if axis is None else {"axis": axis}
        for op, read, write in (("QuantizeLinear", source, codes), ("DequantizeLinear", codes, result)):
            title = self.network.free_name(f"{name}_{op}")
            written.append(helper.make_node(op, [read, *factors], [write], title, **attributes))
        return result

    def _zero(self, scale: Reals) -> str:
        size = scale.size if scale.ndim else 0
        if size not in self._zeros:
            value = np.zeros(scale.shape, _CODES[self.quantisation.kind])
            self._zeros[size] = self.network.add_constant(f"zero_point_{size}" if size else "zero_point", value)
        return self._zeros[size]

    def _factors(
        self, original: onnx.NodeProto, node: onnx.NodeProto, written: list[onnx.NodeProto]
    ) -> list[onnx.NodeProto]:
        """Quantises the weight of a chosen node; returns what has to stand behind the node (a bias's Add)."""
        position = _weight_position(self.network, original)
        if position is None:
            return []
        name = original.input[position]
        axis = _channel_axis(original, position, self.network.constant(name).ndim)
        if (name, axis) not in self._weights:
            self._weights[name, axis] = self._weight(name, axis, written)
        node.input[position], scale = self._weights[name, axis]
        has_bias = node.op_type in CONVOLUTIONS | {"Gemm"} and len(node.input) > 2 and node.input[2] != ""
        if not has_bias or not self.network.is_constant(original.input[2]):
            return []
        return self._bias(original, node, scale, written)

    def _weight(self, name: str, axis: int | None, written: list[onnx.NodeProto]) -> tuple[str, Reals]:
        value = self.network.constant(name).astype(np.float32)
        scale = scales_of(_magnitudes(value, axis), self.quantisation)
        if not self.quantisation.folded_weights:
            return self._pair(name, name, scale, axis, written), scale
        codes = self.network.add_constant(f"{name}_quantised", encode(value, scale, axis, self.quantisation.kind))
        factors = [codes, self.network.add_constant(f"{name}_scale", scale), self._zero(scale)]
        result = self.network.free_name(f"{name}_dequantised")
        attributes = {} if axis is None else {"axis": axis}
        title = self.network.free_name(f"{name}_DequantizeLinear")
        written.append(helper.make_node("DequantizeLinear", factors, [result], title, **attributes))
        return result, scale

    def _bias(
        self, original: onnx.NodeProto, node: onnx.NodeProto, scale: Reals, written: list[onnx.NodeProto]
    ) -> list[onnx.NodeProto]:
        """Every convolution gets a bias of its own, even where the file shares one between several."""
        value = self.network.constant(original.input[2]).astype(np.float32)
        if self.quantisation.bias == "plain":
            node.input[2] = self.network.add_constant(f"{node.name}_bias", value)
            return []
        if self.quantisation.bias == "int32":
            product = np.broadcast_to(scale * np.float32(self.placement.scales[original.input[0]]), value.shape)
            product = product.astype(np.float32)
            codes = self.network.add_constant(f"{node.name}_bias_quantised", np.rint(value / product).astype(np.int32))
            factor = self.network.add_constant(f"{node.name}_bias_scale", product)
            node.input[2] = self.network.free_name(f"{node.name}_bias_dequantised")
            title = self.network.free_name(f"{node.name}_bias_DequantizeLinear")
            written.append(helper.make_node("DequantizeLinear", [codes, factor], [node.input[2]], title, axis=0))
            return []
        if node.op_type in CONVOLUTIONS:
            value = value.reshape(-1, *[1] * (len(self.network.shape_of(original.output[0]) or ()) - 2))
        del node.input[2:]
        node.output[0] = self.network.free_name(f"{original.output[0]}_unbiased")
        bias = self.network.add_constant(f"{node.name}_bias", value)
        title = self.network.free_name(f"{node.name}_Add")
        return [helper.make_node("Add", [node.output[0], bias], [original.output[0]], title)]


def scales_of(magnitudes: Reals, quantisation: Quantisation) -> Reals:
    """Scales from largest magnitudes: / 127 or / 448, rounded to the floating type around, always above 0.

    The rounding comes first, so that codes are made with the scale that undoes them. A tensor that is all 0 gets 1.
    """
    kind = _FLOATING[quantisation.floating]
    smallest = np.float32(ml_dtypes.finfo(kind).smallest_normal)
    scales = np.maximum(magnitudes / np.float32(LARGEST[quantisation.kind]), smallest)
    rounded: Reals = np.where(magnitudes > 0, scales, 1).astype(kind).astype(np.float32)
    return rounded


def encode(value: Reals, scale: Reals, axis: int | None, kind: str) -> Array:
    """Codes of a tensor as QuantizeLinear makes them: round half to even, then saturate."""
    if axis is not None:
        scale = scale.reshape([-1 if i == axis else 1 for i in range(value.ndim)])
    scaled = np.clip(value / scale, -128 if kind == "int8" else -LARGEST[kind], LARGEST[kind])
    codes: Array = (np.rint(scaled) if kind == "int8" else scaled).astype(_CODES[kind])
    return codes


def _magnitudes(value: Reals, axis: int | None) -> Reals:
    others = None if axis is None else tuple(i for i in range(value.ndim) if i != axis)
    largest: Reals = np.asarray(np.abs(value).max(axis=others), np.float32)
    return largest


def _is_activation(network: Network, name: str) -> bool:
    """A floating tensor that is computed, and no scalar: TensorRT quantises none."""
    return (
        bool(name)
        and not network.is_constant(name)
        and network.type_of(name) in FLOATING
        and network.shape_of(name) != ()
    )


def _weight_position(network: Network, node: onnx.NodeProto) -> int | None:
    """Which input of a multiplying node is a constant; None: it multiplies two activations."""
    return next((i for i in (1, 0) if network.is_constant(node.input[i])), None)


def _channel_axis(node: onnx.NodeProto, position: int, dimensions: int) -> int | None:
    """Axis of a weight that becomes the output's channels; None: there is no single one, and one scale serves all."""
    if node.op_type == "Conv":
        return 0
    if node.op_type == "ConvTranspose":
        return 1 if _groups(node) == 1 else None  # groups share the axis of outputs
    if dimensions != 2:
        return None
    transposed = node.op_type == "Gemm" and _attribute(node, "transB" if position == 1 else "transA", 0)
    return position if not transposed else 1 - position


def _groups(node: onnx.NodeProto) -> int:
    return _attribute(node, "group", 1)


def _attribute(node: onnx.NodeProto, name: str, default: int) -> int:
    return next((int(entry.i) for entry in node.attribute if entry.name == name), default)


def _fold_transposed_weights(network: Network) -> None:
    """A weight that reaches its product through Transpose (tied embeddings) becomes a constant of its own."""
    nodes = []
    for node in network.nodes:
        if node.op_type == "Transpose" and network.is_constant(node.input[0]):
            order = next((list(entry.ints) for entry in node.attribute if entry.name == "perm"), None)
            folded = network.add_constant(f"{node.output[0]}_folded", network.constant(node.input[0]).transpose(order))
            for reader in network.consumers(node.output[0]):
                for position, name in enumerate(reader.input):
                    if name == node.output[0]:
                        reader.input[position] = folded
            if not network.is_output(node.output[0]):
                continue
        nodes.append(node)
    network.replace_nodes(nodes)


def _use_pool_operator(network: Network) -> None:
    for node in network.nodes:
        if node.op_type != "ReduceMean" or len(node.input) < 2 or not network.is_constant(node.input[1]):
            continue
        dimensions = len(network.shape_of(node.input[0]) or ())
        axes = sorted(int(axis) % dimensions for axis in network.constant(node.input[1])) if dimensions else []
        if dimensions > 2 and axes == list(range(2, dimensions)) and _attribute(node, "keepdims", 1):
            node.op_type = "GlobalAveragePool"
            del node.input[1:]
            del node.attribute[:]
    network.replace_nodes(network.nodes)
