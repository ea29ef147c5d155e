# SPDX-License-Identifier: Apache-2.0
"""The profile of kernels that a run ends with, in each runtime that tells one on a GPU."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from pybench.case import Case  # noqa: E402
from pybench.errors import UnsupportedError  # noqa: E402
from pybench.kernels.profile import work_of  # noqa: E402
from pybench.measurement.result import Result  # noqa: E402
from tests.support.making import run  # noqa: E402

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU")]

CASE = Case(workload="infer", model="digits-cnn", batch=64, iterations=100, warmup_iterations=10, idle_window_s=0.0)
PACKAGES = {"onnxruntime": "onnxruntime", "tensorrt": "tensorrt", "torch-tensorrt": "torch_tensorrt"}
SOURCES = {"onnxruntime": "recorded", "tensorrt": "tensorrt", "torch-tensorrt": "recorded"}


def profiled(runtime: str) -> Result:
    pytest.importorskip(PACKAGES[runtime])
    provider = {"provider": "cuda"} if runtime == "onnxruntime" else {}
    try:
        return run(CASE.with_factors(runtime=runtime, device="cuda", **provider))
    except UnsupportedError as error:
        if error.reason.stored_code != "no_cuda_provider":
            raise
        pytest.skip(str(error))


@pytest.mark.parametrize("runtime", SOURCES)
def test_a_run_ends_with_the_kernels_of_one_iteration_and_their_times(runtime: str) -> None:
    result = profiled(runtime)
    profile = result.profile
    assert profile is not None, result.labels["profile"]
    assert profile.source == SOURCES[runtime]
    assert result.metrics["kernels_count"].value == len(profile.running) > 0
    assert work_of(profile, "multiplying")
    assert all(kernel.time_ms is not None and kernel.time_ms > 0 for kernel in work_of(profile, "multiplying"))
    assert profile.total_ms < 20 * result.metrics["latency_mean_ms"].value  # of one iteration, not of a window
