# SPDX-License-Identifier: Apache-2.0
"""What a graph tells of another batch; what is said is tried on onnxruntime in tests/artefacts/test_batched.py."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from pybench.onnx_file.batch import FREE, Obstacle, freed, rewriting
from pybench.onnx_file.graph import Value, read_graph
from tests.support.onnx_models import ints, model, node

FLOAT = TensorProto.FLOAT


def found(path: Path, nodes: Sequence[onnx.NodeProto], of_y: Sequence[int] | None = None, /, **weights: Any) -> Any:
    """What is said of a graph from `x` [2, 3, 4] to `y`, whose batch is fixed at 2."""
    onnx.save(model(nodes, [("x", FLOAT, (2, 3, 4))], [("y", FLOAT, of_y)], weights), path / "model.onnx")
    return rewriting(read_graph(path / "model.onnx"), 2)


def test_inputs_with_the_batch_are_freed_and_others_are_not() -> None:
    values = [Value(name, "tensor", "float32", shape) for name, shape in (("x", (2, 3)), ("table", (5, 3)), ("s", ()))]
    assert [value.shape for value in freed(values, 2)] == [(FREE, 3), (5, 3), ()]


def test_reshapes_to_the_batch_are_rewritten(tmp_path: Path) -> None:
    plan = found(
        tmp_path,
        [
            node("Relu", "x", "a"),
            node("Reshape", "a flat", "b"),  # the rest is -1, and `a` has the batch in front
            node("Reshape", "b whole", "c"),  # the batch can follow from the rest
            node("Transpose", "c", "d", perm=[1, 0, 2]),
            node("Reshape", "d three", "e"),
            node("Reshape", "table flat", "f"),  # no input reaches it
            node("Add", "e f", "y"),
        ],
        flat=ints(2, -1),
        three=ints(3, -1),
        table=np.zeros((3, 4), np.float32),
        whole=ints(2, 4, 3),
    )
    assert plan.reshapes == {"b": (0, -1), "c": (-1, 4, 3)}
    assert plan.obstacle is None


OBSTACLES: dict[str, tuple[Sequence[onnx.NodeProto], dict[str, Any], Obstacle]] = {
    "a constant number of elements": (
        [node("Relu", "x", "a"), node("Reshape", "a shape", "y")],
        {"shape": ints(6, 4)},
        Obstacle("the node reshape_y (Reshape)", "reshapes to [6, 4], a constant number of elements"),
    ),
    "a constant beside the samples": (
        [node("Concat", "x token", "y", axis=1)],
        {"token": np.zeros((2, 1, 4), np.float32)},
        Obstacle("the node concat_y (Concat)", "joins the samples with the constant token, which is [2, 1, 4]"),
    ),
    "after arithmetic": (
        [node("Mul", "x half", "a"), node("MatMul", "a square", "b"), node("Reshape", "b shape", "y")],
        {"half": np.float32(0.5), "square": np.zeros((4, 4), np.float32), "shape": ints(24)},
        Obstacle("the node reshape_y (Reshape)", "reshapes to [24], a constant number of elements"),
    ),
}


@pytest.mark.parametrize("name", OBSTACLES)
def test_what_fails_at_every_other_batch_is_named(tmp_path: Path, name: str) -> None:
    nodes, weights, expected = OBSTACLES[name]
    assert found(tmp_path, nodes, **weights).obstacle == expected


def test_a_batch_that_is_squeezed_away_is_named(tmp_path: Path) -> None:
    nodes = [node("Squeeze", "x first", "y")]
    onnx.save(model(nodes, [("x", FLOAT, (1, 3))], [("y", FLOAT, (3,))], {"first": ints(0)}), tmp_path / "model.onnx")
    assert rewriting(read_graph(tmp_path / "model.onnx"), 1).obstacle == Obstacle(
        "the node squeeze_y (Squeeze)", "removes the batch dimension"
    )


def test_an_output_without_the_batch_is_named(tmp_path: Path) -> None:
    plan = found(tmp_path, [node("ReduceMean", "x", "y", keepdims=0)], ())
    assert plan.obstacle == Obstacle(
        "the node reducemean_y (ReduceMean)", "writes the output y without a batch dimension"
    )


@pytest.mark.parametrize(
    "nodes",
    [
        [node("Reshape", "table shape", "y")],  # of a constant
        [node("Transpose", "x", "a", perm=[2, 1, 0]), node("Reshape", "a shape", "y")],
        [node("Concat", "x token", "y", axis=0)],
    ],
)
def test_of_what_is_not_known_nothing_is_said(tmp_path: Path, nodes: Sequence[onnx.NodeProto]) -> None:
    weights = {"table": np.zeros((4, 6)), "shape": ints(6, 4), "token": np.zeros((1, 3, 4), np.float32)}
    assert found(tmp_path, nodes, **weights).obstacle is None


@pytest.mark.parametrize("op", ["Squeeze", "Unsqueeze"])
def test_axes_that_are_an_empty_constant_say_nothing(tmp_path: Path, op: str) -> None:
    nodes = [node(op, "x none", "a"), node("Reshape", "a shape", "y")]
    assert found(tmp_path, nodes, none=ints(), shape=ints(6, 4)).obstacle is None
