# SPDX-License-Identifier: Apache-2.0
"""A file whose batch is fixed runs at another one, or the node is named that prevents it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto

from pybench.case import Case
from pybench.errors import InputError
from pybench.onnx_file.batch import FREE
from pybench.onnx_file.graph import read_model
from tests.support.making import artefacts_of, run, write_classifier
from tests.support.onnx_models import ints, model, node

FLOAT = TensorProto.FLOAT


def case_of(path: Path, fixed: int = 1, batch: int = 4, **factors: object) -> Case:
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    own = Case(workload="infer", model="mine.onnx", runtime="onnxruntime", threads=1, iterations=2, device="cpu",
               warmup_iterations=1, batch=batch, fixed_batch=fixed, calibration_images=4,
               sources=(("model", sha256),))  # fmt: skip
    return own.with_factors(**factors)


def written(path: Path, nodes: Sequence[onnx.NodeProto], batch: int = 1, **weights: Any) -> Path:
    onnx.save(model(nodes, [("x", FLOAT, (batch, 3, 4))], [("y", FLOAT, None)], weights), path)
    return path


def outputs(path: Path, x: Any) -> Any:
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_a_fixed_batch_becomes_a_factor(tmp_path: Path, precision: str) -> None:
    path = write_classifier(tmp_path / "mine.onnx", batch=1)
    case = case_of(path, precision=precision)
    graph = read_model(artefacts_of(case, {"model": path})["model"]).graph
    assert [value.shape for value in (*graph.fed, *graph.outputs)] == [(FREE, 1, 8, 8), (FREE, 3)]
    result = run(case, {"model": path})
    assert result.metrics["latency_mean_ms"].value is not None
    assert result.valid["precision"].value is True


def test_other_batches_are_stacked_batches(tmp_path: Path) -> None:
    """With heads folded into a constant shape, as an exporter writes them that traced one batch."""
    nodes = [
        node("Reshape", "x folded", "a"),
        node("Transpose", "a", "b", perm=[0, 2, 1, 3]),
        node("Softmax", "b", "c", axis=-1),
        node("Reshape", "c flat", "d"),
        node("MatMul", "d weight", "y"),
    ]
    weight = np.linspace(-1, 1, 24, dtype=np.float32).reshape(12, 2)
    path = written(tmp_path / "mine.onnx", nodes, 2, folded=ints(2, 3, 2, 2), flat=ints(2, -1), weight=weight)
    made = artefacts_of(case_of(path, fixed=2), {"model": path})["model"]
    x = np.random.default_rng(0).standard_normal((6, 3, 4), np.float32)
    expected = np.concatenate([outputs(path, x[i : i + 2]) for i in (0, 2, 4)])
    for batch in (6, 2, 1):
        np.testing.assert_allclose(outputs(made, x[:batch]), expected[:batch], rtol=1e-5)


def test_a_reshape_of_torchs_exporter_is_rewritten(tmp_path: Path) -> None:
    """It writes `allowzero`, with which a 0 is no copy."""
    path = written(tmp_path / "mine.onnx", [node("Reshape", "x flat", "y", allowzero=1)], flat=ints(1, -1))
    made = artefacts_of(case_of(path), {"model": path})["model"]
    x = np.ones((5, 3, 4), np.float32)
    assert outputs(made, x).shape == (5, 12)


def test_ids_of_a_fixed_length_are_compared_at_that_length(tmp_path: Path) -> None:
    nodes = [node("Gather", "table ids", "a"), node("ReduceSum", "a axes", "y", keepdims=0)]
    weights = {"table": np.eye(5, dtype=np.float32), "axes": ints(1)}
    path = tmp_path / "mine.onnx"
    onnx.save(model(nodes, [("ids", TensorProto.INT64, (1, 7))], [("y", FLOAT, (1, 5))], weights), path)
    graph = read_model(artefacts_of(case_of(path, seq_len=7), {"model": path})["model"]).graph
    assert [value.shape for value in (*graph.fed, *graph.outputs)] == [(FREE, 7), (FREE, 5)]


REFUSED: dict[str, tuple[Sequence[onnx.NodeProto], dict[str, Any], str]] = {
    "a constant number of elements": (
        [node("Reshape", "x shape", "y")],
        {"shape": ints(3, 4)},
        r"the node reshape_y \(Reshape\) reshapes to \[3, 4\], a constant number of elements",
    ),
    "mixed samples": (
        [node("Relu", "x", "a"), node("ReduceMean", "a axes", "b", keepdims=1), node("Sub", "a b", "y")],
        {"axes": ints(0)},
        r"the node sub_y \(Sub\) mixes the samples of a batch",
    ),
    "a shape that nobody foresaw": (
        [
            node("Transpose", "x", "a", perm=[2, 0, 1]),
            node("Reshape", "a shape", "b"),
            node("Unsqueeze", "b first", "y"),
        ],
        {"shape": ints(4, 3), "first": ints(0)},
        r"the node reshape_b \(Reshape\) does not run at batch 2",
    ),
    "softmax over the batch": (
        [node("Softmax", "x", "y", axis=0)],
        {},
        r"the node softmax_y \(Softmax\) mixes the samples of a batch",
    ),
    "an output that is always one": (
        [node("ReduceMean", "x", "y")],
        {},
        r"the node reducemean_y \(ReduceMean\) writes the output y, which is another one for another batch",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_prevents_it_is_named(tmp_path: Path, name: str) -> None:
    nodes, weights, expected = REFUSED[name]
    path = written(tmp_path / "mine.onnx", nodes, **weights)
    with pytest.raises(InputError, match=f"its batch is fixed at 1, and cannot be changed: {expected}") as raised:
        artefacts_of(case_of(path), {"model": path})
    assert raised.value.hint == "set batch: 1, or export the model with its batch free"


def test_an_input_without_the_batch_stays_as_it_is(tmp_path: Path) -> None:
    nodes = [node("Relu", "x", "a"), node("Mul", "a table", "y")]
    inputs = [("x", FLOAT, (1, 3, 4)), ("table", FLOAT, (3, 4))]
    path = tmp_path / "mine.onnx"
    onnx.save(model(nodes, inputs, [("y", FLOAT, (1, 3, 4))]), path)
    graph = read_model(artefacts_of(case_of(path), {"model": path})["model"]).graph
    assert [value.shape for value in graph.fed] == [(FREE, 3, 4), (3, 4)]
    assert run(case_of(path), {"model": path}).metrics["latency_mean_ms"].value is not None
