# SPDX-License-Identifier: Apache-2.0
"""Pairing of kernels: what is fused differently is one row, and what has no node goes with what it feeds."""

from __future__ import annotations

import time

import pytest

from pybench.analysis.findings.kernel_rows import KernelRows, rows_of
from pybench.kernels.profile import Kernel, Profile, Work
from tests.kernels.test_engine import profile as engine


def kernel(
    name: str,
    nodes: tuple[str, ...] = (),
    time_ms: float | None = 1.0,
    work: Work = "multiplying",
    reads: tuple[str, ...] = (),
    writes: tuple[str, ...] = (),
) -> Kernel:
    return Kernel(name=name, kernel=name, work=work, nodes=nodes, reads=reads, writes=writes, time_ms=time_ms)


def profile(*kernels: Kernel) -> Profile:
    return Profile(source="onnxruntime", method="by hand", iterations=1, kernels=kernels)


def names(rows: KernelRows) -> list[tuple[list[str], list[str], list[str], list[str]]]:
    """Of each row: own kernels and those around them, of both sides."""
    found = []
    for row in rows.rows:
        parts = [[each.name for each in part] for side in row.sides for part in (side.own, side.around)]
        found.append((parts[0], parts[1], parts[2], parts[3]))
    return found


def test_kernels_of_the_same_nodes_are_a_row_and_the_costliest_comes_first() -> None:
    slow = profile(kernel("a1", ("one",), 1.0), kernel("a2", ("two",), 2.0), kernel("a3", ("three",), 3.0))
    fast = profile(kernel("b12", ("one", "two"), 2.5), kernel("b3", ("three",), 4.0))
    rows = rows_of((slow, fast))
    assert [(row.nodes, row.excess_ms) for row in rows.rows] == [(("one", "two"), 0.5), (("three",), -1.0)]
    assert names(rows)[0] == (["a1", "a2"], [], ["b12"], [])


def test_a_chain_of_overlapping_kernels_is_one_row() -> None:
    slow = profile(kernel("a", ("one", "two")), kernel("b", ("three", "four")))
    fast = profile(kernel("c", ("two", "three")), kernel("d", ("one",)), kernel("e", ("four",)))
    assert [set(row.nodes) for row in rows_of((slow, fast)).rows] == [{"one", "two", "three", "four"}]


def test_what_has_no_node_goes_with_the_first_kernel_that_it_feeds() -> None:
    slow = profile(
        kernel("quantise", ("x_QuantizeLinear",), 0.5, "quantising", ("x",), ("q",)),
        kernel("transpose", (), 0.25, "moving", ("q",), ("t",)),
        kernel("conv", ("conv",), 1.0, "multiplying", ("t",), ("y",)),
        kernel("later", ("later",), 1.0, "multiplying", ("t", "y"), ("z",)),
        kernel("dequantise", (), 0.125, "quantising", ("z",), ("out",)),
    )
    fast = profile(kernel("conv", ("conv",)), kernel("later", ("later",)))
    assert names(rows_of((slow, fast))) == [
        (["conv"], ["quantise", "transpose"], ["conv"], []),
        (["later"], ["dequantise"], ["later"], []),
    ]


def test_a_move_with_a_node_of_its_own_is_a_row_unless_its_node_is_computed_too() -> None:
    both = profile(kernel("reshape", ("reshape",), work="moving"), kernel("cast", ("gemm",), work="moving"),
                   kernel("gemm", ("gemm",)))  # fmt: skip
    assert names(rows_of((both, both))) == [
        (["reshape"], [], ["reshape"], []),
        (["gemm"], ["cast"], ["gemm"], ["cast"]),
    ]


def test_quantisers_that_were_folded_into_neighbours_join_nothing() -> None:
    slow = profile(
        kernel("a", ("one", "x_DequantizeLinear", "/m/q0/QuantizeLinear", "mean_q")),
        kernel("b", ("two", "x_DequantizeLinear", "/m/q0/QuantizeLinear", "mean_q")),
    )
    assert [row.nodes for row in rows_of((slow, slow)).rows] == [("one",), ("two",)]


def test_what_nothing_connects_is_not_assigned_and_spread_over_nothing() -> None:
    slow = profile(kernel("conv", ("conv",), 1.0), kernel("stray", (), 5.0, "moving", ("p",), ("q",)))
    rows = rows_of((slow, profile(kernel("conv", ("conv",), 1.0))))
    assert [[each.name for each in side] for side in rows.unassigned] == [["stray"], []]
    assert rows.rows[0].excess_ms == 0.0


def test_tensors_pass_through_what_runs_nothing() -> None:
    slow = profile(
        kernel("move", (), 1.0, "moving", ("x",), ("a",)),
        kernel("alias", (), None, "nothing", ("a",), ("b",)),
        kernel("conv", ("conv",), 1.0, "multiplying", ("b",), ("y",)),
    )
    assert names(rows_of((slow, slow)))[0] == (["conv"], ["move"], ["conv"], ["move"])


@pytest.mark.parametrize(
    ("first", "second"), [("int8+fp16-residual", "fp8-residual"), ("fp16", "bf16"), ("fp32", "tf32")]
)
def test_recorded_engines_of_one_graph_are_paired_row_by_row(first: str, second: str) -> None:
    rows = rows_of((engine(first), engine(second)))
    assert rows.unassigned == ((), ())
    assert 54 <= len(rows.rows) <= 56
    assert all(side.own for row in rows.rows for side in row.sides)
    products = [sum(each.work == "multiplying" for each in side.own) for row in rows.rows for side in row.sides]
    assert max(products) <= 2, "where one engine computes an Add in another convolution, two share a row"
    assert products.count(1) >= 100


@pytest.mark.timing
def test_ten_times_as_many_layers_are_paired_in_about_ten_times_the_time() -> None:
    def engine_of(layers_count: int, shift: int) -> Profile:
        layers = []
        for number in range(layers_count // 2):
            nodes = (f"conv{number}", f"relu{number - number % 2 * shift}")
            moved, written = (f"m{number}",), (f"t{number + 1}",)
            layers += [
                kernel(f"move{number}", (), 0.1, "moving", (f"t{number}",), moved),
                kernel(f"conv{number}", nodes, 1.0, "multiplying", moved, written),
            ]
        return profile(*layers)

    def cpu_s(layers_count: int) -> float:
        sides = (engine_of(layers_count, 0), engine_of(layers_count, 1))
        begin = time.thread_time()
        rows = rows_of(sides)
        taken_s = time.thread_time() - begin
        assert rows.unassigned == ((), ())
        assert len(rows.rows) == layers_count // 4
        return taken_s

    short, long = (min(cpu_s(count) for _ in range(3)) for count in (400, 4000))
    assert long < 40 * short  # every pair of them would take a hundred times
