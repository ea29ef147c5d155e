# SPDX-License-Identifier: Apache-2.0
"""A file with free dimensions runs at the sizes that a case states, in FP32 and in what is made of it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from pybench.case import Case
from pybench.errors import InputError
from pybench.onnx_file.graph import read_model
from tests.support.making import artefacts_of, run
from tests.support.onnx_files import write
from tests.support.onnx_models import model, node


def case_of(path: Path, **factors: object) -> Case:
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    own = Case(workload="infer", model="mine.onnx", runtime="onnxruntime", threads=1, iterations=3,
               warmup_iterations=1, batch=2, calibration_images=4, sources=(("model", sha256),))  # fmt: skip
    return own.with_factors(**factors)


@pytest.fixture
def free(tmp_path: Path) -> Path:
    return write("free-height-and-width", tmp_path)


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_a_case_runs_at_its_sizes(free: Path, precision: str) -> None:
    case = case_of(free, precision=precision, shapes="x.2=16,x.3=24")
    made = artefacts_of(case, {"model": free})["model"]
    (value,) = read_model(made).graph.fed
    assert value.shape is not None
    assert value.shape[2:] == (16, 24)
    assert not isinstance(value.shape[0], int)  # the batch stays free
    result = run(case, {"model": free})
    assert result.metrics["latency_mean_ms"].value is not None
    assert result.valid["precision"].value is True


def test_outputs_are_those_of_the_file_at_these_sizes(free: Path) -> None:
    made = artefacts_of(case_of(free, shapes="x.2=16,x.3=24"), {"model": free})["model"]
    channels = read_model(free).graph.fed[0].shape or ()
    x = np.random.default_rng(0).standard_normal((2, int(channels[1] or 0), 16, 24), np.float32)
    outputs = [
        onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
        for path in (free, made)
    ]
    np.testing.assert_array_equal(*outputs)


def test_a_named_dimension_is_fixed_wherever_the_file_states_it(tmp_path: Path) -> None:
    a, b, y = ((name, 1, ["n", "width"]) for name in "aby")
    path = tmp_path / "mine.onnx"
    onnx.save(model([node("Add", "a b", "y")], [a, b], [y]), path)
    made = read_model(artefacts_of(case_of(path, shapes="a.width=7"), {"model": path})["model"]).graph
    assert [value.shape for value in (*made.fed, *made.outputs)] == [("n", 7)] * 3


def test_a_size_that_the_file_has_not_left_free_is_refused(tmp_path: Path) -> None:
    path = write("plain", tmp_path)
    with pytest.raises(InputError, match=r"x\.1 is 12 in the file"):
        artefacts_of(case_of(path, shapes="x.1=5"), {"model": path})


def test_without_shapes_a_case_needs_what_it_needed(free: Path) -> None:
    assert artefacts_of(case_of(free), {"model": free}) == {}
