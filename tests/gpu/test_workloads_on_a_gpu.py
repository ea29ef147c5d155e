# SPDX-License-Identifier: Apache-2.0
"""Workloads on a real GPU: what torch offers there, copies, training under autocast, memory that ends."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from pybench.case import Case  # noqa: E402
from pybench.errors import DeviceMemoryError  # noqa: E402
from tests.support.making import run  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU"),
    # torch's compiler says how it splits a softmax, and that a graph has nothing in it.
    pytest.mark.filterwarnings("default::UserWarning"),
]

INFER = Case(workload="infer", model="resnet50", runtime="torch", batch=8, iterations=30)
TRAIN = Case(workload="train", model="tinylm-small", runtime="torch", batch=4, iterations=30, warmup_iterations=0)
GENERATE = Case(workload="generate", model="tinylm-small", batch=4, seq_len=32, new_tokens=16, iterations=10)
COPY = Case(workload="h2d", iterations=30)


@pytest.mark.parametrize("precision", ["fp32", "tf32", "fp16", "bf16"])
@pytest.mark.parametrize("transfers", [False, True])
def test_each_precision_runs_where_and_as_it_says(precision: str, transfers: bool) -> None:
    result = run(INFER.with_factors(precision=precision, transfers=transfers))
    assert result.labels["device"].startswith("GPU-")
    assert result.labels["layout"] == "channels_last"
    assert result.valid["precision"].value is True
    assert result.metrics["peak_device_bytes"].value > 100e6
    assert "gpu_energy_j" in result.metrics


def test_half_precision_halves_the_model() -> None:
    full, half = (run(INFER.with_factors(precision=name, iterations=2)).metrics for name in ("fp32", "fp16"))
    assert half["model_bytes"].value == pytest.approx(full["model_bytes"].value / 2, rel=0.01)


@pytest.mark.parametrize("precision", ["fp32", "tf32", "amp-bf16", "amp-fp16"])
def test_training_learns_in_each_precision(precision: str) -> None:
    metrics = run(TRAIN.with_factors(precision=precision)).metrics
    assert metrics["loss_last_nats"].value < metrics["loss_first_nats"].value - 0.5


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize(
    ("runtime", "compile_mode"),
    [
        ("torch", "default"),
        ("torch-graph", "default"),
        ("torch-compile", "default"),
        ("torch-compile", "reduce-overhead"),
    ],
)
def test_generation_agrees_with_eager_fp32_in_each_runtime(runtime: str, compile_mode: str, temperature: float) -> None:
    case = GENERATE.with_factors(runtime=runtime, compile_mode=compile_mode, temperature=temperature)
    result = run(case)
    assert result.valid["accuracy"].value is True
    assert result.metrics["tpot_ms"].value > 0
    if temperature == 0:
        assert result.metrics["fp32_token_agreement_ratio"].value > 0.9  # a tie of two logits may fall either way
    else:
        assert run(case).labels["output_ids_sha256"] == result.labels["output_ids_sha256"]


@pytest.mark.parametrize("new_tokens", [2, 3])
def test_a_captured_request_may_be_shorter_than_its_calls_before_capture(new_tokens: int) -> None:
    result = run(GENERATE.with_factors(runtime="torch-graph", new_tokens=new_tokens))
    assert result.valid["accuracy"].value is True
    assert result.metrics["fp32_token_agreement_ratio"].value > 0.9


def test_page_locked_memory_is_copied_faster() -> None:
    pageable, pinned = (run(COPY.with_factors(pinned=pinned)).metrics for pinned in (False, True))
    assert pinned["bandwidth_gb_per_s"].value > pageable["bandwidth_gb_per_s"].value > 0.5


def test_predictions_repeat_and_agree_with_the_cpu() -> None:
    case = Case(workload="accuracy", model="digits-cnn", runtime="torch", batch=64)
    one, same, cpu = run(case), run(case), run(case.with_factors(device="cpu"))
    for name in ("top1", "top5_hit"):
        assert np.array_equal(one.tables["predictions"][name], same.tables["predictions"][name])
    assert one.metrics["top1_percent"].value == pytest.approx(cpu.metrics["top1_percent"].value, abs=0.5)


def test_device_memory_that_runs_out_is_told_by_evidence() -> None:
    case = Case(workload="infer", model="tinylm-small", runtime="torch", batch=1_000_000, seq_len=2048)
    with pytest.raises(DeviceMemoryError) as caught:
        run(case)
    assert "OutOfMemoryError" in caught.value.evidence


AT_ONCE = COPY.with_factors(transfer_bytes=1 << 28, pinned=True, non_blocking=True)


def test_copies_in_both_directions_run_at_once() -> None:
    one, both = (run(AT_ONCE.with_factors(direction=way)).metrics for way in ("h2d", "both"))
    assert both["bandwidth_gb_per_s"].value > 1.3 * one["bandwidth_gb_per_s"].value


@pytest.mark.parametrize("changes", [{"direction": "d2h"}, {"streams": 4}, {"direction": "both", "streams": 2}])
def test_every_way_of_copying_is_about_as_fast_as_the_usual_one(changes: dict[str, str | int]) -> None:
    usual, other = (run(case).metrics for case in (AT_ONCE, AT_ONCE.with_factors(**changes)))
    assert other["bandwidth_gb_per_s"].value > 0.5 * usual["bandwidth_gb_per_s"].value


@pytest.mark.parametrize("pinned", [False, True])
def test_memory_of_a_chosen_node_is_copied(pinned: bool) -> None:
    from pybench.runtimes.host_memory import numa_nodes

    for node in numa_nodes():
        result = run(COPY.with_factors(numa_node=node, pinned=pinned))
        assert result.labels["numa_node"] == str(node)
        assert result.metrics["bandwidth_gb_per_s"].value > 0.5


@pytest.mark.parametrize(
    "changes",
    [
        {"fed": False},
        {"gradient_checkpointing": True},
        {"accumulation": 2},
        {"fused_optimiser": False},
        {"runtime": "torch-compile"},
        {"runtime": "torch-compile", "compile_mode": "reduce-overhead", "accumulation": 2},
    ],
)
def test_every_way_of_training_learns(changes: dict[str, bool | int | str]) -> None:
    metrics = run(TRAIN.with_factors(precision="amp-bf16", **changes)).metrics
    assert metrics["loss_last_nats"].value < metrics["loss_first_nats"].value - 0.5


def test_gradient_checkpointing_takes_less_memory() -> None:
    large = TRAIN.with_factors(model="tinylm-large", batch=32, seq_len=512, iterations=5)
    kept, again = (step_peak_bytes(large.with_factors(gradient_checkpointing=on)) for on in (False, True))
    assert again < kept


def step_peak_bytes(case: Case) -> float:
    """Of this case alone: what the cases before it left in this process is no part of it."""
    left = torch.cuda.memory_allocated()
    return run(case).metrics["step_peak_bytes"].value - left
