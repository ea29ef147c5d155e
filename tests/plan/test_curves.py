# SPDX-License-Identifier: Apache-2.0
"""`curves`: what a plan wants drawn over which numeric factor."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pybench.campaign.resolved_plan import parse_resolved_plan
from pybench.case.curves import PlannedCurve
from pybench.plan import Plan, resolve

MATRIX = "  - {workload: infer, model: digits-cnn, runtime: onnxruntime, precision: [fp32, int8], batch: [1, 8, 16]}\n"
CRITERIA = "criteria: {baseline: {precision: fp32}}\n"


def test_curves_are_read_and_stored(load: Callable[..., Plan]) -> None:
    text = f"{MATRIX}{CRITERIA}curves: [{{over: batch, metric: speedup}}, {{over: batch, metric: latency_p99_ms}}]\n"
    plan = load(text)
    assert plan.curves == (PlannedCurve("batch", "speedup"), PlannedCurve("batch", "latency_p99_ms"))
    assert parse_resolved_plan(resolve(plan, plan.cases)).curves == plan.curves
    assert "curves" not in resolve(load(MATRIX), plan.cases)


@pytest.mark.parametrize(
    ("curve", "expected"),
    [
        ("{over: batch}", "5:9: `metric` is missing (a metric, or a criterion without"),
        ("{over: model, metric: speedup}", "5:16: `over` takes one of"),
        ("{over: batch, metric: throughput}", "not 'throughput' (did you mean `throughput_ratio`?)"),
        ("{over: threads, metric: speedup}", "5:16: a curve over threads needs at least 3 values of it"),
        ("{over: batch, metric: tpot_ms}", "5:31: no case yields tpot_ms (it comes from workload generate"),
        ("{over: batch, metric: goodput_samples_per_s}", "(it has a value for each bound of `slo_ms`, and"),
        ("{over: batch, metric: goodput_ratio}", "(it has a value for each bound of `slo_ms`, and"),
        ("{over: batch, metric: speedup}", "5:31: speedup compares with a baseline, and the plan has no `criteria`"),
    ],
)
def test_a_curve_without_a_line_is_refused(problems: Callable[..., list[str]], curve: str, expected: str) -> None:
    (found,) = problems(f"{MATRIX}curves: {curve}\n")
    assert expected in found


def test_a_curve_crosses_no_workloads(problems: Callable[..., list[str]]) -> None:
    """Two batches of inference and one of accuracy: three values, and no line has three points."""
    matrix = (
        "  - {workload: infer, model: digits-cnn, runtime: onnxruntime, batch: [1, 64]}\n"
        "  - {workload: accuracy, model: digits-cnn, runtime: onnxruntime, batch: 50}\n"
    )
    (found,) = problems(f"{matrix}curves: {{over: batch, metric: latency_p50_ms}}\n")
    assert "a curve over batch needs at least 3 values of it" in found
    assert "no workload that yields latency_p50_ms has more than 2 (give `batch` more values in one entry" in found


def test_a_comparison_of_what_no_case_yields_is_refused(problems: Callable[..., list[str]]) -> None:
    (found,) = problems(f"{MATRIX}{CRITERIA}curves: {{over: batch, metric: top1_delta_pp}}\n")
    assert (
        "6:31: top1_delta_pp needs top1_percent: no case yields top1_percent (it comes from workload accuracy)" in found
    )
