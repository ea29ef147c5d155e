# SPDX-License-Identifier: Apache-2.0
"""Which nodes of an ONNX file each node of the graph came from that onnxruntime executes.

onnxruntime fuses nodes, changes layouts and renames; it writes the optimised graph, but not what became of what. Three
traces are left:

- A node keeps its name, with `_token_3` behind it where it was made anew.
- A node of the blocked layout is named after the tensor that it stood for, with `_nchwc` behind.
- Tensors between fused groups keep their names.

From such an anchor the origin is followed upstream until the operator that is executed is found. Nodes that are then
left (an Add fused into a convolution, a Relu into a quantiser) belong to the last of the kernels that they read from.
Constants and Q/DQ nodes that were folded are nobody's. Seen with onnxruntime 1.31; a name without a trace gives no
nodes, and nothing is guessed from shapes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from pybench.onnx_file.graph import OnnxGraph, OnnxNode, node_name
from pybench.onnx_file.products import DEQUANTISE, QUANTISE

QDQ = frozenset({QUANTISE, DEQUANTISE, "DynamicQuantizeLinear"})
MOVING = frozenset(
    {
        "Transpose", "Reshape", "ReorderInput", "ReorderOutput", "Cast", "Concat", "Slice", "Split", "Squeeze",
        "Unsqueeze", "Flatten", "Identity", "Expand", "Tile", "Pad", "MemcpyToHost", "MemcpyFromHost",
    }
)  # fmt: skip

_SUFFIX = re.compile(r"(_token_\d+|_nchwc)$")
_PREFIX = re.compile("^fused ")
_FAMILY = re.compile("Conv|MatMul|Gemm|MaxPool|AveragePool|Attention")
_VARIANT = re.compile("^(QLinear|Nhwc|Fused|DynamicQuantize)")


def origins(written: OnnxGraph, executed: OnnxGraph) -> list[tuple[str, ...]]:
    """For each node of the executed graph the names of the nodes of the file that it computes, in the file's order."""
    trail = _Trail(written)
    anchors = [trail.anchor(node) for node in executed.nodes]
    taken = frozenset(place for place in anchors if place is not None)
    owner: dict[int, int] = {}
    for number, (node, place) in enumerate(zip(executed.nodes, anchors, strict=True)):
        if place is not None:
            for found in trail.region(node, place, taken):
                owner.setdefault(found, number)
    trail.complete(owner)
    found_of: dict[int, list[int]] = {}
    for place, number in sorted(owner.items()):
        found_of.setdefault(number, []).append(place)
    return [tuple(trail.name(place) for place in found_of.get(number, ())) for number in range(len(executed.nodes))]


class _Trail:
    """The nodes of the file by their places in it."""

    def __init__(self, written: OnnxGraph) -> None:
        self._nodes = written.nodes
        self._by_name = {node.name: place for place, node in enumerate(written.nodes) if node.name}
        self._by_output = {output: place for place, node in enumerate(written.nodes) for output in node.outputs}

    def name(self, place: int) -> str:
        node = self._nodes[place]
        return node_name(node.name, node.outputs[0] if node.outputs else "")

    def anchor(self, executed: OnnxNode) -> int | None:
        """A node of the file that the executed one computes; None: it is new, or its name has no trace."""
        stem = _stem(executed.name)
        for place in (self._by_name.get(stem), self._by_output.get(stem), *map(self._by_output.get, executed.outputs)):
            # What moves or quantises may stand where another node's output was: it is that node only if it is one.
            if place is not None and (executed.op not in MOVING | QDQ or self._nodes[place].op == executed.op):
                return place
        return None

    def region(self, executed: OnnxNode, anchor: int, taken: frozenset[int]) -> list[int]:
        """The anchor and what is upstream of it, up to the operator that is executed, or to what the kernel reads."""
        wanted = _family(executed.op)
        if _family(self._nodes[anchor].op) == wanted:
            return [anchor]
        reached = {anchor: anchor}
        waiting = [anchor]
        while waiting:
            place = waiting.pop(0)
            if _family(self._nodes[place].op) == wanted:
                return self._kept(_way(reached, place, anchor))
            for source in self._sources(place, executed.inputs):
                if source not in reached and source not in taken:
                    reached[source] = place
                    waiting.append(source)
        is_bounded = any(name in self._by_output for name in executed.inputs)
        return self._kept(reached) if is_bounded else [anchor]

    def complete(self, owner: dict[int, int]) -> None:
        """Gives every node that is left to the kernel that runs last of those that it reads from."""
        through = dict(owner)
        for place, node in enumerate(self._nodes):
            if place in owner:
                continue
            sources = [through[source] for source in self._sources(place, ()) if source in through]
            if sources:
                through[place] = max(sources)
                if node.op not in QDQ:
                    owner[place] = through[place]

    def _sources(self, place: int, beyond: Iterable[str]) -> list[int]:
        read = [name for name in self._nodes[place].inputs if name not in beyond]
        return [self._by_output[name] for name in read if name in self._by_output]

    def _kept(self, places: Iterable[int]) -> list[int]:
        return [place for place in places if self._nodes[place].op not in QDQ | {"Constant"}]


def _way(reached: Mapping[int, int], place: int, anchor: int) -> list[int]:
    """The nodes between two, both included."""
    way = [place]
    while way[-1] != anchor:
        way.append(reached[way[-1]])
    return way


def _stem(name: str) -> str:
    name = _PREFIX.sub("", name)
    while found := _SUFFIX.search(name):
        name = name[: found.start()]
    return name


def _family(operator: str) -> str:
    """`Conv` of QLinearConv, FusedConv and ConvInteger."""
    found = _FAMILY.search(operator)
    return found[0] if found else _VARIANT.sub("", operator)
