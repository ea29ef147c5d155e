# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper, save

from pybench.case import Case
from pybench.catalogue.cautions import CautionCode
from pybench.errors import DeviceMemoryError, InputError, UnsupportedError
from pybench.measurement.inputs import random_arrays
from pybench.measurement.result import Validity
from pybench.models.building import build
from pybench.runtimes.session import TensorSpec
from tests.support.making import codes, run, write_classifier
from tests.support.reasons import reasons_of

DIGITS = Case(
    workload="infer", model="digits-cnn", runtime="onnxruntime", batch=4, threads=1, iterations=20, device="cpu"
)


@pytest.mark.parametrize(
    ("runtime", "precision"), [("onnxruntime", "fp32"), ("onnxruntime", "int8"), ("torch", "fp32"), ("torch", "bf16")]
)
def test_a_small_network_runs_and_its_precision_is_proved(runtime: str, precision: str) -> None:
    result = run(DIGITS.with_factors(runtime=runtime, precision=precision))
    assert result.valid["precision"].value is True
    assert result.valid["timing"].value is True
    assert result.labels["device"] == "cpu"
    assert result.labels["threads"] == 1
    assert result.metrics["model_bytes"].value > 10_000
    assert result.metrics["throughput_samples_per_s"].value > 0
    assert "throughput_tokens_per_s" not in result.metrics
    assert not codes(result) & {"untrained_weights", "small_calibration"}


def due_ns(table: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
    """Arrivals after the begin of the window, as docs/formats/rundir.md says."""
    begin_ns = np.cumsum(table["gap_ns"] + table["host_ns"]) - table["host_ns"]
    return np.asarray(begin_ns - table["waiting_ns"], np.int64)


@pytest.mark.parametrize("runtime", ["onnxruntime", "torch"])
@pytest.mark.parametrize("arrivals", ["fixed", "poisson"])
def test_iterations_can_arrive_at_a_rate_on_any_runtime(runtime: str, arrivals: str) -> None:
    case = DIGITS.with_factors(runtime=runtime, arrivals=arrivals, arrival_rate_per_s=100.0, energy_window_s=0.1)
    result = run(case, seed=5)
    table = result.tables["iterations"]
    assert set(table) == {"gap_ns", "host_ns", "waiting_ns"}
    assert np.all(table["waiting_ns"] >= 0)
    latency_ms = np.median(table["waiting_ns"] + table["host_ns"]) * 1e-6
    assert result.metrics["latency_p50_ms"].value == pytest.approx(latency_ms, rel=1e-3)
    assert result.metrics["throughput_samples_per_s"].value == pytest.approx(400, rel=0.8)
    assert result.labels["arrivals"] == f"{arrivals}, 100/s"
    assert "scheduled arrival" in result.labels["latency"]
    energy = result.windows["energy"]
    assert (energy["end_ns"] - energy["begin_ns"]) * 1e-9 >= 0.1
    assert energy["iterations"] < 60  # at the rate of the arrivals, not as fast as it goes
    again = run(case, seed=5).tables["iterations"]
    assert np.array_equal(np.diff(due_ns(again)), np.diff(due_ns(table)))  # equal seeds, equal arrivals


def test_arrivals_that_come_too_fast_raise_a_caution() -> None:
    result = run(DIGITS.with_factors(arrivals="fixed", arrival_rate_per_s=1e6, iterations=200))
    assert "overloaded" in codes(result)
    slow = run(DIGITS.with_factors(arrivals="fixed", arrival_rate_per_s=100.0, iterations=40))
    assert "overloaded" not in codes(slow)


def test_a_graph_of_torch_needs_a_gpu() -> None:
    with pytest.raises(UnsupportedError) as caught:
        run(DIGITS.with_factors(runtime="torch-graph"))
    assert caught.value.reason.stored_code == "no_gpu"


def test_int8_in_torch_is_unsupported_and_says_so() -> None:
    with pytest.raises(UnsupportedError, match="does not infer in int8") as caught:
        run(DIGITS.with_factors(runtime="torch", precision="int8"))
    assert caught.value.reason.stored_code == "no_int8_in_torch"


def test_a_users_file_runs_and_a_wrong_batch_says_what_to_set(tmp_path: Path) -> None:
    path = write_classifier(tmp_path / "mine.onnx", batch=2)
    case = DIGITS.with_factors(model="mine.onnx", batch=2)
    assert run(case, {"model": path}).valid["precision"].value is True
    with pytest.raises(InputError, match=r"mine\.onnx: the input pictures has 2 as its batch, the case 4") as caught:
        run(case.with_factors(batch=4), {"model": path})
    assert caught.value.hint is not None
    assert "batch: 2" in caught.value.hint


def write_logarithm(path: Path, *, element: int = TensorProto.FLOAT) -> Path:
    """`sums` are finite; `logs` are the logarithms of -1, 0 and 1, [3], for any input."""
    kind = helper.tensor_dtype_to_np_dtype(element)
    graph = helper.make_graph(
        [
            helper.make_node("ReduceSum", ["values"], ["sums"], keepdims=0),
            helper.make_node("Sub", ["values", "values"], ["zeros"]),
            helper.make_node("Add", ["zeros", "steps"], ["three"]),
            helper.make_node("Log", ["three"], ["logs"]),
        ],
        "logarithm",
        [helper.make_tensor_value_info("values", element, [1, 3])],
        [helper.make_tensor_value_info("sums", element, []), helper.make_tensor_value_info("logs", element, [1, 3])],
        [numpy_helper.from_array(np.array([-1, 0, 1], kind), "steps")],
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)
    return path


@pytest.mark.parametrize("runtime", ["onnxruntime", "openvino"])
def test_outputs_that_are_not_finite_raise_a_caution_that_names_them(runtime: str, tmp_path: Path) -> None:
    case = DIGITS.with_factors(model="mine.onnx", batch=1, runtime=runtime)
    result = run(case, {"model": write_logarithm(tmp_path / "mine.onnx")})
    found = [caution for caution in result.cautions if caution.code is CautionCode.OUTPUTS_NOT_FINITE]
    assert [caution.detail for caution in found] == ["logs: 1 NaN, 1 -inf of 3 numbers"]
    assert result.labels["outputs"] == "logs: 1 NaN, 1 -inf of 3 numbers"
    assert result.valid["timing"].value is True
    assert result.metrics["latency_p50_ms"].samples == case.iterations  # the pass that is looked at is in no window
    finite = run(case, {"model": write_classifier(tmp_path / "finite.onnx")})
    assert finite.labels["outputs"] == "finite"
    assert "outputs_not_finite" not in codes(finite)


@pytest.mark.parametrize("fed", [{}, {"path": "rust", "corpus_limit_bytes": 200_000}, {"fed": True}])
def test_weights_that_overflow_raise_it_in_torch_and_with_text(fed: dict[str, object], tmp_path: Path) -> None:
    case = Case(workload="infer", model="tinylm-small", runtime="torch", seq_len=8, threads=1, iterations=2,
                idle_window_s=0.0, checkpoint="weights.pt", **fed)  # fmt: skip
    state = build("tinylm-small", seed=9).state_dict()
    torch.save({name: 3e38 * tensor for name, tensor in state.items()}, tmp_path / "weights.pt")
    result = run(case, {"checkpoint": tmp_path / "weights.pt"})
    assert "outputs_not_finite" in codes(result)
    assert result.labels["outputs"].startswith("output 1: ")


def test_a_users_file_that_is_missing_or_no_model_is_named(tmp_path: Path) -> None:
    case = DIGITS.with_factors(model="mine.onnx")
    with pytest.raises(InputError, match=r"mine\.onnx does not exist"):
        run(case, {"model": tmp_path / "mine.onnx"})
    (tmp_path / "mine.onnx").write_bytes(b"PK\x03\x04")
    with pytest.raises(InputError, match=r"mine\.onnx is not a runnable ONNX model"):
        run(case, {"model": tmp_path / "mine.onnx"})


def test_a_users_quantised_file_that_claims_fp32_is_invalid() -> None:
    from tests.support.making import artefacts_of

    quantised = artefacts_of(DIGITS.with_factors(precision="int8"))["model"]
    result = run(DIGITS.with_factors(model="mine.onnx"), {"model": quantised})
    assert result.valid["precision"] == Validity(False, reasons_of("quantised_nodes"))


def test_a_users_onnx_file_in_torch_is_unsupported(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError) as caught:
        run(
            DIGITS.with_factors(model="mine.onnx", runtime="torch"), {"model": write_classifier(tmp_path / "mine.onnx")}
        )
    assert caught.value.reason.stored_code == "onnx_in_torch"


def test_random_weights_raise_a_caution_and_a_checkpoint_does_not(tmp_path: Path) -> None:
    case = Case(workload="infer", model="tinylm-small", runtime="torch", seq_len=8, threads=1, iterations=2)
    result = run(case)
    assert "untrained_weights" in codes(result)
    assert result.metrics["throughput_tokens_per_s"].value > 0
    torch.save(build("tinylm-small", seed=9).state_dict(), tmp_path / "weights.pt")
    result = run(case.with_factors(checkpoint="weights.pt"), {"checkpoint": tmp_path / "weights.pt"})
    assert "untrained_weights" not in codes(result)


def test_tokenized_text_can_feed_the_model() -> None:
    case = Case(
        workload="infer", model="tinylm-small", runtime="torch", seq_len=16, batch=2, threads=1, iterations=3,
        path="rust", corpus_limit_bytes=200_000,
    )  # fmt: skip
    result = run(case)
    assert len(result.labels["ids_sha256"]) == 64
    assert result.labels["path"] == "rust"


def test_a_sequence_beyond_the_models_positions_is_refused() -> None:
    case = Case(workload="infer", model="tinylm-small", runtime="torch", seq_len=4096, threads=1)
    with pytest.raises(InputError, match="2048 positions"):
        run(case)


def test_memory_that_runs_out_is_told_by_evidence() -> None:
    case = DIGITS.with_factors(runtime="torch", batch=1_000_000_000_000, iterations=1)
    with pytest.raises(DeviceMemoryError) as caught:
        run(case)
    assert "MemoryError" in caught.value.evidence or "memory" in caught.value.evidence


def test_equal_seeds_give_equal_inputs_and_other_seeds_others() -> None:
    specs = [TensorSpec("images", np.dtype(np.float32), (None, 1, 8, 8))]
    one, same, other = (random_arrays(specs, "digits-cnn", 4, 0, seed)["images"] for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


@pytest.mark.slow
def test_a_users_language_model_is_told_by_its_integer_input(tmp_path: Path) -> None:
    """Its vocabulary is not known, so its ids stay below two; its tokens are counted all the same, in int8 as well."""
    from pybench.catalogue.models import MODELS
    from pybench.models.export import export_onnx
    from pybench.models.tinylm import Size, TinyLm

    export_onnx(TinyLm(Size(64, 1, 1), vocabulary=9).eval(), MODELS["tinylm-small"], tmp_path / "lm.onnx", {})
    case = DIGITS.with_factors(model="lm.onnx", seq_len=12, sources=(("model", "a" * 64),))
    for precision in ("fp32", "int8"):
        result = run(case.with_factors(precision=precision), {"model": tmp_path / "lm.onnx"})
        assert result.metrics["throughput_tokens_per_s"].value > 0
        assert result.valid["precision"].value is True


@pytest.mark.parametrize("runtime", ["torch", "onnxruntime"])
@pytest.mark.parametrize("model", ["mlp", pytest.param("distilbert", marks=pytest.mark.slow)])
def test_models_that_take_no_images_are_fed_what_they_take(model: str, runtime: str) -> None:
    case = Case(workload="infer", model=model, runtime=runtime, batch=2, seq_len=16, iterations=3, warmup_iterations=1,
                idle_window_s=0.0, threads=1)  # fmt: skip
    result = run(case)
    assert result.metrics["throughput_samples_per_s"].value > 0
    assert ("throughput_tokens_per_s" in result.metrics) == (model == "distilbert")
    assert result.valid["precision"].value is True
