# SPDX-License-Identifier: Apache-2.0
"""Origins of nodes, on graphs that onnxruntime itself optimised."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from pybench.kernels.executed import origins
from pybench.onnx_file.graph import OnnxGraph, OnnxNode, read_graph
from tests.support.onnx_models import model


def optimised(path: Path) -> OnnxGraph:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.optimized_model_filepath = str(path.with_name("optimised.onnx"))
    onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return read_graph(path.with_name("optimised.onnx"))


def saved(folder: Path, nodes: list[onnx.NodeProto], weights: dict[str, np.ndarray], output: str) -> Path:
    path = folder / "model.onnx"
    onnx.save(model(nodes, [("x", 1, [1, 16, 8, 8])], [(output, 1, None)], dict(weights), opset=17), path)
    return path


def convolution(number: int, source: str, target: str) -> onnx.NodeProto:
    return helper.make_node("Conv", [source, f"w{number}"], [target], name=f"conv{number}", pads=[1, 1, 1, 1])


WEIGHTS = {f"w{number}": np.full((16, 16, 3, 3), 0.01, np.float32) for number in (1, 2)}


def test_what_is_fused_into_a_convolution_belongs_to_it(tmp_path: Path) -> None:
    nodes = [
        convolution(1, "x", "a"),
        helper.make_node("Relu", ["a"], ["b"], name="relu1"),
        convolution(2, "b", "c"),
        helper.make_node("Add", ["c", "b"], ["d"], name="add"),
        helper.make_node("Relu", ["d"], ["y"], name="relu2"),
    ]
    path = saved(tmp_path, nodes, WEIGHTS, "y")
    executed = optimised(path)
    found = origins(read_graph(path), executed)
    products = [nodes for node, nodes in zip(executed.nodes, found, strict=True) if "Conv" in node.op]
    assert products == [("conv1", "relu1"), ("conv2", "add", "relu2")]
    inserted = [nodes for node, nodes in zip(executed.nodes, found, strict=True) if node.op.startswith("Reorder")]
    assert all(nodes == () for nodes in inserted)
    assert len(inserted) >= 1


def test_every_node_that_computes_is_found_once(tmp_path: Path) -> None:
    nodes = [
        convolution(1, "x", "a"),
        helper.make_node("Sigmoid", ["a"], ["b"], name="gate"),
        helper.make_node("Mul", ["a", "b"], ["c"], name="times"),
        helper.make_node("Transpose", ["c"], ["d"], name="Transpose", perm=[0, 2, 3, 1]),
        helper.make_node("Softmax", ["d"], ["y"], name="softmax"),
    ]
    path = saved(tmp_path, nodes, WEIGHTS, "y")
    found = origins(read_graph(path), optimised(path))
    assert sorted(name for names in found for name in names) == ["Transpose", "conv1", "gate", "softmax", "times"]


def test_a_node_without_a_name_is_named_after_its_output(tmp_path: Path) -> None:
    path = saved(tmp_path, [helper.make_node("Softmax", ["x"], ["y"])], {}, "y")
    assert origins(read_graph(path), optimised(path)) == [("node_of_y",)]


def graph_of(*nodes: OnnxNode) -> OnnxGraph:
    return OnnxGraph(nodes, {}, {}, {})


def test_a_transpose_that_was_put_in_is_not_the_node_whose_output_it_writes() -> None:
    written = graph_of(OnnxNode("MaxPool", "pool", ("x",), ("y",)))
    executed = graph_of(
        OnnxNode("MaxPool", "pool_token_1", ("x",), ("pool",)), OnnxNode("Transpose", "t", ("pool",), ("y",))
    )
    assert origins(written, executed) == [("pool",), ()]


def test_a_fused_group_that_keeps_its_tensors_has_every_node_between_them() -> None:
    written = graph_of(
        OnnxNode("Conv", "conv", ("x",), ("a",)),
        OnnxNode("ReduceMean", "mean", ("a",), ("b",)),
        OnnxNode("Sub", "sub", ("a", "b"), ("c",)),
        OnnxNode("Pow", "square", ("c",), ("d",)),
        OnnxNode("Div", "divide", ("c", "d"), ("y",)),
    )
    executed = graph_of(
        OnnxNode("Conv", "conv", ("x",), ("a",)), OnnxNode("LayerNormalization", "LayerNormalization_7", ("a",), ("y",))
    )
    assert origins(written, executed) == [("conv",), ("mean", "sub", "square", "divide")]


@pytest.mark.parametrize("name", ["conv_token_3", "conv_nchwc", "fused conv"])
def test_a_name_that_was_changed_is_recognised(name: str) -> None:
    written = graph_of(OnnxNode("Conv", "conv", ("x",), ("y",)))
    assert origins(written, graph_of(OnnxNode("FusedConv", name, ("x",), ("new",)))) == [("conv",)]


def test_a_kernel_without_a_trace_has_no_nodes() -> None:
    written = graph_of(OnnxNode("Conv", "conv", ("x",), ("y",)))
    assert origins(written, graph_of(OnnxNode("FusedConv", "other", ("r",), ("s",)))) == [()]
