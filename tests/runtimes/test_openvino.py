# SPDX-License-Identifier: Apache-2.0
"""OpenVINO on this CPU, held against onnxruntime on the same files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from pybench.case import Case
from pybench.errors import InputError, UnsupportedError
from pybench.measurement.audits import of_openvino
from pybench.models.images.digits import read_digits
from pybench.precision.audit import Audit, audit_compiled
from pybench.precision.execution import open_model
from pybench.runtimes import onnxruntime, openvino
from pybench.runtimes.openvino import OpenVinoSession, cpu_types
from pybench.runtimes.session import resolved
from tests.support import onnx_models
from tests.support.cpu import HAS_VNNI
from tests.support.making import artefacts_of, codes, run, write_classifier
from tests.support.reasons import codes_of

DIGITS = Case(workload="infer", model="digits-cnn", runtime="openvino", device="cpu", threads=2, batch=64)
NEEDS_BF16 = pytest.mark.skipif("bf16" not in cpu_types(), reason="OpenVINO has no BF16 kernels on this CPU")
NEEDS_VNNI = pytest.mark.skipif(not HAS_VNNI, reason="INT8 saturates without VNNI")
# Relative l2 errors of all outputs. FP32: another order of additions. BF16: 8 bits of each intermediate value. INT8:
# onnxruntime emulates a pair of Q/DQ in FP32, OpenVINO multiplies the codes and rounds between the same pairs.
TOLERANCE = {"fp32": 1e-5, "int8": 5e-2, "bf16": 2e-2}


def file_of(precision: str) -> Path:
    return artefacts_of(DIGITS.with_factors(precision=precision, calibration_images=64))["model"]


def opened(path: Path, precision: str = "fp32") -> OpenVinoSession:
    return openvino.open_session(path, precision=precision, threads=2, device="cpu")


def pixels(batch: int) -> dict[str, np.ndarray]:
    return {"images": read_digits("validation").load_all()[:batch]}


@pytest.mark.parametrize(
    "precision", ["fp32", pytest.param("int8", marks=NEEDS_VNNI), pytest.param("bf16", marks=NEEDS_BF16)]
)
def test_outputs_are_those_of_onnxruntime(precision: str) -> None:
    """The BF16 file is compared with the FP32 one: onnxruntime has no BF16 kernels on a CPU. It computes INT8 pairs as
    they stand."""
    judge = open_model(file_of("fp32" if precision == "bf16" else precision), pairs_apart=True)
    session = opened(file_of(precision), precision)
    for batch in (1, 64):  # the batch of the file is free
        expected, found = judge.run(pixels(batch))[0], session.run(pixels(batch))[0]
        error = np.linalg.norm(found - expected) / np.linalg.norm(expected)
        assert error < TOLERANCE[precision]
        if precision == "bf16":
            assert error > 100 * TOLERANCE["fp32"]  # not FP32 under another name


@pytest.mark.parametrize(
    ("precision", "kind", "realised"),
    [
        ("fp32", "f32", "fp32"),
        ("int8", "f32", "int8 kernels: 4 of 4 convolutions and matrix products"),
        pytest.param("bf16", "bf16", "bf16: 4 of 4 convolutions and matrix products", marks=NEEDS_BF16),
    ],
)
def test_the_type_is_told_to_openvino_and_audited_in_its_kernels(precision: str, kind: str, realised: str) -> None:
    session = opened(file_of(precision), precision)
    session.run(pixels(4))
    assert session.labels["provider_options"]["CPU"]["INFERENCE_PRECISION_HINT"] == kind
    found = of_openvino(session, DIGITS.with_factors(precision=precision), file_of(precision))
    assert (found.realised, found.valid) == (realised, True)
    assert found.facts["executed_types"] == {precision: 4}


@NEEDS_BF16
def test_what_openvino_does_by_itself_is_found_out() -> None:
    """Without a hint it computes an FP32 file in BF16 here; the audit of such kernels refuses the name FP32."""
    path = file_of("fp32")
    compiled = openvino.openvino.Core().compile_model(path, "CPU")
    session = OpenVinoSession(compiled, path, 0.0)
    session.run(pixels(4))
    found = of_openvino(session, DIGITS, path)
    assert codes_of(found.reasons) == ("kernels_in_another_type",)
    assert found.realised == "fp32 in the graph, in kernels bf16: 4"


@pytest.mark.parametrize("names", [("", ""), ("first", "last"), ("first", "")])
def test_products_are_found_whether_or_not_nodes_have_names(tmp_path: Path, names: tuple[str, str]) -> None:
    """OpenVINO calls a node without a name by its output; with sizes that are all known, products become subgraphs."""
    nodes = [
        helper.make_node("MatMul", ["x", "v"], ["a"], names[0]),
        helper.make_node("Reshape", ["a", "shape"], ["b"]),
        helper.make_node("MatMul", ["b", "w"], ["y"], names[1]),
    ]
    fed, written = ("x", TensorProto.FLOAT, [4, 16]), ("y", TensorProto.FLOAT, [4, 8])
    constants = {"v": np.ones((16, 32), np.float32), "w": np.ones((32, 8), np.float32), "shape": np.array([4, 32])}
    path = tmp_path / "mine.onnx"
    onnx.save(onnx_models.model(nodes, [fed], [written], constants), path)
    session = opened(path)
    session.run({"x": np.ones((4, 16), np.float32)})
    found = of_openvino(session, DIGITS, path)
    assert (found.valid, list(found.facts["executed_types"])) == (True, ["fp32"])


def test_kernels_are_judged_by_their_types() -> None:
    path = file_of("int8")
    products = [("Convolution", "u8", ()), ("FullyConnected", "i8", ()), ("Pooling", "f32", ("pool",))]

    def reasons(*more: tuple[str, str, tuple[str, ...]]) -> tuple[str, ...]:
        found: Audit = audit_compiled(path, "int8", [*products, *more])
        return codes_of(found.reasons)

    assert reasons() == ()
    assert reasons(("MatMul", "f32", ()), ("MatMul", "f32", ())) == ()  # half of the products in integers
    assert reasons(*3 * [("MatMul", "f32", ())]) == ("no_integer_kernels",)
    assert reasons(("Convolution", "bf16", ())) == ("kernels_in_another_type",)
    assert reasons(("Subgraph", "bf16", ("relu",))) == ()  # it computes no product of the file
    assert codes_of(audit_compiled(path, "int8", []).reasons) == ("no_multiplying_nodes",)
    assert codes_of(audit_compiled(path, "fp32", products).reasons) == (
        "quantised_nodes",
    )  # the file is not what is claimed


def test_a_bound_iteration_and_a_fed_one_read_the_arrays_where_they_lie() -> None:
    session = opened(file_of("fp32"))
    held = {"images": np.ascontiguousarray(pixels(8)["images"])}
    iterate = session.bind(held, transfers=False)
    launch = session.bind_feed()
    for value in (0.0, 1.0):
        held["images"][:] = value
        iterate()
        launch(held)()
        expected = session.run({"images": np.full_like(held["images"], value)})[0]
        assert np.array_equal(session._request.get_output_tensor(0).data, expected)


@pytest.mark.parametrize("device", ["cuda", "GPU-00000000-0000-0000-0000-000000000000"])
def test_a_gpu_is_refused(tmp_path: Path, device: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        openvino.open_session(write_classifier(tmp_path / "mine.onnx"), precision="fp32", threads=1, device=device)
    assert caught.value.reason.stored_code == "no_gpu"


@pytest.mark.parametrize("kind", ["bf16", "fp16"])
def test_a_type_that_this_cpu_has_not_is_refused(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenVINO would take another type without a word, as BF16 for FP16."""
    monkeypatch.setattr(openvino, "cpu_types", lambda: {"fp32", "int8"})
    with pytest.raises(UnsupportedError) as caught:
        opened(write_classifier(tmp_path / "mine.onnx"), kind)
    assert caught.value.reason.stored_code == f"no_{kind}"
    assert "fp32, int8" in caught.value.hint


def test_transfers_are_refused() -> None:
    with pytest.raises(UnsupportedError) as caught:
        opened(file_of("fp32")).bind(pixels(1), transfers=True)
    assert caught.value.reason.stored_code == "no_gpu"


def test_a_file_that_is_no_model_and_one_that_does_not_compile_are_told_apart(tmp_path: Path) -> None:
    text = tmp_path / "text.onnx"
    text.write_text("no model")
    with pytest.raises(InputError, match=r"text\.onnx"):
        opened(text)
    with pytest.raises(UnsupportedError) as caught:
        opened(_with_unknown_operator(tmp_path / "odd.onnx"))
    assert caught.value.reason.stored_code == "not_compiled"
    assert "onnxruntime" not in str(caught.value.hint), "which may have refused the file just before"
    assert "Oddity" in caught.value.message


def test_names_of_dimensions_are_sizes_in_every_runtime(tmp_path: Path) -> None:
    path = onnx_models.save_positions(tmp_path / "positions.onnx")
    for session in (opened(path), onnxruntime.open_session(path, precision="fp32", threads=1, device="cpu")):
        shapes = resolved(session.inputs, 2, 5, "positions.onnx")
        assert shapes == {"positions": (2, 5, 1), "ids": (2, 5)}
        (output,) = session.run({spec.name: np.ones(shapes[spec.name], spec.dtype) for spec in session.inputs})
        assert np.array_equal(output, np.full((2, 5), 2))


def test_inputs_of_another_size_are_refused(tmp_path: Path) -> None:
    session = opened(write_classifier(tmp_path / "mine.onnx"))
    with pytest.raises(InputError, match="does not run on these inputs"):
        session.run({"pictures": np.zeros((1, 1, 9, 8), np.float32)})


def test_a_run_has_valid_timing_and_precision() -> None:
    result = run(DIGITS.with_factors(iterations=5, energy_window_s=0.0, idle_window_s=0.0))
    assert result.valid["precision"].value is True
    assert result.metrics["latency_mean_ms"].value > 0
    assert result.metrics["compile_s"].value > 0
    assert result.labels["device"] == "cpu"
    assert result.labels["provider_options"]["CPU"]["INFERENCE_NUM_THREADS"] == str(result.labels["threads"])
    assert "model_split" not in codes(result)


@pytest.mark.process
def test_its_makers_are_not_told_of_an_import() -> None:
    """OpenVINO sends its import over the network, if it can import what does so."""
    program = (
        "import sys; from pybench.runtimes import openvino\n"
        "print([name for name, module in sys.modules.items() if 'telemetry' in name and module is not None])"
    )
    told = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert "openvino_telemetry" not in told.stdout


def _with_unknown_operator(path: Path) -> Path:
    from onnx import TensorProto, helper, save

    floats = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("x", "y")]
    node = helper.make_node("Oddity", ["x"], ["y"], domain="acme")
    graph = helper.make_graph([node], "odd", floats[:1], floats[1:])
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("acme", 1)]
    save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)
    return path
