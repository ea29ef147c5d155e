# SPDX-License-Identifier: Apache-2.0
"""The comparison of two engines' layers: what is fused differently is compared as one."""

from __future__ import annotations

from bench.tensorrt.layers import paired
from pybench.kernels.engine_layers import Kind, Layer


def layer(name: str, nodes: tuple[str, ...], multiplies: str | None = "fp16", kind: Kind = "multiplying") -> Layer:
    return Layer(name, "type", "kernel", ("fp16",), ("fp16",), nodes, kind, multiplies, None, "fp16")


def test_layers_that_hold_the_same_nodes_are_paired() -> None:
    slow = [layer("a1", ("one",)), layer("move", (), None, "moving"), layer("a2", ("two",)), layer("a3", ("three",))]
    fast = [layer("b12", ("one", "two")), layer("b3", ("three",))]
    times = ({"a1": 1.0, "a2": 2.0, "a3": 3.0, "move": 0.5}, {"b12": 2.5, "b3": 4.0})
    groups, rest = paired((slow, fast), times)
    assert [(set(group.nodes), group.excess_ms) for group in groups] == [({"one", "two"}, 0.5), ({"three"}, -1.0)]
    assert rest == ({"moving": 0.5}, {})


def test_a_chain_of_overlapping_layers_is_one_group() -> None:
    slow = [layer("a", ("one", "two")), layer("b", ("three", "four"))]
    fast = [layer("c", ("two", "three")), layer("d", ("one",)), layer("e", ("four",))]
    groups, _ = paired((slow, fast), ({}, {}))
    assert [set(group.nodes) for group in groups] == [{"one", "two", "three", "four"}]
