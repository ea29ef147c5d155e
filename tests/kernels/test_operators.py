# SPDX-License-Identifier: Apache-2.0
"""Traces as onnxruntime 1.31 writes them, cut to what matters."""

from __future__ import annotations

from typing import Any

import pytest

from pybench.kernels.operators import profile_of_runs
from pybench.onnx_file.graph import OnnxGraph, OnnxNode


def event(name: str, begin: int, length: int, op: str = "", **arguments: Any) -> dict[str, Any]:
    return {"cat": "Node", "name": f"{name}_kernel_time", "ts": begin, "dur": length,
            "args": {"op_name": op, **arguments}}  # fmt: skip


def run(begin: int, length: int) -> dict[str, Any]:
    return {"cat": "Session", "name": "model_run", "ts": begin, "dur": length}


WRITTEN = OnnxGraph((OnnxNode("Conv", "conv", ("x", "w"), ("y",)),), {"w": ("float32", 9)}, {}, {})
UINT8 = {"input_type_shape": [{"uint8": [1]}, {"float": []}], "output_type_shape": [{"uint8": [1]}]}


def test_a_node_has_the_median_of_the_runs_that_count() -> None:
    trace = []
    for number, length in enumerate((900, 10, 12, 200)):
        begin = 1000 * number
        trace += [run(begin, length + 5), event("conv_token_1", begin + 2, length, "QLinearConv", **UINT8)]
    executed = OnnxGraph((OnnxNode("QLinearConv", "conv_token_1", ("x", "w"), ("y",)),), {"w": ("int8", 9)}, {}, {})
    found = profile_of_runs(trace, WRITTEN, executed, skipped=1)
    (kernel,) = found.kernels
    assert kernel.time_ms == pytest.approx(0.012)
    assert (kernel.work, kernel.computes_in, kernel.nodes) == ("multiplying", "int8", ("conv",))
    assert (kernel.inputs, kernel.outputs) == (("uint8", "fp32"), ("uint8",))
    assert (kernel.reads, kernel.writes) == (("x",), ("y",)), "weights are not read from another kernel"
    assert (found.iterations, found.iteration_ms) == (3, pytest.approx(0.017))
    assert "after every window" in found.method


def test_nodes_inside_a_loop_count_in_the_loop_alone() -> None:
    trace = [run(0, 100), event("loop", 5, 60, "Loop"), event("inner", 10, 20, "Add"), event("end", 70, 10, "Relu")]
    found = profile_of_runs(trace, WRITTEN, OnnxGraph((), {}, {}, {}), skipped=0)
    assert [(kernel.name, kernel.work) for kernel in found.kernels] == [("loop", "other"), ("end", "other")]


def test_nodes_without_names_are_found_by_their_order() -> None:
    written = OnnxGraph((OnnxNode("Relu", "", ("x",), ("a",)), OnnxNode("Relu", "", ("a",), ("y",))), {}, {}, {})
    trace = [run(0, 100), event("Relu_4", 5, 10, "Relu"), event("Relu_9", 20, 10, "Relu")]
    found = profile_of_runs(trace, written, written, skipped=0)
    assert [kernel.nodes for kernel in found.kernels] == [("node_of_a",), ("node_of_y",)]


def test_nodes_of_one_name_are_kept_apart() -> None:
    written = OnnxGraph(
        (OnnxNode("Relu", "same", ("x",), ("a",)), OnnxNode("Tanh", "same", ("a",), ("y",))), {}, {}, {}
    )
    trace = [run(0, 100), event("same", 5, 10, "Relu", node_index="3"), event("same", 20, 30, "Tanh", node_index="4")]
    found = profile_of_runs(trace, written, written, skipped=0)
    assert [(kernel.name, kernel.kernel, kernel.time_ms) for kernel in found.kernels] == [
        ("same", "Relu", pytest.approx(0.01)), ("same #4", "Tanh", pytest.approx(0.03)),
    ]  # fmt: skip
    assert [kernel.writes for kernel in found.kernels] == [("a",), ("y",)]


def test_nodes_without_names_stay_unknown_where_their_number_differs() -> None:
    written = OnnxGraph((OnnxNode("Relu", "", ("x",), ("a",)), OnnxNode("Relu", "", ("a",), ("y",))), {}, {}, {})
    found = profile_of_runs([run(0, 100), event("Relu_4", 5, 10, "Relu")], written, written, skipped=0)
    assert [kernel.nodes for kernel in found.kernels] == [()]


@pytest.mark.parametrize(
    ("operator", "work"),
    [("QGemm", "multiplying"), ("MatMulNBits", "multiplying"), ("QuantizeLinear", "quantising"),
     ("ReorderOutput", "moving"), ("NhwcMaxPool", "other"), ("QLinearAdd", "other"), ("Cast", "moving")],
)  # fmt: skip
def test_what_operators_do(operator: str, work: str) -> None:
    found = profile_of_runs([run(0, 100), event("n", 5, 10, operator)], WRITTEN, WRITTEN, skipped=0)
    assert found.kernels[0].work == work


def test_weights_that_are_dequantised_in_every_run_are_constants() -> None:
    weights = {"w": ("int8", 9), "s": ("float32", 1)}
    executed = OnnxGraph((OnnxNode("DequantizeLinear", "d", ("w", "s"), ("y",)),), weights, {}, {})
    found = profile_of_runs([run(0, 100), event("d", 5, 10, "DequantizeLinear")], WRITTEN, executed, skipped=0)
    assert found.kernels[0].of_constants


def test_a_trace_without_a_run_that_counts_is_no_profile() -> None:
    with pytest.raises(ValueError, match="no run"):
        profile_of_runs([run(0, 10)], WRITTEN, WRITTEN, skipped=1)


@pytest.mark.parametrize(("accuracy_level", "told"), [(1, "fp32"), (4, None)])
def test_a_product_that_may_round_activations_has_no_type_that_the_trace_tells(
    accuracy_level: int, told: str | None
) -> None:
    node = OnnxNode("MatMulNBits", "product", ("x", "w"), ("y",), attributes=(("accuracy_level", (accuracy_level,)),))
    types = {"input_type_shape": [{"float": [1]}], "output_type_shape": [{"float": [1]}]}
    trace = [run(0, 20), event("product", 2, 10, "MatMulNBits", **types)]
    graph = OnnxGraph((node,), {"w": ("uint8", 9)}, {}, {})
    (kernel,) = profile_of_runs(trace, graph, graph, skipped=0).kernels
    assert (kernel.work, kernel.computes_in) == ("multiplying", told)
