# SPDX-License-Identifier: Apache-2.0
"""Shapes of every tensor of an ONNX graph whose inputs have fixed sizes.

ONNX's own inference follows values through some operators of shape arithmetic only: the `Div` of a channel shuffle ends
it. Where shapes are missing, nodes whose inputs are small constants, or shapes that are known by now, are computed with
ONNX's reference implementation, and the inference goes on from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper, shape_inference
from onnx.reference import ReferenceEvaluator

Shape = tuple[int, ...]

LARGEST_VALUE = 1024  # elements of a constant that shapes are computed from
_STANDARD = ("", "ai.onnx")
_GROWING = frozenset({"ConstantOfShape", "Expand", "Tile", "Range", "Pad", "Resize", "OneHot", "EyeLike"})


def infer_shapes(model: onnx.ModelProto) -> tuple[onnx.ModelProto, dict[str, Shape]]:
    """The model with inferred shapes, and those that are known to the last dimension.

    Shapes are missing where even the second way does not find them. Raises `shape_inference.InferenceError`.
    """
    while True:
        inferred = shape_inference.infer_shapes(model, data_prop=True)
        shapes = _known(inferred.graph)
        outputs = {name for node in inferred.graph.node for name in node.output if name}
        if outputs <= shapes.keys() or not _fold(model.graph, shapes, model.opset_import):
            return inferred, shapes


def _known(graph: Any) -> dict[str, Shape]:
    shapes: dict[str, Shape] = {weight.name: tuple(weight.dims) for weight in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        sizes = value.type.tensor_type.shape.dim
        if value.type.tensor_type.HasField("shape") and all(size.HasField("dim_value") for size in sizes):
            shapes[value.name] = tuple(size.dim_value for size in sizes)
    return shapes


def _fold(graph: Any, shapes: Mapping[str, Shape], opsets: Any) -> bool:
    """Puts constants in the place of nodes that can be computed by now. Whether there were any."""
    values = {
        weight.name: numpy_helper.to_array(weight) for weight in graph.initializer if prod(weight.dims) <= LARGEST_VALUE
    }
    left, found = [], False
    for node in graph.node:
        value = _value_of(node, values, shapes, opsets)
        if value is None:
            left.append(node)
            continue
        values[node.output[0]] = value
        graph.initializer.append(numpy_helper.from_array(value, node.output[0]))
        found = found or node.op_type != "Constant"
    del graph.node[:]
    graph.node.extend(left)
    return found


def _value_of(node: Any, values: Mapping[str, NDArray[Any]], shapes: Mapping[str, Shape], opsets: Any) -> Any:
    """What a node gives, a small array; None where that is not known, or would not help."""
    if node.domain not in _STANDARD or len(node.output) != 1:
        return None
    if node.op_type == "Shape" and node.input[0] in shapes:
        bounds = {each.name: each.i for each in node.attribute}
        shape = shapes[node.input[0]]
        return np.array(shape[bounds.get("start", 0) : bounds.get("end", len(shape))], np.int64)
    if node.op_type == "Constant" and node.attribute[0].HasField("t"):
        tensor = node.attribute[0].t
        return numpy_helper.to_array(tensor) if prod(tensor.dims) <= LARGEST_VALUE else None
    is_known = all(not name or name in values for name in node.input)
    has_body = any(each.HasField("g") or each.graphs for each in node.attribute)
    if not is_known or has_body or (not node.input and node.op_type != "Constant"):
        return None  # an operator without inputs other than a constant draws random numbers
    if _may_be_large(node, shapes):
        return None
    fed = {name: values[name] for name in node.input if name}
    try:
        (value,) = ReferenceEvaluator(_alone(node, fed, opsets)).run(None, fed)
    except Exception:  # whatever the reference raises for an operator or type that it does not have
        return None
    return value if isinstance(value, np.ndarray | np.generic) and value.size <= LARGEST_VALUE else None


def _may_be_large(node: Any, shapes: Mapping[str, Shape]) -> bool:
    """Whether to wait until a size is known: a causal mask has gigabytes, and what follows from it needs its shape."""
    shape = shapes.get(node.output[0])
    return node.op_type in _GROWING if shape is None else prod(shape) > LARGEST_VALUE


def _alone(node: Any, fed: Mapping[str, NDArray[Any]], opsets: Any) -> onnx.ModelProto:
    inputs = [
        onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in fed.items()
    ]
    output = onnx.helper.make_empty_tensor_value_info(node.output[0])
    graph = onnx.helper.make_graph([node], "one", inputs, [output])
    return onnx.helper.make_model(graph, opset_imports=list(opsets))
