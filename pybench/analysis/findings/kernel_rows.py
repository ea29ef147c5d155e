# SPDX-License-Identifier: Apache-2.0
"""Two profiles of one model, row by row: the kernels on both sides that compute the same ONNX nodes.

A runtime fuses nodes, so one kernel may compute several, and one side's kernel may be several of the other's. A row is
therefore the finest set of nodes that no kernel of either side is split by. What has no node of its own (moves,
reformats, quantisations) belongs as a whole to the row of the kernel that it feeds. If it feeds none, it belongs to the
row of the kernel that fed it. What is left is not assigned, and its time is spread over nothing.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pybench.kernels.profile import Kernel, Profile, total_ms

# Names of Q/DQ nodes. Folded into a kernel they say what it reads, not what it computes, and would join neighbours.
_QDQ = re.compile(r"(?:de)?quantize_?linear|_d?q(?:_\d+)?$", re.IGNORECASE)

_AROUND = frozenset({"moving", "quantising"})


@dataclass(frozen=True, slots=True)
class RowSide:
    """One side of a row.

    own: the kernels that compute its nodes
    around: the kernels that feed them or are fed by them
    """

    own: tuple[Kernel, ...]
    around: tuple[Kernel, ...]

    @property
    def time_ms(self) -> float:
        return total_ms(self.own) + total_ms(self.around)


@dataclass(frozen=True, slots=True)
class KernelRow:
    """Nodes that are compared as one. `nodes`: in the order of their first appearance."""

    nodes: tuple[str, ...]
    sides: tuple[RowSide, RowSide]

    @property
    def excess_ms(self) -> float:
        """How much longer the first side takes."""
        return self.sides[0].time_ms - self.sides[1].time_ms


@dataclass(frozen=True, slots=True)
class KernelRows:
    """`rows`: the costliest for the first side first; without times in the order of execution. `unassigned`: kernels
    of each side that are in no row."""

    rows: tuple[KernelRow, ...]
    unassigned: tuple[tuple[Kernel, ...], tuple[Kernel, ...]]


def rows_of(sides: tuple[Profile, Profile]) -> KernelRows:
    """Pairs the kernels of two profiles by the nodes that they compute."""
    keys = [_keys(profile.kernels) for profile in sides]
    row_of_node, nodes_of_row = _joined([nodes for side in keys for nodes in side.values()])
    placed = [_placed(profile.kernels, side, row_of_node) for profile, side in zip(sides, keys, strict=True)]
    rows = [
        KernelRow(tuple(nodes), (_side(placed[0], number), _side(placed[1], number)))
        for number, nodes in enumerate(nodes_of_row)
    ]
    if any(profile.has_times for profile in sides):
        rows.sort(key=lambda row: -row.excess_ms)
    unassigned = [
        tuple(kernel for kernel in profile.running if kernel.name not in side.own and kernel.name not in side.around)
        for profile, side in zip(sides, placed, strict=True)
    ]
    return KernelRows(tuple(rows), (unassigned[0], unassigned[1]))


def _keys(kernels: Iterable[Kernel]) -> dict[str, tuple[str, ...]]:
    """Kernel -> the nodes that it is joined by. What quantises has none: its nodes are on one side only."""
    found = {
        kernel.name: tuple(node for node in kernel.nodes if not _QDQ.search(node))
        for kernel in kernels
        if kernel.work not in ("quantising", "nothing")
    }
    return {name: nodes for name, nodes in found.items() if nodes}


def _joined(collections: Sequence[Sequence[str]]) -> tuple[dict[str, int], list[list[str]]]:
    """The finest sets that no given collection is split by: node -> number of its set, and the sets, in the order of
    their first node."""
    parent: dict[str, str] = {}

    def root(node: str) -> str:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for nodes in collections:
        for node in nodes:
            parent.setdefault(node, node)
            parent[root(node)] = root(nodes[0])
    numbers: dict[str, int] = {}
    number_of = {node: numbers.setdefault(root(node), len(numbers)) for node in parent}
    sets: list[list[str]] = [[] for _ in numbers]
    for node, number in number_of.items():
        sets[number].append(node)
    return number_of, sets


@dataclass(frozen=True, slots=True)
class _Placed:
    """Kernel's name -> number of its row, for kernels with nodes and for those around them, and the kernels by name."""

    own: Mapping[str, int]
    around: Mapping[str, int]
    by_row: Mapping[int, tuple[list[Kernel], list[Kernel]]]


def _placed(kernels: Sequence[Kernel], keys: Mapping[str, tuple[str, ...]], row_of_node: Mapping[str, int]) -> _Placed:
    own = {name: row_of_node[nodes[0]] for name, nodes in keys.items()}
    readers: dict[str, list[int]] = defaultdict(list)
    writers: dict[str, list[int]] = defaultdict(list)
    for place, kernel in enumerate(kernels):
        for tensor in kernel.reads:
            readers[tensor].append(place)
        for tensor in kernel.writes:
            writers[tensor].append(place)
    around: dict[str, int] = {}

    def attach(kernel: Kernel, neighbours: Iterable[int]) -> None:
        for place in neighbours:
            name = kernels[place].name
            number = own.get(name, around.get(name))
            if number is not None and kernel.name not in own:
                around.setdefault(kernel.name, number)

    for kernel in reversed(kernels):  # backwards: what a kernel feeds has its row already, and the first reader counts
        attach(kernel, sorted(place for tensor in kernel.writes for place in readers[tensor]))
    for kernel in kernels:
        attach(kernel, sorted((place for tensor in kernel.reads for place in writers[tensor]), reverse=True))
    by_row: dict[int, tuple[list[Kernel], list[Kernel]]] = defaultdict(lambda: ([], []))
    for kernel in kernels:
        if kernel.name in own:
            by_row[own[kernel.name]][0].append(kernel)
        elif kernel.name in around and kernel.work != "nothing":
            by_row[around[kernel.name]][1].append(kernel)
    return _Placed(own, around, by_row)


def _side(placed: _Placed, number: int) -> RowSide:
    """Of kernels with nodes those that only move or quantise are around the others, if there are others."""
    own, around = placed.by_row.get(number, ([], []))
    computing = tuple(kernel for kernel in own if kernel.work not in _AROUND)
    if not computing:
        return RowSide(tuple(own), tuple(around))
    return RowSide(computing, (*(kernel for kernel in own if kernel.work in _AROUND), *around))
