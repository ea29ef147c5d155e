# SPDX-License-Identifier: Apache-2.0
"""A file in plain form: what runtimes forgive and onnx.checker does not is mended, and computes the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from pybench.errors import InputError, UnsupportedError
from pybench.precision.network import open_network
from tests.support.onnx_files import write
from tests.support.onnx_models import model


def run(path: Path, x: np.ndarray) -> np.ndarray:
    import onnxruntime

    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


@pytest.mark.parametrize(
    ("name", "features"), [("opset-7", 12), ("not-in-running-order", 4), ("output-without-shape", 12)]
)
def test_what_onnxruntime_forgives_is_mended(tmp_path: Path, name: str, features: int) -> None:
    path = write(name, tmp_path)
    with pytest.raises(onnx.checker.ValidationError):
        onnx.checker.check_model(onnx.load(path))
    open_network(path).save(tmp_path / "plain.onnx", {})
    onnx.checker.check_model(onnx.load(tmp_path / "plain.onnx"))
    x = np.linspace(-1, 1, 2 * features, dtype=np.float32).reshape(2, features)
    np.testing.assert_array_equal(run(tmp_path / "plain.onnx", x), run(path, x))


def test_a_body_that_reads_an_outer_tensor_comes_after_it(tmp_path: Path) -> None:
    """A node that only a body reads counts for the order, too: the error is about the body, not about the order."""
    results = [helper.make_tensor_value_info(name, 1, None) for name in "ab"]
    branch = [
        helper.make_graph([helper.make_node("Neg", ["late"], [result.name])], result.name, [], [result])
        for result in results
    ]
    nodes = [
        helper.make_node("If", ["positive"], ["y"], then_branch=branch[0], else_branch=branch[1]),
        helper.make_node("Greater", ["late", "zero"], ["positive"]),
        helper.make_node("ReduceSum", ["x"], ["late"], keepdims=0),
    ]
    path = tmp_path / "model.onnx"
    onnx.save(model(nodes, [("x", 1, ["n", 4])], [("y", 1, [])], {"zero": np.float32(0)}), path)
    with pytest.raises(UnsupportedError, match=r"bodies inside nodes \(If\)"):
        open_network(path)


def test_a_cycle_is_one_error_that_names_its_nodes(tmp_path: Path) -> None:
    path = write("cyclic", tmp_path)
    with pytest.raises(InputError, match=r"model.onnx is not a valid ONNX model \(its nodes .* a cycle: ") as raised:
        open_network(path)
    assert {"one", "two"} <= set(raised.value.message.rstrip(")").replace(":", ",").split(", "))
    assert "onnx.checker" in str(raised.value.hint)


def test_what_shape_inference_refuses_is_one_error(tmp_path: Path) -> None:
    """The output states no shape, so that shapes are inferred before the file is checked."""
    content = onnx.load(write("output-without-shape", tmp_path))
    del content.opset_import[:]
    onnx.save(content, tmp_path / "model.onnx")
    with pytest.raises(InputError, match=r"model.onnx is not a valid ONNX model \(.*No opset import") as raised:
        open_network(tmp_path / "model.onnx")
    assert "onnx.checker" in str(raised.value.hint)


def test_an_output_whose_shape_nobody_knows_is_one_error(tmp_path: Path) -> None:
    nodes = [helper.make_node("Gelu", ["x"], ["y"], domain="com.microsoft")]
    content = model(nodes, [("x", 1, ["n", 4])], [("y", 1, None)], domains={"com.microsoft": 1})
    onnx.save(content, tmp_path / "model.onnx")
    with pytest.raises(InputError, match="the output y states no shape") as raised:
        open_network(tmp_path / "model.onnx")
    assert "export the model" in str(raised.value.hint)
