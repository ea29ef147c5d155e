# SPDX-License-Identifier: Apache-2.0
"""Pairs of Q/DQ left out node by node, and the error of each pair, against files that were quantised so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from pybench.errors import InputError
from pybench.precision import int8
from pybench.precision.calibration import find_ranges
from pybench.precision.execution import open_model
from pybench.precision.network import Network, as_network, open_network
from pybench.precision.placement import Quantisation
from pybench.precision.qdq import quantise
from pybench.precision.sensitivity import OTHERS, QuantisedGraph
from tests.precision import graphs

SAMPLES = [graphs.images((4, 3, 8, 8), seed) for seed in range(3)]
HELD_OUT = [graphs.images((4, 3, 8, 8), seed) for seed in (10, 11)]
NODES = ["stem", "d", "a1", "a2", "b1", "b2", "head"]


def quantised(keep_fp32: str | None = None) -> Network:
    network = as_network(graphs.residual_block())
    quantise(network, find_ranges(network, SAMPLES, "minmax").amax, Quantisation("int8", keep_fp32=keep_fp32))
    return network


def outputs(model: onnx.ModelProto) -> np.ndarray:
    opened = open_model(model.SerializeToString(), pairs_apart=True)
    return np.concatenate([opened.run(feed)[0] for feed in HELD_OUT])


def fp32() -> np.ndarray:
    return outputs(graphs.residual_block())


def by_onnxruntime(folder: Path, scheme: str, *, pairs_weights: bool) -> Path:
    source = graphs.saved(graphs.residual_block(), folder / "source.onnx")
    path = folder / f"{scheme}-{pairs_weights}.onnx"
    int8.quantise(source, path, "minmax", SAMPLES, {}, scheme=scheme, pairs_weights=pairs_weights)
    return path


def test_without_any_pair_the_graph_is_the_one_in_fp32() -> None:
    graph = QuantisedGraph(quantised())
    assert [unit.name for unit in graph.units] == [*NODES, OTHERS]
    plain = graph.variant(())
    assert {"QuantizeLinear", "DequantizeLinear"}.isdisjoint(node.op_type for node in plain.nodes)
    assert np.array_equal(outputs(plain.model), fp32())


def test_with_all_pairs_it_is_the_file() -> None:
    network = quantised()
    graph = QuantisedGraph(network)
    assert np.array_equal(outputs(graph.variant(graph.units).model), outputs(network.model))


@pytest.mark.parametrize("name", ["stem", "a2", "head"])
def test_a_node_alone_computes_as_a_file_that_keeps_all_others(name: str) -> None:
    """The pair of a sum stays in such a file, so only nodes are compared that no sum is in front of or behind."""
    graph = QuantisedGraph(quantised())
    others = "|".join(node for node in NODES if node != name)
    kept = QuantisedGraph(quantised(keep_fp32=others))
    unit = next(unit for unit in graph.units if unit.name == name)
    assert [each.name for each in kept.units if each.name != OTHERS] == [name]
    same = next(unit for unit in kept.units if unit.name == name)
    assert np.array_equal(outputs(graph.variant([unit]).model), outputs(kept.variant([same]).model))
    assert not np.array_equal(outputs(graph.variant([unit]).model), fp32())


@pytest.mark.parametrize("scheme", ["symmetric", "asymmetric"])
def test_onnxruntimes_file_with_paired_weights_computes_as_its_usual_one(scheme: str, tmp_path: Path) -> None:
    """The usual one with zero points has no Relu and no weight in FP32: both are needed to leave its pairs out."""
    usual = by_onnxruntime(tmp_path, scheme, pairs_weights=False)
    paired = by_onnxruntime(tmp_path, scheme, pairs_weights=True)
    before, after = outputs(onnx.load(usual)), outputs(onnx.load(paired))
    assert np.linalg.norm(before - after) < 0.5 * np.linalg.norm(before - fp32())  # biases are in INT32 and in FP32
    graph = QuantisedGraph(open_network(paired))
    assert graph.has_zero_points == (scheme == "asymmetric")
    assert np.allclose(outputs(graph.variant(()).model), fp32(), atol=1e-5)


def test_a_file_that_has_codes_alone_cannot_be_taken_apart(tmp_path: Path) -> None:
    usual = by_onnxruntime(tmp_path, "asymmetric", pairs_weights=False)
    with pytest.raises(InputError, match="as codes alone"):
        QuantisedGraph(open_network(usual))


def pair_of(scale: float) -> QuantisedGraph:
    """x -> Q -> DQ -> times 1 -> y, which an output reads, too."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["codes"], "q"),
        helper.make_node("DequantizeLinear", ["codes", "scale", "zero"], ["rounded"], "dq"),
        helper.make_node("Mul", ["rounded", "one"], ["y"], "times"),
    ]
    constants = {"scale": np.float32(scale), "zero": np.int8(0), "one": np.float32(1)}
    graph = helper.make_graph(
        nodes, "pair",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    return QuantisedGraph(as_network(model))


def test_rounding_and_clipping_worked_by_hand() -> None:
    """Scale 1: 0.25 becomes 0, 3 stays, 130 becomes 127 and -131 becomes -128. Squares: 0.0625, 0, 9, 9."""
    values = np.array([0.25, 3.0, 130.0, -131.0], np.float32)
    (error,) = pair_of(1.0).tensor_errors([{"x": values[:3]}, {"x": values[3:]}])
    squares = float((values.astype(np.float64) ** 2).sum())
    assert (error.tensor, error.is_weight, error.scales) == ("x", False, 1)
    assert error.rms == pytest.approx((squares / 4) ** 0.5)
    assert error.rounding_ratio == pytest.approx((0.0625 / squares) ** 0.5)
    assert error.clipping_ratio == pytest.approx((18 / squares) ** 0.5)
    assert error.clipped_ratio == 0.5


def test_a_tensor_of_zeros_has_no_relative_error() -> None:
    (error,) = pair_of(1.0).tensor_errors([{"x": np.zeros(4, np.float32)}])
    assert (error.rounding_ratio, error.clipping_ratio, error.rms) == (None, None, 0.0)


def test_rounding_of_a_wide_tensor_is_that_of_a_uniform_error() -> None:
    """Steps are much smaller than values, so the error is uniform in a step: its rms is scale / sqrt(12)."""
    values = np.random.default_rng(0).standard_normal(100_000).astype(np.float32)
    scale = float(np.abs(values).max()) / 127
    (error,) = pair_of(scale).tensor_errors([{"x": values}])
    assert error.rounding_ratio == pytest.approx(scale / 12**0.5 / error.rms, rel=0.01)
    assert error.clipping_ratio == 0


def test_each_pair_of_a_network_has_its_error_weights_too() -> None:
    graph = QuantisedGraph(quantised())
    errors = {error.tensor: error for error in graph.tensor_errors(HELD_OUT)}
    assert {name for name, error in errors.items() if error.is_weight} == {f"{node}.weight" for node in NODES}
    assert {"x", "s", "a", "r1", "b", "flat"} <= errors.keys()
    assert errors["stem.weight"].scales == graphs.CHANNELS
    assert all(error.clipping_ratio == 0 for error in errors.values() if error.is_weight)
