# SPDX-License-Identifier: Apache-2.0
"""Which integers a graph accepts from an input, as far as its nodes tell: rows of a table, no zero for a divisor.

An input is followed through nodes that keep its values. Read from the sizes of weights, so no weight is read.
Values that a node computes from an input (a sum, a product) are not followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pybench.onnx_file.graph import OnnxGraph, OnnxNode

# Ids, masks and token types are all valid below this where no node says more.
USUAL_BELOW = 2

# Nodes that give out values of their first input, and no others.
_KEEPING = frozenset(
    {"Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose", "Slice", "Split", "Expand", "Tile",
     "Gather", "GatherElements", "GatherND"}
)  # fmt: skip
# Nodes that select from their first input with their second. A negative number counts from the end.
_SELECTING = frozenset({"Gather", "GatherElements"})
# Nodes between a weight and what selects from it, which keep its shape.
_OF_THE_SAME_SHAPE = frozenset({"Identity", "Cast", "DequantizeLinear"})
_DIVIDING = frozenset({"Div", "Mod"})
# onnxruntime's fused embedding (com.microsoft): the ids that it reads, and their tables. It accepts no negative id.
_FUSED_EMBEDDING, _TABLES_OF_IDS = "EmbedLayerNormalization", {0: 2, 1: 4, 8: 3}


@dataclass(frozen=True, slots=True)
class IntegerRange:
    """The integers that an input is fed with, and those that its nodes accept.

    least: the least that is drawn; 1 where no node may get a zero
    below: every number that is drawn is less
    node: what restricts them; empty: nothing is known
    is_bounded: whether the node refuses `below` and more; a divisor has no upper bound
    wraps: whether negative numbers count from the end of the table, down to -`below`
    """

    least: int = 0
    below: int = USUAL_BELOW
    node: str = ""
    is_bounded: bool = True
    wraps: bool = False

    def accepts(self, least: int, most: int, *, has_zero: bool) -> bool:
        """Whether the node accepts numbers, given their least, their greatest, and whether one of them is 0."""
        if self.least > 0 and has_zero:
            return False
        return not self.is_bounded or ((-self.below if self.wraps else self.least) <= least and most < self.below)

    @property
    def accepted(self) -> str:
        """What the node accepts, in words."""
        if not self.is_bounded:
            return "every number but 0"
        if self.wraps:
            return f"{-self.below} to {self.below - 1}{' but not 0' if self.least > 0 else ''}"
        return f"{self.least} to {self.below - 1}"


UNKNOWN = IntegerRange()


def integer_ranges(graph: OnnxGraph) -> dict[str, IntegerRange]:
    """Input -> what it may be fed with, for integer inputs that a node restricts. The narrowest restriction counts."""
    readers: dict[str, list[OnnxNode]] = {}
    for node in graph.nodes:
        for name in dict.fromkeys(node.inputs):
            readers.setdefault(name, []).append(node)
    sources = {output: node for node in graph.nodes for output in node.outputs}
    found: dict[str, IntegerRange] = {}
    for value in graph.fed:
        if not value.element.removeprefix("u").startswith("int"):
            continue
        limits = list(_limits(value.name, graph, readers, sources))
        rows = min((limit for limit in limits if limit.is_bounded), key=lambda limit: limit.below, default=None)
        least = max((limit.least for limit in limits), default=0)
        if rows is not None and rows.below > least:
            wraps = value.element.startswith("int") and all(limit.wraps for limit in limits if limit.is_bounded)
            found[value.name] = IntegerRange(least, rows.below, rows.node, wraps=wraps)
        elif limits:
            dividing = next(limit.node for limit in limits if limit.least == least)
            found[value.name] = IntegerRange(least, least + USUAL_BELOW, dividing, is_bounded=False)
    return found


def _limits(
    start: str, graph: OnnxGraph, readers: Mapping[str, list[OnnxNode]], sources: Mapping[str, OnnxNode]
) -> Iterator[IntegerRange]:
    """Every restriction of the values of a tensor."""
    waiting, seen = [start], {start}
    while waiting:
        name = waiting.pop()
        for node in readers.get(name, ()):
            called = f"{node.name or node.outputs[0]} ({node.op})" if node.outputs else node.op
            for position, read in enumerate(node.inputs):
                if read != name:
                    continue
                if (rows := _rows(node, position, graph, sources)) is not None:
                    yield IntegerRange(0, rows, called, wraps=node.op in _SELECTING)
                if position == 1 and node.op in _DIVIDING:
                    yield IntegerRange(1, 1 + USUAL_BELOW, called, is_bounded=False)
            if node.op in _KEEPING and node.inputs and node.inputs[0] == name and _is_integer_still(node):
                new = [output for output in node.outputs if output and output not in seen]
                seen.update(new)
                waiting += new


def _is_integer_still(node: OnnxNode) -> bool:
    return node.op != "Cast" or node.to.removeprefix("u").startswith("int")


def _rows(node: OnnxNode, position: int, graph: OnnxGraph, sources: Mapping[str, OnnxNode]) -> int | None:
    """How many there are to select from with an input of a node; None: it selects nothing, or from what is computed."""
    if node.op in _SELECTING and position == 1:
        table, axis = node.inputs[0], node.integer("axis", 0)
    elif node.op == _FUSED_EMBEDDING and (at := _TABLES_OF_IDS.get(position, len(node.inputs))) < len(node.inputs):
        table, axis = node.inputs[at], 0
    else:
        return None
    shape = _shape_of(table, graph, sources)
    if shape is None or not -len(shape) <= axis < len(shape) or shape[axis] < 1:
        return None
    return shape[axis]


def _shape_of(name: str, graph: OnnxGraph, sources: Mapping[str, OnnxNode]) -> tuple[int, ...] | None:
    """The shape of a weight, also where it is rounded or cast first."""
    for _ in range(len(_OF_THE_SAME_SHAPE) + 1):
        if name in graph.sizes:
            return graph.sizes[name]
        node = sources.get(name)
        if node is None or node.op not in _OF_THE_SAME_SHAPE or not node.inputs:
            return None
        name = node.inputs[0]
    return None
