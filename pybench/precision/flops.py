# SPDX-License-Identifier: Apache-2.0
"""Floating-point operations of an ONNX graph's convolutions and matrix products, by node.

A multiplication and an addition count as two, as vendors and papers count; biases, activations and normalisations are
left out (below 1 % in ResNet-50). Shapes are inferred on a copy with batch and sequence fixed and without the large
weights, so a file of gigabytes is no trouble. Counts the main graph: bodies of If, Loop and Scan, and
local functions, are not looked into.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import shape_inference
from onnx.external_data_helper import ExternalDataInfo, uses_external_data

from pybench.errors import InputError, in_short
from pybench.onnx_file.graph import node_name
from pybench.onnx_file.slim import without_weights
from pybench.precision.shapes import LARGEST_VALUE, Shape, infer_shapes

# Since this version weights need not be inputs, too. Runtimes take older files with such weights, too; the inference of
# shapes overlooks their weights.
_IR_OF_FREE_WEIGHTS = 4


def count_flops(path: Path, batch: int, seq_len: int, fed: Mapping[str, Sequence[int]] | None = None) -> dict[str, int]:
    """Node's name -> FLOPs of one execution at this batch.

    A dynamic first dimension of an input is the batch, every other one the sequence, unless `fed` states the sizes of
    that input. A node without a name gets TensorRT's (`node_name`).

    Raises InputError for a file that is no ONNX graph, that cannot run at these sizes because of a Reshape, or whose
    shapes cannot be inferred where they are needed.
    """
    try:
        model = onnx.ModelProto.FromString(without_weights(path, LARGEST_VALUE))
        _read_small_weights(model.graph, path.parent)
        _fix_inputs(model.graph, batch, seq_len, fed or {})
        weights = _drop_large_weights(model.graph)
        model.ir_version = max(model.ir_version, _IR_OF_FREE_WEIGHTS)
        inferred, shapes = infer_shapes(model)
    except (OSError, DecodeError, shape_inference.InferenceError) as error:
        raise InputError(f"no shapes can be inferred in {path} ({in_short(error)})") from error
    _check_reshapes(inferred.graph, shapes, path)
    flops: dict[str, int] = {}
    for node in inferred.graph.node:
        if node.op_type not in _MACS or node.domain not in ("", "ai.onnx") or weights.issuperset(node.input):
            continue  # a product of two weights is folded when the engine is built
        name = node_name(node.name, node.output[0])
        flops[name] = flops.get(name, 0) + 2 * _macs(node, shapes, path)
    return flops


def _read_small_weights(graph: Any, folder: Path) -> None:
    """Puts small weights that are in other files into the graph: shapes may be computed from them.

    ONNX's own reader refuses files with several hard links, as stores without duplicates have them.
    """
    for weight in graph.initializer:
        if uses_external_data(weight) and prod(weight.dims) <= LARGEST_VALUE:
            stored = ExternalDataInfo(weight)
            with open(folder / stored.location, "rb") as file:
                file.seek(stored.offset or 0)
                weight.raw_data = file.read(-1 if stored.length is None else stored.length)
            weight.data_location = onnx.TensorProto.DEFAULT
            weight.ClearField("external_data")


def _fix_inputs(graph: Any, batch: int, seq_len: int, fed: Mapping[str, Sequence[int]]) -> None:
    weights = {weight.name for weight in graph.initializer}
    for value in graph.input:
        if value.name in weights:
            continue
        stated = fed.get(value.name)
        for place, dimension in enumerate(value.type.tensor_type.shape.dim):
            if stated is not None:
                dimension.dim_value = stated[place]
            elif not dimension.HasField("dim_value") or dimension.dim_value <= 0:
                dimension.dim_value = batch if place == 0 else seq_len
    graph.ClearField("value_info")  # with outputs' shapes, what held for a free batch
    for value in graph.output:
        value.type.tensor_type.ClearField("shape")


def _drop_large_weights(graph: Any) -> frozenset[str]:
    """Turns large initialisers into inputs of the same shape; returns the names of all."""
    names = frozenset(weight.name for weight in graph.initializer)
    large = [weight for weight in graph.initializer if prod(weight.dims) > LARGEST_VALUE]
    declared = {value.name for value in graph.input}
    for weight in large:
        if weight.name not in declared:
            graph.input.append(onnx.helper.make_tensor_value_info(weight.name, weight.data_type, weight.dims))
        graph.initializer.remove(weight)
    return names


def _check_reshapes(graph: Any, shapes: Mapping[str, Shape], path: Path) -> None:
    """The inference believes the sizes that a Reshape names, also where they do not fit what is reshaped."""
    for node in graph.node:
        if node.op_type != "Reshape" or node.domain not in ("", "ai.onnx"):
            continue
        if node.input[0] not in shapes or node.output[0] not in shapes:
            continue
        given, wanted = prod(shapes[node.input[0]]), prod(shapes[node.output[0]])
        if given != wanted:
            raise InputError(
                f"{path}: {_called(node)} reshapes {given} elements to {wanted}",
                hint="give the sizes that the model was exported with, or export it with these dimensions free",
            )


def _macs(node: Any, shapes: Mapping[str, Shape], path: Path) -> int:
    unknown = [name for name in (*node.input[:2], node.output[0]) if name not in shapes]
    if unknown:
        raise InputError(
            f"{path}: the shape of {unknown[0]} cannot be inferred, which {_called(node)} needs",
            hint="simplify the model (constant folding), or export it with fixed shapes",
        )
    attributes = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
    inputs = [shapes[name] for name in node.input[:2]]
    return _MACS[node.op_type](inputs, shapes[node.output[0]], attributes)


def _called(node: Any) -> str:
    return (
        f"the {node.op_type} node {node.name}" if node.name else f"the {node.op_type} node that gives {node.output[0]}"
    )


def _convolution(inputs: Sequence[Shape], output: Shape, attributes: Mapping[str, Any]) -> int:
    """Each output element sums over the weight's [channels / group, kernel...]: weight [out, in / group, k...]."""
    return prod(output) * prod(inputs[1][1:])


def _transposed_convolution(inputs: Sequence[Shape], output: Shape, attributes: Mapping[str, Any]) -> int:
    """Each input element is spread over the weight's [out / group, kernel...]: weight [in, out / group, k...]."""
    return prod(inputs[0]) * prod(inputs[1][1:])


def _general_product(inputs: Sequence[Shape], output: Shape, attributes: Mapping[str, Any]) -> int:
    return prod(output) * inputs[0][0 if attributes.get("transA", 0) else 1]


def _product(inputs: Sequence[Shape], output: Shape, attributes: Mapping[str, Any]) -> int:
    return prod(output) * inputs[0][-1]


_MACS: dict[str, Callable[[Sequence[Shape], Shape, Mapping[str, Any]], int]] = {
    "Conv": _convolution,
    "ConvTranspose": _transposed_convolution,
    "Gemm": _general_product,
    "MatMul": _product,
}
