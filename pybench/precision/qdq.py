# SPDX-License-Identifier: Apache-2.0
"""Q/DQ nodes written into an FP32 graph: symmetric INT8 or FP8, where `placement` says, from the ranges it is given.

Weights: one scale a channel of the output (one for all where the operator mixes channels, and in FP8's convolutions),
found from the weights themselves; activations: one scale a tensor. Zero points are 0, scales are `scales`'. Does not
find the ranges (`calibration` does); what is around the pairs changes its type in `conversion`, afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper

from pybench.errors import InputError
from pybench.precision.conversion import convert
from pybench.precision.network import Network
from pybench.precision.placement import (
    CONVOLUTIONS,
    PRODUCTS,
    Placement,
    Quantisation,
    attribute,
    is_multiplying,
    place,
    weight_position,
)
from pybench.precision.pooling import sliced
from pybench.precision.scales import Codes, Reals, magnitudes

OPSET = 19  # the first with FP8, and with scales in FP16 and BF16


def quantise(
    network: Network, ranges: Mapping[str, float], quantisation: Quantisation
) -> tuple[Placement, dict[str, str]]:
    """`insert_qdq`, and everything else in the floating type. Returns also: node -> why it is not quantised or lowered.

    Raises InputError as `insert_qdq` does.
    """
    placement = insert_qdq(network, ranges, quantisation)
    kept = dict(placement.kept)
    if quantisation.floating != "fp32":
        kept |= convert(network, quantisation.floating, quantisation.keep_fp32, placement.in_fp32).kept
    return placement, kept


def insert_qdq(network: Network, ranges: Mapping[str, float], quantisation: Quantisation) -> Placement:
    """Rewrites an FP32 network. `ranges`: tensor -> largest magnitude, for all of `calibrated_tensors`.

    Raises InputError when a range is missing or a keep-list matches nothing.
    """
    network.raise_opset(OPSET)
    _fold_transposed_weights(network)
    placement = place(network, quantisation)
    _Writing(network, ranges, quantisation).write(placement)
    network.infer()
    return placement


class _Writing:
    """One pass over the nodes in running order, with pairs put behind activations and before weights."""

    def __init__(self, network: Network, ranges: Mapping[str, float], quantisation: Quantisation) -> None:
        self._network, self._ranges = network, ranges
        self._ranges_of: dict[str, str] = {}
        self._scales_whole = quantisation.scales_weights_whole
        self._scales_convolutions_whole = quantisation.scales_convolutions_whole
        self._codes = Codes(quantisation.kind, quantisation.floating, quantisation.has_full_range)
        self._written: list[onnx.NodeProto] = []
        self._zeros: dict[int, str] = {}  # scales (0: a scalar) -> name of their zero point
        self._weights: dict[tuple[str, int | None, float | None], str] = {}  # weight, axis, scale of the other factor

    def write(self, placement: Placement) -> None:
        chosen = set(placement.quantised)
        self._ranges_of = placement.ranges_of
        pairs = {
            entry.name: self._activation(entry.name)
            for entry in self._network.graph.input
            if entry.name in placement.readers
        }
        for original in self._network.nodes:
            node = onnx.NodeProto()
            node.CopyFrom(original)
            for position, name in enumerate(original.input):
                if name in pairs:
                    readers = placement.readers[name]
                    if readers is None or node.name in readers:
                        node.input[position] = pairs[name]
            if node.name in chosen:
                self._quantise_weight(original, node)
            self._written += sliced(self._network, node) if node.name in placement.sliced else [node]
            pairs |= {name: self._activation(name) for name in original.output if name in placement.readers}
        self._network.replace_nodes(self._written)

    def _activation(self, name: str) -> str:
        return self._pair(name, self._scale(name), None)

    def _scale(self, name: str) -> Reals:
        """Of an activation."""
        name = self._ranges_of.get(name, name)
        if name not in self._ranges:
            raise InputError(f"the calibration has no range for {name}", hint="calibrate this very graph")
        return self._codes.scales(np.array(self._ranges[name], np.float32))

    def _quantise_weight(self, original: onnx.NodeProto, node: onnx.NodeProto) -> None:
        """A chosen node's weight; its bias, which the file may share between several nodes, becomes its own."""
        position = weight_position(self._network, original)
        if position is None:
            return
        name = original.input[position]
        value = self._network.constant(name).astype(np.float32)
        is_whole = self._scales_whole or (self._scales_convolutions_whole and original.op_type in CONVOLUTIONS)
        axis = None if is_whole else _channel_axis(original, position, value.ndim)
        multiplied = self._codes.kind == "fp8" or original.op_type in PRODUCTS  # INT8's convolutions scale in FP32
        other = float(self._scale(original.input[1 - position])) if multiplied else None
        key = name, axis, other
        if key not in self._weights:
            self._weights[key] = self._pair(name, self._codes.scales(magnitudes(value, axis), other), axis)
        node.input[position] = self._weights[key]
        if original.op_type != "MatMul" and len(node.input) > 2 and self._network.is_constant(node.input[2]):
            bias = self._network.constant(original.input[2]).astype(np.float32)
            node.input[2] = self._network.add_constant(f"{node.name}_bias", bias)

    def _pair(self, name: str, scale: Reals, axis: int | None) -> str:
        """Q and DQ behind a tensor; both share one scale and, with all of as many channels, one zero point."""
        size = scale.size if scale.ndim else 0
        if size not in self._zeros:
            title = f"zero_point_{size}" if size else "zero_point"
            self._zeros[size] = self._network.add_constant(title, self._codes.zero_point(scale))
        codes = self._half("QuantizeLinear", name, name, scale, axis)
        return self._half("DequantizeLinear", name, codes, scale, axis)

    def _half(self, op: str, name: str, source: str, scale: Reals, axis: int | None) -> str:
        factor = self._network.constant_named(f"{name}_scale", scale)
        attributes: dict[str, Any] = {} if axis is None else {"axis": axis}
        title = self._network.free_name(f"{name}_{op}")
        output = self._network.free_name(f"{name}_{'quantised' if op == 'QuantizeLinear' else 'dequantised'}")
        inputs = [source, factor, self._zeros[scale.size if scale.ndim else 0]]
        self._written.append(helper.make_node(op, inputs, [output], title, **attributes))
        return output


def _channel_axis(node: onnx.NodeProto, position: int, dimensions: int) -> int | None:
    """Axis of a weight that becomes the output's channels; None: there is no single one, and one scale serves all."""
    if node.op_type == "Conv":
        return 0
    if node.op_type == "ConvTranspose":
        return 1 if attribute(node, "group", 1) == 1 else None  # groups share the axis of outputs
    if dimensions != 2:
        return None
    transposed = node.op_type == "Gemm" and attribute(node, "transB" if position == 1 else "transA", 0)
    return position if not transposed else 1 - position


def _fold_transposed_weights(network: Network) -> None:
    """A weight that reaches its product through Transpose (tied embeddings) becomes a constant of its own."""
    for node in network.nodes:
        if node.op_type != "Transpose" or not network.is_constant(node.input[0]) or network.is_output(node.output[0]):
            continue
        order = next((list(entry.ints) for entry in node.attribute if entry.name == "perm"), None)
        folded = network.add_constant(f"{node.output[0]}_folded", network.constant(node.input[0]).transpose(order))
        for reader in network.consumers(node.output[0]):
            for position, name in enumerate(reader.input):
                if name == node.output[0] and is_multiplying(network, reader):
                    reader.input[position] = folded
    needed = {name for node in network.nodes for name in node.input}
    network.replace_nodes(
        node
        for node in network.nodes
        if node.op_type != "Transpose" or node.output[0] in needed or network.is_output(node.output[0])
    )
