# SPDX-License-Identifier: Apache-2.0
"""Profiles of sessions: onnxruntime's own on a CPU, and an engine that is replayed from what was recorded of it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from pybench.case import Case
from pybench.catalogue.workloads import KERNELS
from pybench.errors import UnsupportedError
from pybench.kernels.engine_layers import read_layers
from pybench.kernels.launches import KernelLaunches, profile_of_launches
from pybench.kernels.profile import Kernel, Profile
from pybench.measurement.profiles import add_profile, joined, metrics_of_profile, of_engine
from pybench.measurement.result import Result
from pybench.runtimes import onnxruntime, onnxruntime_profile
from pybench.runtimes.onnxruntime_profile import MOST_RUNS
from tests.kernels.test_engine import recorded
from tests.support.making import run, write_classifier

INFER = Case(workload="infer", model="mlp", runtime="onnxruntime", device="cpu", batch=1, threads=1, iterations=3,
             warmup_iterations=1, idle_window_s=0.0)  # fmt: skip


def opened(path: Path) -> onnxruntime.OnnxRuntimeSession:
    return onnxruntime.open_session(write_classifier(path), precision="fp32", threads=1, device="cpu")


LAUNCHED = Path(__file__).parents[1] / "precision/data/launched"
PICTURES = {"pictures": np.zeros((2, 1, 8, 8), np.float32)}


def test_a_session_tells_the_nodes_of_what_it_was_fed_last(tmp_path: Path) -> None:
    session = opened(tmp_path / "model.onnx")
    session.bind(PICTURES, transfers=False)()
    found = session.profile(1, "fp32")
    assert found.iterations == MOST_RUNS
    product = next(kernel for kernel in found.kernels if kernel.work == "multiplying")
    assert (product.nodes, product.computes_in) == (("product",), "fp32")
    assert product.time_ms is not None
    assert product.time_ms > 0
    assert found.iteration_ms is not None
    assert found.total_ms <= found.iteration_ms


def test_a_session_that_is_fed_batch_by_batch_tells_its_nodes_too(tmp_path: Path) -> None:
    session = opened(tmp_path / "model.onnx")
    session.bind_feed()(PICTURES)()
    assert session.profile(1, "fp32").has_times


def test_nothing_of_a_profile_stays_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    session = opened(tmp_path / "model.onnx")
    session.run(PICTURES)
    session.profile(1, "fp32")
    assert [file.name for file in tmp_path.iterdir()] == ["model.onnx"]


def test_a_file_that_may_not_fit_twice_is_not_opened_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnxruntime_profile.measure, "available_bytes", lambda: 1024)
    session = opened(tmp_path / "model.onnx")
    session.run(PICTURES)
    with pytest.raises(UnsupportedError, match="1024 bytes of memory are free") as error:
        session.profile(1, "fp32")
    result = Result()
    add_profile(result, lambda: session.profile(1, "fp32"))
    assert error.value.reason.stored_code == "no_room_for_profile"
    assert {name: str(*one.reasons) for name, one in result.metrics.items()} == dict.fromkeys(
        KERNELS, error.value.reason.stored_code
    )
    assert result.labels["profile"].startswith("not made: model.onnx has ")


def test_a_run_has_a_profile_and_its_metrics() -> None:
    result = run(INFER)
    assert result.profile is not None
    assert result.labels["profile"] == result.profile.method
    assert result.metrics["kernels_count"].value == len(result.profile.running)
    shares = [result.metrics[f"{work}_time_ratio"].value for work in ("multiplying", "moving", "quantising")]
    assert all(share is not None and 0 <= share <= 1 for share in shares)


def test_an_accuracy_has_none() -> None:
    judged = INFER.with_factors(workload="accuracy", model="digits-cnn", image_limit=4)
    result = run(judged)
    assert result.profile is None
    assert not set(KERNELS) & set(result.metrics)


def test_a_profiler_that_fails_costs_no_run(capsys: pytest.CaptureFixture[str]) -> None:
    def failing() -> Profile:
        raise RuntimeError("the profiler\nis refused")

    result = Result()
    add_profile(result, failing)
    assert result.labels["profile"] == "not made: RuntimeError: the profiler is refused"
    assert {str(*one.reasons) for one in result.metrics.values()} == {"no_profile"}
    assert "Traceback" in capsys.readouterr().err


def test_shares_of_a_profile_without_times_are_not_told() -> None:
    kernels = (Kernel(name="a", kernel="k", work="moving"),)
    metrics = metrics_of_profile(Profile(source="tensorrt", method="m", iterations=0, kernels=kernels))
    assert metrics["moving_kernels_count"].value == 1.0
    assert (metrics["moving_time_ratio"].value, str(*metrics["moving_time_ratio"].reasons)) == (None, "not_told")
    assert metrics["qdq_nodes_count"].reasons == metrics["moving_time_ratio"].reasons


class RecordedEngine:
    """An engine's answers, as an H200 gave them; its times are 0.01 ms a layer that runs."""

    def layer_information(self) -> str:
        return recorded("int8")

    def layer_times_ms(self) -> dict[str, float]:
        return {layer.name: 0.01 for layer in read_layers(recorded("int8")) if layer.kind != "nothing"}


@pytest.mark.parametrize(("noted", "nodes"), [({"qdq_nodes": 162}, 162), ({}, None)])
def test_an_engine_tells_its_layers_and_its_making_the_nodes(
    tmp_path: Path, noted: dict[str, int], nodes: int | None
) -> None:
    """An older pybench noted no number of Q/DQ nodes beside an engine."""
    (tmp_path / "graph.json").write_text(json.dumps({"node_flops": None, "kept": {}, **noted}))
    case = INFER.with_factors(runtime="tensorrt", precision="int8")
    metrics = metrics_of_profile(of_engine(RecordedEngine(), case, tmp_path / "model.engine"))
    assert metrics["kernels_count"].value == 137.0
    assert metrics["moving_time_ratio"].value == pytest.approx(49 / 137)
    assert metrics["qdq_nodes_count"].value == nodes


def test_the_gpu_is_busy_for_the_time_that_its_kernels_cover(recorded_launches: KernelLaunches) -> None:
    profile = profile_of_launches(recorded_launches)
    metrics = metrics_of_profile(profile, iteration_ms=4 * recorded_launches.busy_ms)
    assert metrics["gpu_busy_ratio"].value == pytest.approx(0.25)
    assert metrics["kernels_count"].value == len(recorded_launches.kernels)
    assert metrics_of_profile(profile, iteration_ms=0.9 * recorded_launches.busy_ms)["gpu_busy_ratio"].value == 1.0
    assert str(*metrics_of_profile(profile)["gpu_busy_ratio"].reasons) == "not_told"


@pytest.fixture
def recorded_launches() -> KernelLaunches:
    """Kernels that CUPTI recorded on an H200 (tests/precision/data/README.md); one after another, so they add up."""
    kernels = json.loads(gzip.decompress((LAUNCHED / "onnxruntime-tensorrt-fp16.json.gz").read_bytes()))
    pairs = tuple((str(name), float(time_ms)) for name, time_ms in kernels)
    return KernelLaunches(pairs, busy_ms=sum(time_ms for _, time_ms in pairs))


def test_a_torch_run_on_a_cpu_tells_the_operators_that_its_module_calls() -> None:
    result = run(INFER.with_factors(runtime="torch", device="cpu"))
    assert result.profile is not None
    assert result.profile.method.startswith("operators of one run")
    assert result.metrics["kernels_count"].value == len(result.profile.running)
    assert {kernel.kernel for kernel in result.profile.running} >= {"linear", "relu_"}
    assert str(*result.metrics["gpu_busy_ratio"].reasons) == "not_told"


def test_kernels_of_parts_keep_apart_what_has_one_name_in_each() -> None:
    kernels = (Kernel(name="conv", kernel="k", work="multiplying", reads=("x",), writes=("y",), time_ms=1.0),)
    profile = Profile(source="tensorrt", method="m", iterations=2, kernels=kernels, qdq_nodes=3)
    found = joined({"backbone": profile, "head1-depth": profile})
    assert [(each.name, each.reads, each.writes) for each in found.kernels] == [
        ("backbone/conv", ("backbone/x",), ("backbone/y",)),
        ("head1-depth/conv", ("head1-depth/x",), ("head1-depth/y",)),
    ]
    assert (found.total_ms, found.qdq_nodes) == (2.0, 6)
