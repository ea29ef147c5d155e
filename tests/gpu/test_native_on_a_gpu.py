# SPDX-License-Identifier: Apache-2.0
"""The native process with ONNX Runtime's CUDA provider: its logits beside those of a CPU, and a window of it.

Needs the orchestrator and a wheel of onnxruntime-gpu whose provider starts; what is missing is skipped and says so.
"""

from __future__ import annotations

import numpy as np
import pytest

from pybench import measure
from pybench.case import Case
from pybench.errors import UnsupportedError
from pybench.measurement.model import OpenedModel, open_model
from tests.support.making import request_of, run

pytest.importorskip("onnxruntime")

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not measure.visible_gpus(), reason="CUDA shows no GPU")]

MISSING = ("orchestrator_missing", "no_cuda_provider", "no_onnxruntime_library")
TOLERANCE = {"fp32": 2e-4, "fp16": 2e-2}  # of all logits together (l2), as in test_runtimes_agree.py
CASE = Case(
    workload="infer", model="tinylm-tiny", runtime="native", path="go_rust", device="cuda", provider="cuda", batch=4,
    seq_len=64, iterations=50, warmup_iterations=5, energy_window_s=0.5, corpus_limit_bytes=400_000,
)  # fmt: skip


def opened(case: Case) -> OpenedModel:
    try:
        return open_model(request_of(case))
    except UnsupportedError as error:
        if error.reason.stored_code not in MISSING:
            raise
        pytest.skip(str(error))


@pytest.mark.parametrize("precision", TOLERANCE)
def test_logits_are_those_of_a_cpu_within_rounding(precision: str) -> None:
    ids = np.random.default_rng(3).integers(0, 32_000, (3, 24))
    native = opened(CASE.with_factors(precision=precision)).session
    cpu = open_model(request_of(CASE.with_factors(runtime="onnxruntime", device="cpu", provider=None))).session
    found, expected = (session.run({session.inputs[0].name: ids})[0] for session in (native, cpu))
    native.close()
    assert native.device_uuid in measure.visible_gpus()
    error = np.linalg.norm(found.astype(np.float32) - expected) / np.linalg.norm(expected)
    assert 0 < error < TOLERANCE[precision]


def test_a_window_of_text_runs_on_the_gpu() -> None:
    opened(CASE).session.close()  # what is missing is told here
    result = run(CASE)
    assert result.labels["provider"] == "cuda"
    assert result.labels["device"].startswith("GPU-")
    assert len(result.tables["iterations"]["host_ns"]) == 50
    assert result.metrics["throughput_tokens_per_s"].value > 0
    assert result.metrics["gpu_energy_j"].window == "energy"
