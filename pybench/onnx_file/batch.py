# SPDX-License-Identifier: Apache-2.0
"""Whether a file whose batch is fixed can be rewritten for another one, as far as its nodes tell without being run.

A tensor is *led* while its leading dimension is the batch and nothing else. What is named here fails at every other
batch; a graph in which nothing is named may still mix its samples, which only running it shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pybench.onnx_file.faults import called
from pybench.onnx_file.graph import OnnxGraph, OnnxNode, Value

FREE = "pybench_batch"  # the name of the dimension that is free afterwards: no other one may have it

# Nodes whose first output is led, with as many dimensions, where their first input is.
_KEEPING = frozenset(
    {
        "Abs", "AveragePool", "BatchNormalization", "Cast", "Ceil", "Clip", "Conv", "ConvTranspose", "DequantizeLinear",
        "Dropout", "Elu", "Erf", "Exp", "Floor", "Gelu", "GlobalAveragePool", "GlobalMaxPool", "GroupNormalization",
        "HardSigmoid", "HardSwish", "Identity", "InstanceNormalization", "LRN", "LayerNormalization", "LeakyRelu",
        "Log", "MaxPool", "Neg", "Not", "QuantizeLinear", "Reciprocal", "Relu", "Resize", "Round", "Selu", "Sigmoid",
        "Sign", "Softplus", "Sqrt", "Tanh", "Upsample",
    }
)  # fmt: skip
_ELEMENTWISE = frozenset(
    {"Add", "Sub", "Mul", "Div", "Pow", "Min", "Max", "PRelu", "Where", "Equal", "Greater", "Less"}
)


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A node that fails at every batch but the fixed one. `why`: what it does."""

    node: str
    why: str


@dataclass(slots=True)
class _Walk:
    """What is known so far.

    fixed: the batch that the file has now
    led: tensor whose first dimension is the batch -> its number of dimensions
    constant: tensors that no input reaches
    reshapes: as of `Rewriting`
    """

    graph: OnnxGraph
    fixed: int
    led: dict[str, int]
    constant: set[str]
    reshapes: dict[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rewriting:
    """How a graph is rewritten.

    reshapes: first output of a Reshape -> its target with a free leading dimension, in which a 0 is copied (without
        `allowzero`)
    obstacle: what prevents it; None: nothing that is known
    """

    reshapes: dict[str, tuple[int, ...]]
    obstacle: Obstacle | None


def freed(inputs: Sequence[Value], fixed: int) -> list[Value]:
    """The inputs whose leading dimension is the fixed batch, with that dimension free; others as they are."""
    return [
        replace(value, shape=(FREE, *value.shape[1:])) if value.shape and value.shape[0] == fixed else value
        for value in inputs
    ]


def rewriting(graph: OnnxGraph, fixed: int) -> Rewriting:
    """How to free the batch of a graph, in which it is `fixed`."""
    starts = {value.name: len(value.shape) for value in graph.fed if value.shape and value.shape[0] == fixed}
    walk = _Walk(graph, fixed, starts, set(graph.sizes))
    obstacle = next((found for node in graph.nodes if (found := _pass(node, walk)) is not None), None)
    return Rewriting(walk.reshapes, obstacle or _of_outputs(graph, fixed))


def _pass(node: OnnxNode, walk: _Walk) -> Obstacle | None:
    """Notes what a node writes; returns why it cannot stay."""
    rule = _RULES.get(node.op)
    if not node.bodies and all(name in walk.constant for name in node.inputs):
        walk.constant.update(node.outputs)
        return None
    if node.domain or not node.outputs:
        return None
    if rule is not None:
        return rule(node, walk)
    data = walk.led.get(node.inputs[0])
    if node.op in _KEEPING and data is not None:
        walk.led[node.outputs[0]] = data
    elif node.op in _ELEMENTWISE:
        _elementwise(node, walk)
    return None


def _elementwise(node: OnnxNode, walk: _Walk) -> None:
    """Led where every operand is, or is a constant that is repeated for each sample."""
    ranks = [walk.led.get(name) for name in node.inputs]
    most = max((rank for rank in ranks if rank is not None), default=0)
    for name, rank in zip(node.inputs, ranks, strict=True):
        shape = walk.graph.sizes.get(name)
        if rank is None and (shape is None or len(shape) > most or (len(shape) == most and shape[0] != 1)):
            return
    if most:
        walk.led[node.outputs[0]] = most


def _reshape(node: OnnxNode, walk: _Walk) -> Obstacle | None:
    """A leading dimension that is the fixed batch follows from the rest, or is copied where the rest has a -1."""
    target = walk.graph.integers.get(node.inputs[1]) if len(node.inputs) > 1 else None
    if not target:
        return None
    is_led, copies = node.inputs[0] in walk.led, not node.integer("allowzero", 0)
    if target[0] == walk.fixed and (copies or 0 not in target):  # a 0 is to be copied afterwards
        walk.reshapes[node.outputs[0]] = (0 if -1 in target else -1, *target[1:])
    elif is_led and min(target) > 0:
        return Obstacle(called(node), f"reshapes to {list(target)}, a constant number of elements")
    if is_led and (target[0] == walk.fixed or (target[0] == 0 and copies)):
        walk.led[node.outputs[0]] = len(target)
    return None


def _squeeze(node: OnnxNode, walk: _Walk) -> Obstacle | None:
    axes, rank = _axes(node, walk), walk.led.get(node.inputs[0])
    if rank is None or not axes:  # without axes, every dimension of size 1 goes: the batch may be one of them
        return None
    if 0 in axes or -rank in axes:
        return Obstacle(called(node), "removes the batch dimension")
    walk.led[node.outputs[0]] = rank - len(axes)
    return None


def _unsqueeze(node: OnnxNode, walk: _Walk) -> Obstacle | None:
    axes, rank = _axes(node, walk), walk.led.get(node.inputs[0])
    if rank is not None and axes and min(axes) > 0:
        walk.led[node.outputs[0]] = rank + len(axes)
    return None


def _flatten(node: OnnxNode, walk: _Walk) -> Obstacle | None:
    if node.inputs[0] in walk.led and node.integer("axis", 1) == 1:
        walk.led[node.outputs[0]] = 2
    return None


def _transpose(node: OnnxNode, walk: _Walk) -> Obstacle | None:
    order = dict(node.attributes).get("perm", ())
    if node.inputs[0] in walk.led and order[:1] == (0,):
        walk.led[node.outputs[0]] = len(order)
    return None


def _concat(node: OnnxNode, walk: _Walk) -> Obstacle | None:
    axis, sizes = node.integer("axis", 0), walk.graph.sizes
    is_led = [name in walk.led for name in node.inputs]
    if not any(is_led) or axis == 0:
        return None
    fixed = next((name for name in node.inputs if name in sizes and axis != -len(sizes[name])), None)
    if fixed is not None:
        return Obstacle(called(node), f"joins the samples with the constant {fixed}, which is {list(sizes[fixed])}")
    if all(is_led):
        walk.led[node.outputs[0]] = walk.led[node.inputs[0]]
    return None


def _softmax(node: OnnxNode, walk: _Walk) -> Obstacle | None:
    rank = walk.led.get(node.inputs[0])
    if rank is not None and node.integer("axis", -1) not in (0, -rank):
        walk.led[node.outputs[0]] = rank
    return None


def _product(node: OnnxNode, walk: _Walk) -> Obstacle | None:
    """Samples times a constant matrix, or a product of each sample by itself."""
    if len(node.inputs) < 2 or node.integer("transA", 0):
        return None
    rank, weight = walk.led.get(node.inputs[0]), walk.graph.sizes.get(node.inputs[1])
    by_matrix = weight is not None and len(weight) == 2 and rank is not None and rank > 1
    of_each = rank is not None and rank > 2 and walk.led.get(node.inputs[1]) == rank
    if rank is not None and (by_matrix or of_each):
        walk.led[node.outputs[0]] = rank
    return None


def _of_outputs(graph: OnnxGraph, fixed: int) -> Obstacle | None:
    """The node that writes an output without the batch, by the shape that the file states."""
    writers = {name: node for node in graph.nodes for name in node.outputs}
    for value in graph.outputs:
        if value.shape is not None and value.name in writers and not (value.shape and value.shape[0] in (fixed, None)):
            if value.shape and isinstance(value.shape[0], str):
                continue
            return Obstacle(called(writers[value.name]), f"writes the output {value.name} without a batch dimension")
    return None


def _axes(node: OnnxNode, walk: _Walk) -> tuple[int, ...] | None:
    """The axes of a node: an attribute until opset 12, then an input; None: they are not stated, or not constant."""
    if len(node.inputs) > 1:
        return walk.graph.integers.get(node.inputs[1])
    return dict(node.attributes).get("axes")


_RULES = {
    "Concat": _concat,
    "Flatten": _flatten,
    "Gemm": _product,
    "LogSoftmax": _softmax,
    "MatMul": _product,
    "Reshape": _reshape,
    "Softmax": _softmax,
    "Squeeze": _squeeze,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
