# SPDX-License-Identifier: Apache-2.0
"""One precision name, one numeric contract: equal weights and inputs give equal outputs in every runtime of this CPU.

Tolerances are relative errors of all outputs together (l2). FP32: runtimes add in different orders and fold batch norm
or not, which is some units in the 24th bit. BF16: Inductor keeps fused intermediate values in FP32, eager torch rounds
each to 8 bits, so the two may differ by what BF16 itself costs.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pytest

from pybench.case import Case
from pybench.catalogue.cautions import CautionCode
from pybench.catalogue.runtimes import RUNTIMES
from pybench.measurement.audits import of_onnxruntime, with_tf32
from pybench.measurement.inputs import random_arrays
from pybench.measurement.model import OpenedModel, open_model, partition_cautions
from pybench.models.images.digits import read_digits
from pybench.precision.audit import Audit
from tests.support.making import request_of, run
from tests.support.reasons import codes_of

DIGITS = Case(workload="infer", model="digits-cnn", runtime="torch", device="cpu", threads=1, batch=64)
DEEP = DIGITS.with_factors(batch=1)
FP32_TOLERANCE = 1e-5
BF16_TOLERANCE = 2e-2

Outputs = npt.NDArray[Any]


def opened(case: Case) -> OpenedModel:
    with patch.dict(os.environ):
        return open_model(request_of(case))


@cache
def outputs_of(case: Case) -> Outputs:
    """What the case's runtime says of images that its model was not trained on, or of seeded noise."""
    with patch.dict(os.environ):
        model = opened(case)
        name = model.session.inputs[0].name
        if case.model == "digits-cnn":
            inputs = {name: read_digits("validation").load_all()[: case.batch]}
        else:
            inputs = random_arrays(model.session.inputs, model.name, case.batch, 0, seed=1)
        return model.session.run(inputs)[0]


def relative_error(outputs: Outputs, expected: Outputs) -> float:
    return float(np.linalg.norm(outputs - expected) / np.linalg.norm(expected))


@pytest.mark.parametrize("runtime", ["onnxruntime", "openvino", pytest.param("torch-compile", marks=pytest.mark.slow)])
def test_trained_weights_give_equal_fp32_outputs(runtime: str) -> None:
    expected, found = outputs_of(DIGITS), outputs_of(DIGITS.with_factors(runtime=runtime))
    assert 0 < np.abs(expected).max() < 1000
    assert relative_error(found, expected) < FP32_TOLERANCE
    assert np.array_equal(found.argmax(1), expected.argmax(1))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("runtime", "model"),
    [("onnxruntime", "resnet50"), ("openvino", "resnet50"), ("torch-compile", "mobilenet-v1")],  # it compiles faster
)
def test_a_deep_network_gives_equal_fp32_outputs(runtime: str, model: str) -> None:
    case = DEEP.with_factors(model=model)
    assert relative_error(outputs_of(case.with_factors(runtime=runtime)), outputs_of(case)) < FP32_TOLERANCE


@pytest.mark.slow
def test_bf16_is_bf16_compiled_or_not() -> None:
    fp32, eager = outputs_of(DIGITS), outputs_of(DIGITS.with_factors(precision="bf16"))
    compiled = outputs_of(DIGITS.with_factors(precision="bf16", runtime="torch-compile"))
    assert relative_error(compiled, eager) < BF16_TOLERANCE
    for outputs in (eager, compiled):  # not FP32 under another name
        assert 100 * FP32_TOLERANCE < relative_error(outputs, fp32) < BF16_TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["onnxruntime", "openvino", "torch", "torch-compile"])
def test_compiling_and_memory_are_told_of_each_runtime_apart(runtime: str) -> None:
    result = run(DIGITS.with_factors(runtime=runtime, iterations=5, energy_window_s=0.0, idle_window_s=0.0))
    assert ("compile_s" in result.metrics) == (runtime != "torch")
    if runtime != "torch":
        compiling = result.metrics["compile_s"]
        assert compiling.value is not None
        assert compiling.value > 0
        assert compiling.window is None  # outside of every window
        assert compiling.method == RUNTIMES[runtime].compile_is
    assert result.metrics["peak_host_bytes"].value > 50e6
    assert result.valid["precision"].value is True


@pytest.mark.parametrize(
    ("precision", "told", "realised", "valid"),
    [
        ("fp32", "0", "a graph, TF32 off", True),
        ("tf32", "1", "a graph, TF32 on", True),
        ("fp32", "1", "a graph, TF32 on", False),
        ("tf32", "0", "a graph, TF32 off", False),
        ("fp16", "0", "a graph", True),
    ],
)
def test_what_a_provider_says_of_tf32_is_held_against_the_precision(
    precision: str, told: str, realised: str, valid: bool
) -> None:
    found = with_tf32(Audit("a graph", True), precision, {"CUDAExecutionProvider": {"use_tf32": told}})
    assert (found.realised, found.valid) == (realised, valid)
    assert codes_of(found.reasons) == (() if valid else ("tf32_switches_differ",))
    assert with_tf32(Audit("a graph", True), "fp32", {"CPUExecutionProvider": {}}) == Audit("a graph", True)


class Told:
    """A session of onnxruntime on a GPU: what it says of itself, and the kernels that it is seen to launch."""

    def __init__(self, kernels: list[tuple[str, float]]) -> None:
        self.labels = {"provider": "tensorrt", "provider_options": {"CUDAExecutionProvider": {"use_tf32": "0"}}}
        self.kernels = lambda: kernels


def test_tensorrt_inside_onnxruntime_is_judged_by_the_kernels_that_it_launches() -> None:
    case = DIGITS.with_factors(runtime="onnxruntime", precision="fp32")
    path = request_of(case).artefacts["model"]
    single = 4 * [("sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nhwckcrs_nhwc", 1.0)]
    found = of_onnxruntime(Told(single), case, path)
    assert found.valid
    assert found.realised.startswith("fp32: 4 of 4 convolutions and matrix products (100 % of time)")
    assert codes_of(of_onnxruntime(Told(single[:1]), case, path).reasons) == ("products_not_seen",)
    assert found.realised.endswith(", TF32 off")
    tf32 = 4 * [("sm80_xmma_fprop_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nhwc", 1.0)]
    assert codes_of(of_onnxruntime(Told(tf32), case, path).reasons) == ("not_in_claimed_type", "tf32_kernels")
    assert codes_of(of_onnxruntime(Told([]), case, path).reasons) == ("no_kernels_recorded",)
    # A file that is not what it claims is told so, whatever runs of it.
    assert codes_of(of_onnxruntime(Told(single), case.with_factors(precision="fp16"), path).reasons) == (
        "outside_keep_list",
        "floating_type_differs",
    )


def test_a_graph_that_its_provider_did_not_take_whole_raises_a_caution() -> None:
    labels = {"provider": "tensorrt", "partitions": {"TensorrtExecutionProvider": 2, "CPUExecutionProvider": 1}}
    (caution,) = partition_cautions(labels)
    assert caution.code is CautionCode.MODEL_SPLIT
    assert caution.detail == "parts of the graph: 1 on CPUExecutionProvider, 2 on TensorrtExecutionProvider"
    assert partition_cautions({**labels, "partitions": {"TensorrtExecutionProvider": 1}}) == []
    assert partition_cautions({**labels, "partitions": None}) == []  # this onnxruntime does not tell
    assert partition_cautions(opened(DIGITS.with_factors(runtime="onnxruntime")).session.labels) == []
