# SPDX-License-Identifier: Apache-2.0
"""Shapes that follow from values, as exporters compute them."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from pybench.precision.shapes import infer_shapes
from tests.support.onnx_models import model


def constant(name: str, value: int) -> onnx.NodeProto:
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.array([value], np.int64)))


def shuffle(quotient: str, domain: str = "") -> onnx.ModelProto:
    """Half of the channels of x [3, 8] go into rows of their own: `Reshape` to [-1, channels / 2]."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        constant("last", 1),
        helper.make_node("Gather", ["shape", "last"], ["channels"]),
        constant("groups", 2),
        helper.make_node(quotient, ["channels", "groups"], ["of_a_group"], domain=domain),
        constant("rest", -1),
        helper.make_node("Concat", ["rest", "of_a_group"], ["wanted"], axis=0),
        helper.make_node("Reshape", ["x", "wanted"], ["shuffled"]),
        helper.make_node("MatMul", ["shuffled", "w"], ["y"]),
    ]
    weights = {"w": np.zeros((4, 5), np.float32)}
    return model(nodes, [("x", 1, [3, 8])], [("y", 1, None)], weights, opset=20, domains={"mine": 1})


def test_a_shape_that_is_computed_with_a_quotient_is_known() -> None:
    """As a channel shuffle does: ONNX's own inference does not follow values through `Div`."""
    alone = onnx.shape_inference.infer_shapes(shuffle("Div"), data_prop=True)
    assert not any(value.name == "y" and value.type.tensor_type.HasField("shape") for value in alone.graph.value_info)
    _, shapes = infer_shapes(shuffle("Div"))
    assert (shapes["shuffled"], shapes["y"]) == ((6, 4), (6, 5))


@pytest.mark.parametrize(("start", "end", "shape"), [(0, None, (2,)), (1, None, (1,)), (0, -1, (1,))])
def test_a_part_of_a_shape_is_that_part(start: int, end: int | None, shape: tuple[int, ...]) -> None:
    bounds: dict[str, Any] = {"start": start} | ({} if end is None else {"end": end})
    nodes = [
        helper.make_node("Shape", ["x"], ["part"], **bounds),
        constant("two", 2),
        helper.make_node("Div", ["part", "two"], ["half"]),
        helper.make_node("ConstantOfShape", ["half"], ["y"]),
    ]
    _, shapes = infer_shapes(model(nodes, [("x", 1, [6, 8])], [("y", 1, None)], {}, opset=20))
    assert shapes["part"] == shape
    assert shapes["y"] == tuple(size // 2 for size in (6, 8)[start:end])


def test_what_an_unknown_operator_gives_stays_unknown() -> None:
    _, shapes = infer_shapes(shuffle("Mystery", domain="mine"))
    assert "channels" in shapes
    assert not {"of_a_group", "shuffled", "y"} & shapes.keys()


def test_what_may_be_large_is_not_computed() -> None:
    """A mask of 12,000 x 12,000 has half a gigabyte, and its shape is all that is needed of it."""
    large = np.array([12_000, 12_000], np.int64)
    nodes = [
        *shuffle("Div").graph.node,
        helper.make_node("Constant", [], ["large"], value=numpy_helper.from_array(large)),
        helper.make_node("ConstantOfShape", ["large"], ["mask"]),
        helper.make_node("Not", ["mask"], ["z"]),
    ]
    weights = {"w": np.zeros((4, 5), np.float32)}
    tracemalloc.start()
    _, shapes = infer_shapes(model(nodes, [("x", 1, [3, 8])], [("y", 1, None), ("z", 9, None)], weights, opset=20))
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (shapes["y"], shapes["mask"]) == ((6, 5), (12_000, 12_000))
    assert peak_bytes < 50e6


def test_random_numbers_are_no_constants() -> None:
    nodes = [
        helper.make_node("RandomUniform", [], ["drawn"], shape=[1], low=2.0, high=9.0),
        helper.make_node("Cast", ["drawn"], ["size"], to=onnx.TensorProto.INT64),
        helper.make_node("ConstantOfShape", ["size"], ["y"]),
    ]
    _, shapes = infer_shapes(model(nodes, [("x", 1, [1])], [("y", 1, None)], {}, opset=20))
    assert "y" not in shapes
