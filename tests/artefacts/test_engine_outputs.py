# SPDX-License-Identifier: Apache-2.0
"""An engine's numbers against its graph's. Here a CPU session stands where the engine would; engines: tests/gpu."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from pybench.artefacts.engine_outputs import SAMPLES, Run, judge_outputs
from pybench.artefacts.request import MakeRequest
from pybench.case import Case
from pybench.measurement.audits import with_outputs
from pybench.onnx_file.graph import read_graph
from pybench.precision.audit import Audit
from pybench.precision.execution import outputs_of
from tests.precision import graphs
from tests.support.making import artefacts_of, write_classifier, write_images
from tests.support.reasons import codes_of

pytest.importorskip("torch")

DIGITS = Case(workload="infer", model="digits-cnn", runtime="onnxruntime", device="cpu", quantiser="pybench")


def files_of(precision: str) -> tuple[Path, Path]:
    """The FP32 file and the one in a precision."""
    # `onnxruntime` with TensorRT's provider is given the files that TensorRT is given.
    case = DIGITS.with_factors(provider="tensorrt", device="cuda")
    origin, graph = (artefacts_of(case.with_factors(precision=name))["model"] for name in ("fp32", precision))
    return origin, graph


def first_output(graph: Path) -> str:
    return read_graph(graph).outputs[0].name


def engine_of(path: Path) -> Run:
    """One that computes what a file says."""
    return lambda inputs: {first_output(path): outputs_of(path, "fp32", [inputs])[0]}


def order_of(origin: Path, precision: str, model: str, images: str | None = None) -> MakeRequest:
    """What the maker of an engine is told, as far as its outputs go."""
    parameters = {"model": model, "precision": precision, "images": images, "images_sha256": None}
    return MakeRequest("engine", parameters, {"origin": origin}, {})


def judged(precision: str, factor: float = 1.0, batch: int = 20) -> dict[str, Any]:
    """What is found of an engine that computes its graph's outputs, times a factor."""
    origin, graph = files_of(precision)
    batches = []

    def run(inputs: dict[str, Any]) -> dict[str, Any]:
        batches.append(len(inputs["images"]))
        return {first_output(graph): factor * outputs_of(graph, precision, [inputs])[0]}

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
    assert (found.valid, codes_of(found.reasons)) == (False, ("outputs_differ",))
    assert found.facts["layers"] == 3
    assert found.facts["outputs"]["engine_against_graph_relative_error"] > outputs["allowed_relative_error"]


def test_an_engine_that_rounds_less_than_its_graph_agrees_however_far_from_it_it_is() -> None:
    origin, graph = files_of("int8+fp16")

    def further(inputs: dict[str, Any], times: float) -> dict[str, Any]:
        """As far from FP32's outputs as the graph's, on the other side, and so many times."""
        exact, rounded = outputs_of(origin, "fp32", [inputs])[0], outputs_of(graph, "int8+fp16", [inputs])[0]
        return {first_output(graph): exact - times * (rounded - exact)}

    order = order_of(origin, "int8+fp16", "digits-cnn", "digits")
    mirrored = judge_outputs(lambda inputs: further(inputs, 1.0), order, graph, 20, 0)
    assert mirrored["engine_against_graph_relative_error"] > mirrored["allowed_relative_error"]
    assert mirrored["agree"] is True
    worse = judge_outputs(lambda inputs: further(inputs, 3.0), order, graph, 20, 0)
    assert worse["engine_against_fp32_relative_error"] > worse["allowed_relative_error"]
    assert worse["agree"] is False


def test_an_output_is_compared_with_the_one_of_the_same_name_in_whatever_order(tmp_path: Path) -> None:
    graph = graphs.saved(
        graphs.model(
            [onnx.helper.make_node("Relu", ["x"], ["a"]), onnx.helper.make_node("Neg", ["x"], ["b"])],
            {"x": ["n", 4]},
            {"a": ["n", 4], "b": ["n", 4]},
            {},
        ),
        tmp_path / "two.onnx",
    )
    order = order_of(graph, "fp32", "two.onnx")

    def engine(inputs: dict[str, Any]) -> dict[str, Any]:
        return {"b": -inputs["x"], "a": np.maximum(inputs["x"], 0)}

    found = judge_outputs(engine, order, graph, 4, 0)
    assert (found["agree"], found["engine_against_graph_relative_error"]) == (True, 0)
    swapped = judge_outputs(lambda inputs: dict(zip("ab", engine(inputs).values(), strict=True)), order, graph, 4, 0)
    assert swapped["agree"] is False
    onnx.save(in_other_order(onnx.load(graph)), tmp_path / "origin.onnx")
    origin = order_of(tmp_path / "origin.onnx", "fp16", "two.onnx")
    assert judge_outputs(engine, origin, graph, 4, 0)["agree"] is True


def in_other_order(model: onnx.ModelProto) -> onnx.ModelProto:
    outputs = list(model.graph.output)[::-1]
    del model.graph.output[:]
    model.graph.output.extend(outputs)
    return model


def test_outputs_that_are_no_numbers_are_refuted() -> None:
    assert judged("fp32", factor=float("nan"))["agree"] is False


def test_a_file_with_a_fixed_batch_is_compared_whole(tmp_path: Path) -> None:
    path = write_classifier(tmp_path / "mine.onnx", batch=12)
    order = order_of(path, "fp32", "mine.onnx")
    found = judge_outputs(engine_of(path), order, path, 12, 0)
    assert (found["agree"], found["samples"], found["inputs"]) == (True, 12, "random")


@pytest.mark.parametrize("is_derived", [True, False], ids=["derived", "the-users-own"])
def test_a_graph_that_no_cpu_runs_leaves_the_question_open(tmp_path: Path, is_derived: bool) -> None:
    """An operator of a plugin: TensorRT has built an engine of it, and that must not fail for want of a comparison."""
    path, plugin = write_classifier(tmp_path / "mine.onnx"), tmp_path / "plugin.onnx"
    model = onnx.load(path)
    model.graph.node[1].domain = "of.a.plugin"
    model.opset_import.append(onnx.helper.make_opsetid("of.a.plugin", 1))
    onnx.save(model, plugin)
    zeros = {first_output(path): np.zeros((4, 3), np.float32)}
    order = order_of(path if is_derived else plugin, "fp32", "mine.onnx")
    found = judge_outputs(lambda inputs: zeros, order, plugin, 4, 0)
    assert found["agree"] is None
    assert found["reason"]
    assert with_outputs(Audit("fp32", True), found).valid is True


def test_fewer_images_than_samples_fill_the_batch_over_and_over(tmp_path: Path) -> None:
    write_images(tmp_path / "images", {"a": 2, "b": 1}, mode="L")
    path = write_classifier(tmp_path / "mine.onnx")
    parameters = {"model": "mine.onnx", "precision": "fp32", "images": "images", "images_sha256": "a" * 64}
    order = MakeRequest("engine", parameters, {"origin": path}, {"images": tmp_path / "images"})
    found = judge_outputs(engine_of(path), order, path, 10, 0)
    assert (found["agree"], found["samples"], found["inputs"]) == (True, 3, "images")
