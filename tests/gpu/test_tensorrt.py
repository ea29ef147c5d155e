# SPDX-License-Identifier: Apache-2.0
"""TensorRT on a real GPU: engines of each precision are built, captured, run, audited, and agree with FP32."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("tensorrt")

from pybench.case import Case  # noqa: E402
from pybench.errors import InputError  # noqa: E402
from pybench.precision.execution import compare, outputs_of  # noqa: E402
from pybench.precision.network import as_network  # noqa: E402
from pybench.precision.placement import Quantisation  # noqa: E402
from pybench.precision.qdq import quantise  # noqa: E402
from pybench.runtimes.tensorrt.session import open_session  # noqa: E402
from tests.precision import graphs  # noqa: E402
from tests.support.making import artefacts_of, run  # noqa: E402

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU")]

DIGITS = Case(workload="infer", model="digits-cnn", runtime="tensorrt", batch=64, iterations=200, energy_window_s=0.5)
FLOATING = ("fp32", "tf32", "fp16", "bf16")
QUANTISED = ("int8", "int8+fp16", "fp8", "fp8+fp16")
# Relative to the FP32 outputs of onnxruntime on a CPU. FP32 sums in another order; the others by their mantissas.
TOLERANCE = {"fp32": 1e-4, "tf32": 5e-3, "fp16": 5e-3, "bf16": 3e-2} | dict.fromkeys(QUANTISED, 0.15)


@pytest.mark.parametrize("precision", [*FLOATING, *QUANTISED])
def test_an_engine_computes_what_the_model_does_in_the_precision_claimed(precision: str) -> None:
    images = np.random.default_rng(0).random((64, 1, 8, 8), np.float32)
    expected = reference(images)
    case = DIGITS.with_factors(precision=precision)
    session = open_session(artefacts_of(case)["engine"], launch="graph", device="auto")
    found = session.run({session.inputs[0].name: images})[0]
    assert np.linalg.norm(found - expected) / np.linalg.norm(expected) < TOLERANCE[precision]


def reference(images: np.ndarray) -> np.ndarray:
    from pybench.runtimes import onnxruntime

    path = artefacts_of(DIGITS.with_factors(runtime="onnxruntime"))["model"]
    session = onnxruntime.open_session(path, precision="fp32", threads=1, device="cpu")
    return session.run({session.inputs[0].name: images})[0]


@pytest.mark.parametrize("precision", FLOATING)
def test_a_run_replays_the_captured_engine_and_audits_it(precision: str) -> None:
    result = run(DIGITS.with_factors(precision=precision))
    assert result.labels["launch"] == "graph"
    assert result.labels["latency"].startswith("GPU events around each graph launch, 2 in flight")
    assert result.valid["precision"].value is True, result.labels["precision_facts"]
    assert result.metrics["latency_p50_ms"].value > 0
    assert result.metrics["gpu_energy_j"].value > 0
    assert result.labels["precision_facts"]["time_share_ratio"]


def test_enqueued_iterations_and_copies_are_timed_by_the_host() -> None:
    enqueued, copied = (
        run(DIGITS.with_factors(launch="enqueue", energy_window_s=0.0)),
        run(DIGITS.with_factors(transfers=True, energy_window_s=0.0)),
    )
    assert enqueued.labels["launch"] == "enqueue"
    for result in (enqueued, copied):
        assert result.labels["latency"] == "from the begin of the call to its return"


def test_predictions_of_an_engine_are_those_of_the_model() -> None:
    judged = Case(workload="accuracy", model="digits-cnn", runtime="tensorrt", batch=64)
    engine, torch_cpu = run(judged), run(judged.with_factors(runtime="torch", device="cpu"))
    assert np.array_equal(engine.tables["predictions"]["top1"], torch_cpu.tables["predictions"]["top1"])


def test_an_engine_of_another_making_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.engine").write_bytes(b"no engine")
    with pytest.raises(InputError, match="is no engine for TensorRT"):
        open_session(tmp_path / "model.engine", launch="graph", device="auto")


def test_a_warm_timing_cache_gives_the_same_kernels_again(tmp_path: Path) -> None:
    from pybench.runtimes.tensorrt.building import BuildOptions, build_engine

    source = artefacts_of(DIGITS.with_factors(runtime="onnxruntime"))["model"]
    options = BuildOptions(tf32=False, batch=8, tokens=0, timing_cache=tmp_path / "a.timing")
    first = build_engine(source, tmp_path / "first.engine", options)
    second = build_engine(source, tmp_path / "second.engine", options)
    assert first.cache_sha256 is None
    assert second.cache_sha256 is not None
    layers = [open_session(tmp_path / f"{name}.engine", launch="enqueue", device="auto").layer_information()
              for name in ("first", "second")]  # fmt: skip
    assert layers[0] == layers[1]


@pytest.mark.parametrize("kind", ["int8", "fp8"])
@pytest.mark.parametrize(
    ("made", "size"),
    [
        (graphs.residual_block(), 8),
        (graphs.clipped(1), 4),
        (graphs.clipped(3), 4),
        (graphs.clipped_summand(), 4),
        (graphs.clipped_depthwise(), 4),
        (graphs.pooled(2, 9), 9),
    ],
    ids=["residual", "clipped", "clipped thrice", "clipped summand", "clipped depthwise", "pooled"],
)
def test_an_engine_computes_what_its_quantised_file_says(
    made: onnx.ModelProto, size: int, kind: str, tmp_path: Path
) -> None:
    """What TensorRT fuses must not change the numbers: adds, clips and poolings around quantised convolutions."""
    from pybench.runtimes.tensorrt.building import BuildOptions, build_engine

    network = as_network(made)
    channels = network.shape_of("x")[1]
    feed = graphs.images((8, channels, size, size))
    quantise(network, graphs.ranges_of(made, feed), Quantisation(kind, "fp16"))
    network.save(tmp_path / "model.onnx", {})
    options = BuildOptions(tf32=False, batch=8, tokens=0, timing_cache=tmp_path / "a.timing")
    build_engine(tmp_path / "model.onnx", tmp_path / "model.engine", options)
    found = open_session(tmp_path / "model.engine", launch="enqueue", device="auto").run(feed)[0]
    onnx.save(made, tmp_path / "origin.onnx")
    reference, _ = outputs_of(tmp_path / "origin.onnx", "fp32", [feed])
    expected, _ = outputs_of(tmp_path / "model.onnx", f"{kind}+fp16", [feed])
    of_file, apart = compare(reference, expected).relative_error, compare(expected, found).relative_error
    assert of_file is not None
    assert apart is not None
    assert apart < of_file + 0.01
