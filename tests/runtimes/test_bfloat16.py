# SPDX-License-Identifier: Apache-2.0
"""A model that takes and gives bfloat16 runs on onnxruntime's CPU provider, with the numbers of ml_dtypes."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from pybench.case import Case
from pybench.errors import UnsupportedError
from pybench.runtimes.onnxruntime import OnnxRuntimeSession, StartedSession, open_session
from tests.support.making import run
from tests.support.onnx_files import write
from tests.support.onnx_models import model

CASE = Case(workload="infer", model="mine.onnx", runtime="onnxruntime", threads=1, iterations=2, warmup_iterations=1,
            batch=2, device="cpu")  # fmt: skip
WEIGHT = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    nodes = [
        helper.make_node("Cast", ["x"], ["a"], to=TensorProto.FLOAT),
        helper.make_node("MatMul", ["a", "weight"], ["b"], name="product"),
        helper.make_node("Cast", ["b"], ["y"], to=TensorProto.BFLOAT16),
    ]
    kind = TensorProto.BFLOAT16
    content = model(nodes, [("x", kind, ("batch", 4))], [("y", kind, ("batch", 3))], {"weight": WEIGHT})
    onnx.save(content, tmp_path / "mine.onnx")
    return tmp_path / "mine.onnx"


def test_outputs_are_those_of_the_same_numbers(path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((2, 4)).astype(ml_dtypes.bfloat16)
    session = open_session(path, precision="fp32", threads=1, device="cpu")
    (found,) = session.run({"x": x})
    expected = (x.astype(np.float32) @ WEIGHT).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(found, expected)
    session.bind({"x": x}, transfers=False)()
    session.bind_feed()({"x": x})()
    assert session.profile(1, "fp32").kernels


@pytest.mark.parametrize("inputs", ["normal", "zeros", "mine.npz"])
def test_a_case_runs_on_whatever_is_fed(path: Path, tmp_path: Path, inputs: str) -> None:
    np.savez(tmp_path / "mine.npz", x=np.ones((2, 4), ml_dtypes.bfloat16))
    result = run(CASE.with_factors(inputs=inputs), {"model": path, "inputs": tmp_path / "mine.npz"})
    assert result.metrics["latency_mean_ms"].value is not None


def test_an_operator_without_a_kernel_is_unsupported_by_name(tmp_path: Path) -> None:
    path = write("bf16-weights-and-input", tmp_path)
    with pytest.raises(UnsupportedError, match=r"MatMul\(13\) node with name 'product'") as raised:
        run(CASE, {"model": path})
    assert raised.value.reason.stored_code == "no_kernel"


def test_a_gpu_gets_no_such_tensor_through_python(path: Path) -> None:
    started = StartedSession(onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]), 0.0, False)
    with pytest.raises(UnsupportedError, match="does not pass to a GPU") as raised:
        OnnxRuntimeSession(started, path, "cuda", {})
    assert raised.value.reason.stored_code == "no_bf16_tensors"
