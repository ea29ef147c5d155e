# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from pybench.case import Case
from pybench.errors import InputError, UnsupportedError
from pybench.precision.conversion import convert
from pybench.precision.emulation import emulate
from pybench.precision.execution import compare, open_model
from pybench.precision.network import Network, as_network, open_network
from tests.precision import graphs
from tests.support.making import artefacts_of

LOW = {"fp16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}


def float_types(network: Network) -> set[int]:
    """Types of all floating tensors between the first and the last Cast."""
    inner = {name for node in network.nodes for name in (*node.input, *node.output) if name}
    ends = {entry.name for entry in (*network.graph.input, *network.graph.output)}
    kinds = {network.type_of(name) for name in inner - ends}
    return {kind for kind in kinds if kind in (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16)}


@pytest.mark.parametrize("floating", ["fp16", "bf16"])
@pytest.mark.parametrize("made", [graphs.residual_block(), graphs.attention()], ids=["residual", "attention"])
def test_every_floating_tensor_is_in_one_type_and_the_ends_in_fp32(made: onnx.ModelProto, floating: str) -> None:
    network = as_network(made)
    names = [node.name for node in network.nodes]
    done = convert(network, floating)
    onnx.checker.check_model(network.model, full_check=True)
    assert float_types(network) == {LOW[floating]}
    assert {entry.type.tensor_type.elem_type for entry in network.graph.output} == {TensorProto.FLOAT}
    assert [node.name for node in network.nodes if node.op_type != "Cast"] == names
    assert sum(node.op_type == "Cast" for node in network.nodes) == 2
    assert (done.kept, done.clipped) == ({}, 0)
    assert network.opset == (22 if floating == "bf16" else 20)


@pytest.mark.parametrize(("floating", "error"), [("fp16", 2e-3), ("bf16", 2e-2)])
def test_outputs_stay_as_close_as_the_type_allows(floating: str, error: float) -> None:
    network = as_network(graphs.residual_block())
    before = open_model(network.model.SerializeToString()).run(graphs.images((4, 3, 8, 8)))[0]
    convert(network, floating)
    after = open_model(emulate(network).SerializeToString()).run(graphs.images((4, 3, 8, 8)))[0]
    assert error / 20 < compare(before, after).relative_error < error


def test_the_emulation_equals_fp16_kernels_where_onnxruntime_rounds_every_tensor() -> None:
    """Outputs of every node force the roundings that onnxruntime would leave out; sums may differ in the last digit."""
    network = as_network(graphs.residual_block())
    convert(network, "fp16")
    emulated = open_model(emulate(network).SerializeToString(), passes=False).run(graphs.images((4, 3, 8, 8)))[0]
    exposed = onnx.ModelProto()
    exposed.CopyFrom(network.model)
    low = [name for node in network.nodes for name in node.output if network.type_of(name) == TensorProto.FLOAT16]
    exposed.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT16, None) for name in low)
    rounded = open_model(exposed.SerializeToString(), passes=False).run(graphs.images((4, 3, 8, 8)))[0]
    assert np.allclose(emulated, rounded, rtol=2e-3, atol=2e-3)
    assert not np.array_equal(emulated, open_model(network.model.SerializeToString()).run(
        graphs.images((4, 3, 8, 8)))[0])  # fmt: skip


def test_what_vanishes_in_fp16_vanishes_in_the_emulation() -> None:
    """The product of the first node is below FP16's smallest number; onnxruntime alone would carry it on in FP32."""
    nodes = [
        helper.make_node("Mul", ["x", "small"], ["tiny"], "shrink"),
        helper.make_node("Mul", ["tiny", "large"], ["y"], "grow"),
    ]
    constants = {"small": np.array([1e-5], np.float32), "large": np.array([6e4], np.float32)}
    network = as_network(graphs.model(nodes, {"x": [1]}, {"y": [1]}, constants))
    convert(network, "fp16")
    feed = {"x": np.array([1e-3], np.float32)}
    assert open_model(emulate(network).SerializeToString()).run(feed)[0] == 0


def test_the_keep_list_computes_in_fp32_between_two_casts() -> None:
    network = as_network(graphs.residual_block())
    done = convert(network, "fp16", keep_fp32="a2|head")
    onnx.checker.check_model(network.model, full_check=True)
    assert done.kept == {"a2": "keep_fp32", "head": "keep_fp32"}
    for node in network.nodes:
        if node.op_type in ("Conv", "Gemm"):
            expected = TensorProto.FLOAT if node.name in done.kept else TensorProto.FLOAT16
            assert {network.type_of(name) for name in (*node.input, *node.output)} == {expected}
    assert sum(node.op_type == "Cast" for node in network.nodes) == 4  # x, in and out of a2, into head; y is FP32


@pytest.mark.parametrize("expression", ["a", "conv.*", "("])
def test_a_keep_list_that_names_no_whole_node_is_refused(expression: str) -> None:
    with pytest.raises(InputError, match="keep_fp32"):
        convert(as_network(graphs.residual_block()), "fp16", keep_fp32=expression)


def test_casts_shapes_and_constants_of_a_file_go_along() -> None:
    """An existing Cast to FP32, ConstantOfShape without a value, Range (FP32 only) and the scales of Resize."""
    constants = {
        "scales": np.array([1, 1, 2, 2], np.float32), "zero": np.array(0, np.float32), "one": np.array(1, np.float32),
        "four": np.array(4, np.float32), "shape": np.array([4]), "big": np.array([1e38], np.float32),
    }  # fmt: skip
    nodes = [
        helper.make_node("Resize", ["x", "", "scales"], ["wide"], "resize", mode="nearest"),
        helper.make_node("Range", ["zero", "four", "one"], ["steps"], "range"),
        helper.make_node("ConstantOfShape", ["shape"], ["zeros"], "fill"),
        helper.make_node("Greater", ["wide", "zero"], ["positive"], "compare"),
        helper.make_node("Cast", ["positive"], ["mask"], "cast", to=TensorProto.FLOAT),
        helper.make_node("Add", ["steps", "zeros"], ["row"], "add"),
        helper.make_node("Mul", ["mask", "row"], ["product"], "mul"),
        helper.make_node("Min", ["product", "big"], ["y"], "min"),
    ]
    made = graphs.model(nodes, {"x": [1, 1, 2, 2]}, {"y": [1, 1, 4, 4]}, constants)
    network = as_network(made)
    done = convert(network, "fp16")
    onnx.checker.check_model(network.model, full_check=True)
    assert done.kept == {"range": "no_operator"}
    assert done.clipped == 1
    feed = graphs.images((1, 1, 2, 2))
    before, after = (open_model(one.SerializeToString()).run(feed)[0] for one in (made, network.model))
    assert np.array_equal(before, after)


def test_a_single_small_number_does_not_become_zero() -> None:
    """An epsilon below FP16's smallest number would divide by zero; large finite numbers stay finite."""
    nodes = [
        helper.make_node("Add", ["x", "epsilon"], ["sum"], "add"),
        helper.make_node("Max", ["sum", "lowest"], ["y"], "max"),
    ]
    constants = {"epsilon": np.array(1e-12, np.float32), "lowest": np.array([np.finfo(np.float32).min] * 2)}
    network = as_network(graphs.model(nodes, {"x": [2]}, {"y": [2]}, constants))
    assert convert(network, "fp16").clipped == 2
    values = {
        name: network.constant(name) for node in network.nodes for name in node.input if network.is_constant(name)
    }
    assert values["epsilon_float16"] == np.float16(2.0**-24)
    assert (values["lowest_float16"] == np.float16(-65504)).all()
    bf16 = as_network(graphs.model(nodes, {"x": [2]}, {"y": [2]}, constants))
    assert convert(bf16, "bf16").clipped == 2  # FP32's lowest rounds to -inf in BF16, too
    assert bf16.constant("lowest_bfloat16")[0] == ml_dtypes.finfo(ml_dtypes.bfloat16).min  # type: ignore[no-untyped-call]


def test_an_output_that_is_also_read_inside_is_cast_once() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"], "first"), helper.make_node("Neg", ["y"], ["z"], "second")]
    network = as_network(graphs.model(nodes, {"x": [2]}, {"y": [2], "z": [2]}, {}))
    convert(network, "fp16")
    onnx.checker.check_model(network.model, full_check=True)
    first, second = open_model(network.model.SerializeToString()).run({"x": np.array([-1, 2], np.float32)})
    assert (first.tolist(), second.tolist()) == ([0, 2], [0, -2])
    assert sum(node.op_type == "Cast" for node in network.nodes) == 3


def test_copies_of_constants_become_constants_of_their_own() -> None:
    """What TorchScript's exporter writes for equal biases, and TensorRT then moves before every convolution."""
    made = graphs.residual_block()
    made.graph.node.insert(0, helper.make_node("Identity", ["a1.bias"], ["shared"], "copy"))
    constant = helper.make_node("Constant", [], ["unused"], "constant", value_float=1.0)
    made.graph.node.insert(0, constant)
    next(node for node in made.graph.node if node.name == "a2").input[2] = "shared"
    network = as_network(made)
    assert not any(node.op_type in ("Identity", "Constant") for node in network.nodes)
    assert np.array_equal(network.constant("shared"), network.constant("a1.bias"))


def test_nodes_with_bodies_are_refused() -> None:
    body = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["inner"])], "body", [],
        [helper.make_tensor_value_info("inner", TensorProto.FLOAT, [2])],
    )  # fmt: skip
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["top"], keepdims=0),
        helper.make_node("Greater", ["top", "zero"], ["yes"]),
        helper.make_node("If", ["yes"], ["y"], then_branch=body, else_branch=body),
    ]
    made = graphs.model(nodes, {"x": [2]}, {"y": [2]}, {"zero": np.array(0, np.float32)})
    with pytest.raises(UnsupportedError, match="bodies inside nodes"):
        as_network(made)


def test_a_file_that_is_no_model_is_named(tmp_path: Path) -> None:
    (tmp_path / "mine.onnx").write_bytes(b"no model")
    with pytest.raises(InputError, match=r"mine\.onnx"):
        open_network(tmp_path / "mine.onnx")


@pytest.mark.slow
@pytest.mark.parametrize("floating", ["fp16", "bf16"])
def test_a_language_model_converts_whole(floating: str) -> None:
    path = artefacts_of(Case(workload="infer", model="tinylm-small", runtime="onnxruntime"))["model"]
    network = open_network(path)
    before = open_model(path).run({"ids": np.arange(32).reshape(2, 16)})[0]
    assert convert(network, floating).kept == {}
    onnx.checker.check_model(network.model, full_check=True)
    assert float_types(network) == {LOW[floating]}
    after = open_model(emulate(network).SerializeToString()).run({"ids": np.arange(32).reshape(2, 16)})[0]
    assert compare(before, after).relative_error < (3e-3 if floating == "fp16" else 3e-2)


def test_a_keep_list_that_matches_parts_of_names_is_told_so() -> None:
    with pytest.raises(InputError, match="matches only a part of stem: put"):
        convert(as_network(graphs.residual_block()), "fp16", keep_fp32="ste")
    with pytest.raises(InputError, match="names are like stem"):
        convert(as_network(graphs.residual_block()), "fp16", keep_fp32="nothing")


@pytest.mark.parametrize("floating", ["fp16", "bf16"])
def test_a_scalar_constant_stays_a_scalar(floating: str) -> None:
    """Clip refuses bounds that have a dimension, and a sum of two scalars has none."""
    constants = {"low": np.array(0, np.float32), "high": np.array(6, np.float32), "half": np.array(0.5, np.float32)}
    nodes = [
        helper.make_node("Clip", ["x", "low", "high"], ["y"], "clip"),
        helper.make_node("Add", ["half", "half"], ["z"], "sum"),
    ]
    network = as_network(graphs.model(nodes, {"x": ["n", 3]}, {"y": ["n", 3], "z": []}, constants))
    convert(network, floating)
    onnx.checker.check_model(network.model, full_check=True)
    assert [list(tensor.dims) for tensor in network.graph.initializer] == [[], [], []]
    outputs = open_model(emulate(network).SerializeToString()).run({"x": np.array([[-1, 2, 9]], np.float32)})
    assert np.array_equal(outputs[0], [[0, 2, 6]])
    assert outputs[1].shape == ()
