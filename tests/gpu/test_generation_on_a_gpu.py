# SPDX-License-Identifier: Apache-2.0
"""Generation by onnxruntime's CUDA provider: its logits and tokens next to those of a CPU, and a run of it."""

from __future__ import annotations

import numpy as np
import pytest

from pybench import measure
from pybench.case import Case
from pybench.errors import UnsupportedError
from pybench.measurement.model import open_model
from pybench.runtimes.generation import Generation, GenerationTask
from pybench.workloads.generate import open_generation
from tests.support.making import request_of, run

pytest.importorskip("onnxruntime")

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not measure.visible_gpus(), reason="CUDA shows no GPU")]

TOLERANCE = 2e-4  # of all logits together (l2), as in test_runtimes_agree.py
PROMPT = np.random.default_rng(3).integers(0, 32_000, (3, 24))
CASE = Case(
    workload="generate", model="tinylm-small", runtime="onnxruntime", device="cuda", provider="cuda", batch=3,
    seq_len=24, new_tokens=16, iterations=5, warmup_iterations=1, energy_window_s=0.5,
)  # fmt: skip


def opened(case: Case, temperature: float = 0.0) -> Generation:
    try:
        return open_generation(open_model(request_of(case)), case, GenerationTask(PROMPT, 16, temperature, 1))
    except UnsupportedError as error:
        if error.reason.stored_code != "no_cuda_provider":
            raise
        pytest.skip(str(error))


def test_logits_from_the_cache_are_those_of_a_cpu_within_rounding() -> None:
    on_cpu = CASE.with_factors(device="cpu", provider=None)
    found, expected = (np.stack(list(opened(case).logits())) for case in (CASE, on_cpu))
    errors = np.linalg.norm(found - expected, axis=-1) / np.linalg.norm(expected, axis=-1)
    assert errors[0].max() < TOLERANCE  # later ones are of equal tokens only
    generation = opened(CASE)
    for _ in range(2):
        generation.prefill()
        generation.decode()
        assert np.array_equal(generation.ids(), found.argmax(-1).T)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_run_measures_both_parts(temperature: float) -> None:
    opened(CASE)  # skips where the provider is missing
    result = run(CASE.with_factors(temperature=temperature))
    assert result.valid["accuracy"].value is True
    assert result.valid["precision"].value is True
    assert result.metrics["tpot_ms"].value > 0
    assert "gpu_energy_per_output_token_j" in result.metrics
    assert result.labels["launch"] == "enqueue"
