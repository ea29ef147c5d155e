# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from pybench.case import Case
from pybench.catalogue.reasons import ReasonCode
from pybench.errors import DeviceMemoryError, InputError, UnsupportedError
from pybench.measure import Times, monotonic_ns
from pybench.measure.energy.cpu_estimate import BOUND_W
from pybench.measurement import model
from pybench.measurement.model import OpenedModel
from pybench.measurement.result import RunRequest
from pybench.runtimes.generation import Generation
from pybench.workloads import generate
from pybench.workloads.generate import agreeing_share, token_metrics
from tests.support.making import codes, run
from tests.support.reasons import codes_of

SMALL = Case(
    workload="generate", model="tinylm-small", runtime="torch", batch=2, seq_len=16, new_tokens=5, threads=1,
    iterations=4, warmup_iterations=1, idle_window_s=0.0, device="cpu",
)  # fmt: skip


def test_a_request_is_one_latency_with_two_parts() -> None:
    result = run(SMALL)
    value = {name: metric.value for name, metric in result.metrics.items()}
    assert value["latency_mean_ms"] == pytest.approx(value["ttft_ms"] + 4 * value["tpot_ms"])
    table = result.tables["iterations"]
    assert list(table) == ["gap_ns", "host_ns", "to_first_token_ns"]
    assert np.all((table["to_first_token_ns"] > 0) & (table["to_first_token_ns"] < table["host_ns"]))
    assert value["ttft_ms"] == pytest.approx(table["to_first_token_ns"].mean() * 1e-6)
    span_s = ((table["gap_ns"] + table["host_ns"]).sum() - table["gap_ns"][0]) * 1e-9
    assert value["output_tokens_per_s"] == pytest.approx(4 * 2 * 5 / span_s)
    assert value["kv_cache_bytes"] == 2 * 4 * 2 * 4 * (16 + 4) * 64 * 4  # K and V, L, N, H, S, D/H, FP32
    assert value["fp32_token_agreement_ratio"] == 1.0
    assert {kind: verdict.value for kind, verdict in result.valid.items() if kind != "energy"} == {
        "timing": True, "precision": True, "accuracy": True,
    }  # fmt: skip
    assert "untrained_weights" in codes(result)  # the agreement is of outputs


def test_each_window_runs_its_own_part_as_often_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, int]] = []

    def open_generation(*arguments: Any) -> Generation:
        generation = opening(*arguments)
        for name in ("prefill", "decode"):
            monkeypatch.setattr(generation, name, partial(noted, name, getattr(generation, name)))
        return generation

    def noted(name: str, work: Callable[[], None]) -> None:
        calls.append((name, monotonic_ns()))
        work()

    opening = generate.open_generation
    monkeypatch.setattr(generate, "open_generation", open_generation)
    result = run(SMALL.with_factors(energy_window_s=0.2))
    assert list(result.windows) == ["prefill", "decode", "timing", "energy"]
    parts = {"prefill": ["prefill"], "decode": ["decode"], "timing": ["prefill", "decode"]}
    for name, window in result.windows.items():
        begin_ns, end_ns = window["begin_ns"], window["end_ns"]
        inside = [part for part, at_ns in calls if begin_ns <= at_ns <= end_ns]
        assert inside == parts.get(name, parts["timing"]) * window["iterations"]
        assert name == "timing" or (end_ns - begin_ns) * 1e-9 >= 0.2


@pytest.mark.parametrize(("kind", "window", "tokens"), [("input", "prefill", 2 * 16), ("output", "decode", 2 * 4)])
def test_the_joules_of_a_part_are_shared_among_its_tokens(kind: str, window: str, tokens: int) -> None:
    result = run(SMALL.with_factors(energy_window_s=0.2))
    assert result.metrics[f"cpu_energy_per_{kind}_token_j"].window == window
    estimate = result.metrics[f"cpu_energy_per_{kind}_token_estimate_j"]
    assert estimate.window == window
    assert estimate.interval is not None
    busy_s = float(estimate.reasons[0].detail.partition(" s of busy CPU time")[0])
    resolution_s = (os.cpu_count() or 1) / os.sysconf("SC_CLK_TCK")
    upper_j = estimate.interval[1] * tokens * result.windows[window]["iterations"]
    assert upper_j == pytest.approx(BOUND_W * (busy_s + resolution_s), rel=0.02)  # three digits of busy time


def test_times_that_are_known_give_the_metrics_by_hand() -> None:
    begin, end = (np.array(times, np.int64) * 1_000_000 for times in ([10, 30], [26, 40]))
    due, first = np.array([6, 12], np.int64) * 1_000_000, np.array([14, 32], np.int64) * 1_000_000
    case = SMALL.with_factors(batch=3, new_tokens=5)
    closed = {name: metric.value for name, metric in token_metrics(Times(begin, end), first, case).items()}
    assert closed == pytest.approx(
        {"ttft_ms": 3, "ttft_p99_ms": 4, "tpot_ms": 2.5, "tpot_p99_ms": 3, "output_tokens_per_s": 30 / 0.03}
    )
    arriving = token_metrics(Times(begin, end, due), first, case)
    assert arriving["ttft_ms"].value == pytest.approx((8 + 20) / 2)  # the second waited from 12 to 30 ms
    assert arriving["tpot_ms"].value == pytest.approx(2.5)


def test_requests_that_arrive_wait_before_their_first_token() -> None:
    result = run(SMALL.with_factors(arrivals="poisson", arrival_rate_per_s=40.0, iterations=10), seed=5)
    table = result.tables["iterations"]
    assert list(table) == ["gap_ns", "host_ns", "waiting_ns", "to_first_token_ns"]
    waits_ms = (table["waiting_ns"] + table["to_first_token_ns"]).mean() * 1e-6
    assert result.metrics["ttft_ms"].value == pytest.approx(waits_ms)
    assert result.labels["arrivals"] == "poisson, 40/s"


def test_seeded_draws_repeat_and_are_compared_with_nothing() -> None:
    hashes = []
    for seed in (1, 1, 2):
        result = run(SMALL.with_factors(temperature=1.0, iterations=1), seed=seed)
        hashes.append(result.labels["output_ids_sha256"])
        assert "fp32_token_agreement_ratio" not in result.metrics
    assert hashes[0] == hashes[1] != hashes[2]


def test_the_agreement_ends_at_the_first_token_that_differs() -> None:
    reference = np.array([[1, 2, 3, 4], [5, 6, 7, 8]])
    assert agreeing_share(reference, reference) == 1.0
    assert agreeing_share(np.array([[1, 9, 3, 4], [5, 6, 7, 9]]), reference) == (1 / 4 + 3 / 4) / 2


def test_weights_that_overflow_are_told_and_agree_with_nothing(tmp_path: object) -> None:
    from pathlib import Path

    from pybench.models.building import build

    state = build("tinylm-small").state_dict()
    state["norm.weight"] = torch.full_like(state["norm.weight"], float("nan"))
    path = Path(str(tmp_path)) / "weights.pt"
    torch.save(state, path)
    result = run(SMALL.with_factors(checkpoint="weights.pt"), {"checkpoint": path})
    assert (result.valid["accuracy"].value, codes_of(result.valid["accuracy"].reasons)) == (False, ("not_finite",))
    assert result.valid["timing"].value is True
    assert "outputs_lost" in codes(result)
    agreement = result.metrics["fp32_token_agreement_ratio"]
    assert agreement.value is None
    assert str(agreement.reasons[0]) == "not_finite: logits of new token 1"


def test_a_run_outlives_a_reference_that_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    def open_model(request: RunRequest) -> OpenedModel:
        if request.case.precision == "fp32":
            torch.empty(1 << 50)
        return model.open_model(request)

    monkeypatch.setattr(generate, "open_model", open_model)
    result = run(SMALL.with_factors(precision="bf16"))
    assert result.valid["accuracy"].value is True
    assert result.metrics["tpot_ms"].value > 0
    agreement = result.metrics["fp32_token_agreement_ratio"]
    assert (agreement.value, [reason.code for reason in agreement.reasons]) == (
        None,
        [ReasonCode.REFERENCE_OUT_OF_MEMORY],
    )
    with pytest.raises(DeviceMemoryError):  # the model itself has to fit
        run(SMALL)


@pytest.mark.parametrize("runtime", ["native", "tensorrt", "torch-tensorrt"])
def test_a_runtime_that_keeps_no_cache_is_unsupported_by_name(runtime: str) -> None:
    request = RunRequest(case=SMALL.with_factors(runtime=runtime), block=0, attempt=1, seed=1, artefacts={}, files={})
    with pytest.raises(UnsupportedError) as caught:
        generate.run(request)
    assert caught.value.reason.stored_code == f"no_generation_in_{runtime}"
    assert "use runtime: onnxruntime or torch" in str(caught.value.hint)


def test_a_sequence_that_grows_beyond_the_models_positions_is_refused() -> None:
    with pytest.raises(InputError, match="2048 positions, the case asks for seq_len 2000 and new_tokens 64"):
        run(SMALL.with_factors(seq_len=2000, new_tokens=64))
