# SPDX-License-Identifier: Apache-2.0
"""The search of nodes that stay in FP32: its result against every set there is, and how many graphs it runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from pybench.errors import InputError
from pybench.onnx_file.graph import read_graph
from pybench.precision.execution import Agreement
from pybench.precision.int8 import quantise
from pybench.precision.keeping import KeepableUnit, keepable_units, search
from pybench.precision.network import open_network
from tests.precision import graphs

Run = Callable[[frozenset[str]], Agreement]

UNITS = [KeepableUnit(f"n{number}", frozenset({f"n{number}"})) for number in range(10)]


def agreement(error: float | None) -> Agreement:
    return Agreement(0.99, error, 1.0, 0.5, error, 10, samples=100)


def independent(errors: dict[str, float]) -> Run:
    """Of nodes whose errors point in directions of their own: squares add up."""
    return lambda kept: agreement(math.sqrt(sum(error**2 for name, error in errors.items() if name not in kept)))


def fewest(units: list[KeepableUnit], run: Run, bound: float) -> int:
    """The size of the smallest set that meets a bound, of all sets."""
    for size in range(len(units) + 1):
        for kept in combinations(units, size):
            if (run(frozenset(unit.name for unit in kept)).signal_error or 0) <= bound:
                return size
    raise AssertionError


@pytest.mark.parametrize("seed", range(8))
def test_of_independent_errors_it_finds_the_fewest_nodes_in_the_number_of_runs_that_it_promises(seed: int) -> None:
    values = np.random.default_rng(seed).lognormal(-4, 1.5, len(UNITS))
    run = independent(dict(zip((unit.name for unit in UNITS), values.tolist(), strict=True)))
    bound = 0.5 * (run(frozenset()).signal_error or 0)
    found = search(UNITS, run, bound)
    assert (found.found.signal_error) <= bound
    assert len(found.kept) == fewest(UNITS, run, bound) >= 1
    assert len(found.trials) <= 1 + len(UNITS) + math.log2(len(UNITS)) + len(found.kept) + 1
    assert found.trials[0].kept == ()
    assert found.errors_alone == pytest.approx({unit.name: v for unit, v in zip(UNITS, values, strict=True)})
    assert len({trial.kept for trial in found.trials}) == len(found.trials)


def test_a_node_that_another_one_makes_good_is_quantised_again() -> None:
    """n0 ranks first, and n1 and n2 together are all that matters once they are kept."""

    def run(kept: frozenset[str]) -> Agreement:
        pair = 0.0 if {"n1", "n2"} <= kept else 0.3
        return agreement(0.01 * (len(UNITS) - len(kept)) / len(UNITS) + pair + (0.05 if kept == {"n1", "n2"} else 0))

    found = search(UNITS, run, 0.1)
    assert [unit.name for unit in found.kept] == ["n1", "n2"]
    for unit in found.kept:
        assert (run(frozenset({"n1", "n2"} - {unit.name})).signal_error or 0) > 0.1


def test_no_kept_node_can_be_left_out_where_errors_cancel() -> None:
    rng = np.random.default_rng(0)
    directions = {unit.name: vector for unit, vector in zip(UNITS, rng.standard_normal((len(UNITS), 3)), strict=True)}

    def run(kept: frozenset[str]) -> Agreement:
        rest = [vector for name, vector in directions.items() if name not in kept]
        return agreement(float(np.linalg.norm(np.sum(rest, axis=0))))

    for bound in (1.5, 1.6, 1.8):
        found = search(UNITS, run, bound)
        kept = frozenset(unit.name for unit in found.kept)
        assert (run(kept).signal_error or 0) <= bound
        assert all((run(kept - {name}).signal_error or 0) > bound for name in kept)


def test_nothing_is_ranked_where_nothing_has_to_be_kept() -> None:
    found = search(UNITS, independent({"n0": 0.01}), 0.02)
    assert (found.kept, len(found.trials), found.errors_alone) == ((), 1, {})


def test_outputs_that_are_no_numbers_meet_no_bound() -> None:
    errors = {"n0": 0.01}
    found = search(UNITS, lambda kept: independent(errors)(kept) if "n3" in kept else agreement(None), 0.5)
    assert [unit.name for unit in found.kept] == ["n3"]
    assert found.errors_alone["n3"] is None


@pytest.mark.parametrize("units", [UNITS, UNITS[:1], []], ids=len)
def test_a_bound_that_no_node_may_be_quantised_for_is_an_error(units: list[KeepableUnit]) -> None:
    with pytest.raises(InputError, match=f"at most one of {len(units)} nodes quantised; keep_error_max is 0.001"):
        search(units, lambda kept: agreement(0.2), 0.001)


def test_a_model_whose_outputs_do_not_vary_is_told_so() -> None:
    with pytest.raises(InputError, match="the signal error is no number with at most one of 10 nodes"):
        search(UNITS, lambda kept: agreement(None), 0.5)


def test_operators_that_onnxruntime_rounds_go_with_the_convolution_in_front_of_them(tmp_path: Path) -> None:
    source, path = graphs.saved(graphs.residual_block(), tmp_path / "block.onnx"), tmp_path / "int8.onnx"
    image = np.random.default_rng(0).standard_normal((4, 3, 8, 8)).astype(np.float32)
    quantise(source, path, "minmax", [{"x": image}], {}, scheme="symmetric", excluded=["a1"])
    network, quantised = open_network(source), read_graph(path)
    units = {unit.name: unit.nodes for unit in keepable_units(network, quantised, ["a1"], rounds_others=True)}
    assert list(units) == ["stem", "d", "a2", "b1", "b2", "head"]  # in running order, without what is kept anyhow
    assert units["stem"] == {"stem", "node_s"}
    assert units["a2"] == {"a2", "node_sum1", "node_r1"}
    alone = keepable_units(network, quantised, ["a1"], rounds_others=False)
    assert [unit.nodes for unit in alone] == [{name} for name in units]


def test_nodes_that_share_a_weight_are_one_unit_where_the_quantiser_rounds_it_for_all(tmp_path: Path) -> None:
    made = shared_weight()
    source, path = graphs.saved(made, tmp_path / "shared.onnx"), tmp_path / "int8.onnx"
    feed = {"x": np.random.default_rng(0).standard_normal((8, 16)).astype(np.float32)}
    quantise(source, path, "minmax", [feed], {})
    network, quantised = open_network(source), read_graph(path)
    units = keepable_units(network, quantised, (), rounds_others=True)
    assert [unit.name for unit in units] == ["first", "last"]
    assert {"first", "second"} <= units[0].nodes
    for unit in units:  # the quantiser leaves each of them alone
        quantise(source, path, "minmax", [feed], {}, excluded=sorted(unit.nodes))
    alone = keepable_units(network, quantised, (), rounds_others=False)
    assert [unit.name for unit in alone] == ["first", "second", "last"]


def shared_weight() -> onnx.ModelProto:
    """x [n, 16] -> first -> relu -> second, by the same weight, -> last [n, 8]."""
    rng = np.random.default_rng(0)
    weights = {name: rng.standard_normal((16, size)).astype(np.float32) for name, size in (("w", 16), ("v", 8))}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], "first"),
        helper.make_node("Relu", ["a"], ["r"], "relu"),
        helper.make_node("MatMul", ["r", "w"], ["b"], "second"),
        helper.make_node("MatMul", ["b", "v"], ["y"], "last"),
    ]
    return graphs.model(nodes, {"x": ["n", 16]}, {"y": ["n", 8]}, weights)
