# SPDX-License-Identifier: Apache-2.0
"""A graph in FP16 or BF16 as an FP32 graph that computes the same numbers: every tensor is rounded where it is made.

onnxruntime's CPU provider has few kernels in FP16 and none that matter in BF16. It inserts Casts around FP32 kernels
and then drops those between two of them, so that an FP16 graph is not rounded at all inside. A network whose
activations vanish in FP16 looked exact (docs/decisions/011-floating-conversion.md). Here each rounding is a pair of
Casts that stands in the graph. Sums inside an operator are in FP32, as on tensor cores; what a GPU kernel fuses it
rounds once less. Judges numbers, never speed.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from pybench.precision.network import Network

LOW: frozenset[int] = frozenset({TensorProto.FLOAT16, TensorProto.BFLOAT16})
FP32: int = TensorProto.FLOAT


def emulate(network: Network, *, rounding: bool = True) -> onnx.ModelProto:
    """The FP32 model. `network`: with inputs and outputs in FP32, as `conversion` leaves them; it stays as it is.
    `rounding`: of every tensor; without, only constants are those of the type, as if kernels fused all there is."""
    model = onnx.ModelProto()
    model.CopyFrom(network.model)
    graph = model.graph
    del graph.value_info[:]
    for tensor in graph.initializer:
        _widen(tensor)
    del graph.node[:]
    for node in network.nodes:
        graph.node.extend(_rounded(network, node) if rounding else [_widened(node)])
    return model


def _rounded(network: Network, original: onnx.NodeProto) -> list[onnx.NodeProto]:
    """A node in FP32, and the Casts that round what it writes."""
    node = _widened(original)
    casts = []
    for position, name in enumerate(original.output):
        kind = network.type_of(name)
        if kind in LOW:
            node.output[position] = network.free_name(f"{name}_exact")
            low = network.free_name(f"{name}_rounded")
            casts.append(helper.make_node("Cast", [node.output[position]], [low], to=kind))
            casts.append(helper.make_node("Cast", [low], [name], to=FP32))
    return [node, *casts]


def _widened(original: onnx.NodeProto) -> onnx.NodeProto:
    """A node in FP32."""
    node = onnx.NodeProto()
    node.CopyFrom(original)
    for attribute in node.attribute:
        if attribute.name in ("to", "dtype", "output_dtype") and attribute.i in LOW:
            attribute.i = FP32
        elif attribute.name == "value":
            _widen(attribute.t)
    return node


def _widen(tensor: onnx.TensorProto) -> None:
    if tensor.data_type in LOW:
        value = numpy_helper.to_array(tensor).astype(np.float32)
        tensor.CopyFrom(numpy_helper.from_array(value, tensor.name))
