# SPDX-License-Identifier: Apache-2.0
"""MaxPool in other words: the largest of slices, one for each place in the window. Equal outputs, bit for bit.

TensorRT 10.6 pools no FP8. Between FP8 layers it pools in FP16 and in another layout. So a tensor is written wide,
moved, pooled and read once more to be quantised. For slices and Max it generates one kernel, which reads codes and
writes codes. Windows that overlap are left alone: each number would be read several times, and ResNet-50's one pooling
is slower so. Does not decide where it is done: `placement` does.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import onnx
from onnx import helper

from pybench.precision.network import Network


def is_sliceable(network: Network, node: onnx.NodeProto) -> bool:
    """A MaxPool whose windows lie side by side, over positions of known numbers, without its second output."""
    if node.op_type != "MaxPool" or len(node.output) > 1:
        return False
    attributes = _attributes(node)
    shape = network.shape_of(node.output[0])
    return (
        shape is not None
        and None not in shape[2:]
        and attributes.get("strides") == attributes["kernel_shape"]
        and not any(attributes.get("pads", []))
        and attributes.get("auto_pad", b"NOTSET") == b"NOTSET"
        and not attributes.get("ceil_mode", 0)
        and set(attributes.get("dilations", [1])) == {1}
    )


def sliced(network: Network, node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """The nodes that stand for a MaxPool which `is_sliceable`; the last has its name and output."""
    window = np.array(_attributes(node)["kernel_shape"])
    counts = np.array((network.shape_of(node.output[0]) or ())[2:])

    def constant(title: str, values: Any) -> str:
        return network.add_constant(f"{node.name}_{title}", np.array(values, np.int64))

    axes, steps = constant("axes", range(2, 2 + len(window))), constant("steps", window)
    nodes, slices = [], []
    for begin in product(*map(range, window)):
        title = "_".join(map(str, begin))
        bounds = [constant(f"begin_{title}", begin), constant(f"end_{title}", begin + (counts - 1) * window + 1)]
        slices.append(network.free_name(f"{node.name}_slice_{title}"))
        name = network.free_name(f"{node.name}_Slice_{title}")
        nodes.append(helper.make_node("Slice", [node.input[0], *bounds, axes, steps], [slices[-1]], name))
    return [*nodes, helper.make_node("Max", slices, list(node.output), node.name)]


def _attributes(node: onnx.NodeProto) -> dict[str, Any]:
    return {entry.name: helper.get_attribute_value(entry) for entry in node.attribute}
