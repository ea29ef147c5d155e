# SPDX-License-Identifier: Apache-2.0
"""What plans say of heads, and what is refused with the place and a hint."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pybench.case.yields import metrics_of
from pybench.plan import Plan

ENTRY = "workload: infer, model: vit-heads"
RATES = f"{ENTRY}, heads: 2, runtime: torch"
PLAN = "schema_version: 1\nname: heads\nrepetitions: 2\nmatrix:\n  - {{{entry}}}\n"


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        (f"{ENTRY}, heads: 2, dispatch: streams, runtime: onnxruntime", "onnxruntime runs all heads as one graph"),
        (f"{ENTRY}, heads: 7, runtime: torch", "`heads` takes"),
        (f"{ENTRY}, runtime: torch, head_rates_hz: fast", "`head_rates_hz` takes rates above 0 such as `30,10`"),
        (f"{ENTRY}, runtime: torch, head_rates_hz: '30,0,1'", "`head_rates_hz` takes rates above 0"),
        (f"{ENTRY}, heads: 2, runtime: torch, head_rates_hz: '30,10,5'", "`head_rates_hz` has 3 rates for 2 heads"),
        (f"{ENTRY}, heads: 2, runtime: torch, head_rates_hz: '30,10'", "frames have to arrive at the highest rate"),
        (
            f"{RATES}, head_rates_hz: '30,1', arrivals: fixed, arrival_rate_per_s: 30, iterations: 20",
            "does not run once in 20 frames (set `iterations` to 30 or more)",
        ),
        (
            f"{ENTRY}, runtime: tensorrt, head_rates_hz: '30,10,5', arrivals: fixed, arrival_rate_per_s: 30",
            "is not possible (use `dispatch: streams` or `runtime: torch`)",
        ),
        (
            f"{ENTRY}, dispatch: streams, runtime: onnxruntime",
            "is not possible (use `runtime: tensorrt` or `runtime: torch`)",
        ),
        (
            f"{ENTRY}, dispatch: streams, runtime: tensorrt, transfers: true",
            "tensorrt times each head on the device, without the copies",
        ),
        (f"{ENTRY}, runtime: torch, transfers: true", "5:68: torch times each head on the device, without the copies"),
        (
            "workload: infer, model: mlp, runtime: torch, heads: 2",
            "`heads` has no meaning for mlp: it shapes the layers of vit-heads (it applies to infer of vit-heads)",
        ),
    ],
)
def test_heads_that_cannot_run_so_are_refused(problems: Callable[..., list[str]], entry: str, problem: str) -> None:
    found = problems(PLAN.format(entry=entry), whole=True)
    assert any(problem in one for one in found), found


def test_a_checkpoint_of_several_heads_of_one_kind_has_no_engine_for_each(
    problems: Callable[..., list[str]], tmp_path: Path
) -> None:
    (tmp_path / "own.pt").write_bytes(b"weights")
    entry = f"{ENTRY}, heads: 4, dispatch: streams, runtime: tensorrt, checkpoint: own.pt"
    (found,) = problems(PLAN.format(entry=entry), whole=True)
    assert "heads of one kind have one engine, and a checkpoint has weights for each of 4 heads" in found
    assert "leave it out, or use at most 3 heads" in found


def test_the_forms_of_the_documentation_are_taken(load: Callable[..., Plan]) -> None:
    entry = f"{ENTRY}, heads: [1, 4], dispatch: [sequential, one-engine], runtime: torch"
    assert len(load(PLAN.format(entry=entry), whole=True).cases) == 4


def test_engines_of_heads_take_streams_and_rates(load: Callable[..., Plan]) -> None:
    rates = "head_rates_hz: '30,10', arrivals: fixed, arrival_rate_per_s: 30"
    entry = f"{ENTRY}, heads: 2, dispatch: streams, runtime: tensorrt, {rates}"
    (case,) = load(PLAN.format(entry=entry), whole=True).cases
    assert case.parts is not None
    assert "latency_depth1_p50_ms" not in metrics_of(case)  # the host times frames, one at a time
    assert "latency_depth1_p50_ms" in metrics_of(case.with_factors(dispatch="one-engine", arrivals="closed"))


def test_copies_count_where_all_heads_end_with_the_iteration(load: Callable[..., Plan]) -> None:
    entry = f"{ENTRY}, runtime: onnxruntime, provider: cuda, transfers: true"
    assert len(load(PLAN.format(entry=entry), whole=True).cases) == 1
