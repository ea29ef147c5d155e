# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from pybench.case import Case
from pybench.errors import InputError
from pybench.precision import int8
from pybench.precision.audit import audit_kernels, audit_onnx, audit_parameters
from pybench.precision.execution import Agreement, compare
from pybench.runtimes import onnxruntime
from tests.making import artefacts_of, write_classifier

INT8 = Case(workload="infer", model="digits-cnn", runtime="onnxruntime", precision="int8")
IEEE = {"matmul_fp32_precision": "ieee", "conv_fp32_precision": "ieee"}


@pytest.fixture(scope="module")
def quantised() -> Path:
    return artefacts_of(INT8)["model"]


@pytest.fixture(scope="module")
def exported() -> Path:
    return artefacts_of(INT8.with_factors(precision="fp32"))["model"]


def test_weights_are_symmetric_and_have_a_scale_for_each_channel(quantised: Path) -> None:
    graph = onnx.load(quantised).graph
    arrays = {weight.name: numpy_helper.to_array(weight) for weight in graph.initializer}
    kernels = 0
    for node in graph.node:
        if node.op_type != "DequantizeLinear" or node.input[0] not in arrays:
            continue
        weight, scale, zero = (arrays[name] for name in node.input)
        assert (scale > 0).all()
        assert not zero.any()
        if weight.dtype == np.int8:
            axis = next(attribute.i for attribute in node.attribute if attribute.name == "axis")
            assert scale.shape == (weight.shape[axis],)
            kernels += 1
    assert kernels == 4  # three convolutions and the head


@pytest.mark.parametrize("calibration", ["minmax", "entropy", "percentile"])
def test_int8_outputs_stay_close_to_fp32s(exported: Path, calibration: str) -> None:
    path = artefacts_of(INT8.with_factors(calibration=calibration))["model"]
    pixels = np.random.default_rng(0).integers(0, 17, (64, 1, 8, 8)).astype(np.float32) / 16
    before = onnxruntime.open_session(exported, precision="fp32", threads=1, device="cpu").run({"images": pixels})[0]
    after = onnxruntime.open_session(path, precision="int8", threads=1, device="cpu").run({"images": pixels})[0]
    agreement = compare(before, after)
    assert 0.98 < agreement.cosine < 1
    assert 0.001 < agreement.relative_error < 0.2
    assert path.stat().st_size < exported.stat().st_size / 2


def test_agreement_worked_by_hand() -> None:
    reference = np.array([[3.0, 4.0], [0.0, 0.0]])
    assert compare(reference, reference) == Agreement(1.0, 0.0, 1.0, 2)
    swapped = compare(reference, np.array([[4.0, 3.0], [0.0, 0.0]]))
    assert swapped.cosine == pytest.approx(24 / 25)
    assert swapped.relative_error == pytest.approx(2**0.5 / 5)
    assert swapped.top1_agreement_ratio == 0.5


def test_the_audit_finds_integer_kernels_and_fp32(quantised: Path, exported: Path, tmp_path: Path) -> None:
    assert audit_onnx(exported, "fp32").valid
    found = audit_onnx(quantised, "int8")
    assert (found.valid, found.facts["int8_share_ratio"]) == (True, 1.0)
    onnxruntime.write_optimised(quantised, tmp_path / "kernels.onnx", threads=1)
    kernels = audit_kernels(tmp_path / "kernels.onnx")
    assert (kernels.valid, kernels.facts["floating_kernels"]) == (True, 0)


def test_an_fp32_graph_that_claims_int8_is_invalid(exported: Path, tmp_path: Path) -> None:
    found = audit_onnx(exported, "int8")
    assert (found.valid, found.reasons) == (False, ("not_quantised",))
    onnxruntime.write_optimised(exported, tmp_path / "kernels.onnx", threads=1)
    assert audit_kernels(tmp_path / "kernels.onnx").reasons == ("no_integer_kernels",)


def test_an_int8_graph_that_claims_fp32_is_invalid(quantised: Path) -> None:
    assert audit_onnx(quantised, "fp32").reasons == ("quantised_nodes",)


def test_half_precision_weights_that_claim_fp32_are_invalid(exported: Path, tmp_path: Path) -> None:
    model = onnx.load(exported)
    weight = model.graph.initializer[0]
    weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight).astype(np.float16), weight.name))
    onnx.save(model, tmp_path / "half.onnx")
    assert audit_onnx(tmp_path / "half.onnx", "fp32").reasons == ("low_precision_weights",)


def test_parameters_and_switches_are_judged() -> None:
    assert audit_parameters(["float32"], "fp32", IEEE).valid
    assert audit_parameters(["float16", "float32"], "fp16", IEEE).reasons == ("parameters_differ",)
    tf32 = {**IEEE, "conv_fp32_precision": "tf32"}
    assert audit_parameters(["float32"], "fp32", tf32).reasons == ("tf32_switches_differ",)
    assert audit_parameters(["float32"], "amp-bf16", IEEE).realised == "parameters float32, autocast to bf16"


def test_a_file_that_cannot_be_quantised_is_named(tmp_path: Path) -> None:
    path = write_classifier(tmp_path / "mine.onnx")
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(InputError, match=r"mine\.onnx"):
        int8.quantise(path, tmp_path / "out.onnx", "minmax", [], {})
