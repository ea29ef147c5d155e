# SPDX-License-Identifier: Apache-2.0
"""An engine's numbers against its graph's. Here a CPU session stands where the engine would; engines: tests/gpu."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pybench.case import Case
from pybench.precision.audit import Audit
from pybench.precision.execution import outputs_of
from pybench.workloads.making.engine_outputs import SAMPLES, judge_outputs
from pybench.workloads.making.order import Order
from pybench.workloads.opening import with_outputs
from tests.making import artefacts_of, write_classifier

pytest.importorskip("torch")

DIGITS = Case(workload="infer", model="digits-cnn", runtime="onnxruntime", device="cpu", quantiser="pybench")


def files_of(precision: str) -> tuple[Path, Path]:
    """The FP32 file and the one in a precision."""
    # `onnxruntime` with TensorRT's provider is given the files that TensorRT is given.
    case = DIGITS.with_factors(provider="tensorrt", device="cuda")
    origin, graph = (artefacts_of(case.with_factors(precision=name))["model"] for name in ("fp32", precision))
    return origin, graph


def order_of(origin: Path, precision: str, model: str, images: str | None = None) -> Order:
    """What the maker of an engine is told, as far as its outputs go."""
    parameters = {"model": model, "precision": precision, "images": images, "images_sha256": None}
    return Order("engine", parameters, {"origin": origin}, {})


def judged(precision: str, factor: float = 1.0, batch: int = 20) -> dict[str, Any]:
    """What is found of an engine that computes its graph's outputs, times a factor."""
    origin, graph = files_of(precision)
    batches = []

    def run(inputs: dict[str, Any]) -> list[Any]:
        batches.append(len(inputs["images"]))
        return [factor * outputs_of(graph, precision, [inputs])[0]]

    found = judge_outputs(run, order_of(origin, precision, "digits-cnn", "digits"), graph, batch, 0)
    assert batches == [batch]
    return found


@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8+fp16", "fp8"])
def test_an_engine_that_computes_what_its_graph_says_agrees(precision: str) -> None:
    found = judged(precision)
    assert found["agree"] is True
    assert (found["samples"], found["inputs"]) == (SAMPLES, "digits")
    assert found["engine_against_graph_relative_error"] == 0
    assert found["engine_against_fp32_relative_error"] == found["graph_against_fp32_relative_error"]


@pytest.mark.parametrize("precision", ["fp32", "int8+fp16", "fp8"])
def test_an_engine_that_computes_something_else_is_refuted_whatever_its_kernels_are_called(precision: str) -> None:
    outputs = judged(precision, factor=1.5, batch=3)
    assert outputs["agree"] is False
    assert outputs["samples"] == 3
    found = with_outputs(Audit("fp8", True, (), {"layers": 3}), outputs)
    assert (found.valid, found.reasons) == (False, ("outputs_differ",))
    assert found.facts["layers"] == 3
    assert found.facts["outputs"]["engine_against_graph_relative_error"] > outputs["allowed_relative_error"]


def test_outputs_that_are_no_numbers_are_refuted() -> None:
    assert judged("fp32", factor=float("nan"))["agree"] is False


def test_a_file_with_a_fixed_batch_is_compared_whole(tmp_path: Path) -> None:
    path = write_classifier(tmp_path / "mine.onnx", batch=12)
    order = order_of(path, "fp32", "mine.onnx")
    found = judge_outputs(lambda inputs: [outputs_of(path, "fp32", [inputs])[0]], order, path, 12, 0)
    assert (found["agree"], found["samples"], found["inputs"]) == (True, 12, "random")


def test_a_graph_that_no_cpu_runs_leaves_the_question_open(tmp_path: Path) -> None:
    import onnx

    path = write_classifier(tmp_path / "mine.onnx")
    model = onnx.load(path)
    model.graph.node[1].domain = "of.a.plugin"
    model.opset_import.append(onnx.helper.make_opsetid("of.a.plugin", 1))
    onnx.save(model, tmp_path / "plugin.onnx")
    zeros = [np.zeros((4, 3), np.float32)]
    found = judge_outputs(lambda inputs: zeros, order_of(path, "fp32", "mine.onnx"), tmp_path / "plugin.onnx", 4, 0)
    assert found["agree"] is None
    assert "cannot be run" in found["reason"]
    assert with_outputs(Audit("fp32", True), found).valid is True
