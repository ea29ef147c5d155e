# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pickle

import pytest

from pybench.case import Case, case_to_json
from pybench.case.contrasts import parse
from pybench.case.service_levels import at_bounds, bounds_of, from_json, to_json, with_bounds
from pybench.case.yields import metrics_of
from pybench.catalogue.catalogue import BUILT_IN
from pybench.catalogue.metrics import METRICS
from pybench.errors import UsageError

INFER = Case(workload="infer", model="mlp", runtime="torch")
BOUNDED = with_bounds(INFER, [50, 2.5])


def test_bounds_are_no_part_of_a_case() -> None:
    assert bounds_of(BOUNDED) == (2.5, 50)
    assert (BOUNDED.id, BOUNDED, hash(BOUNDED)) == (INFER.id, INFER, hash(INFER))
    assert case_to_json(BOUNDED) == case_to_json(INFER)
    assert bounds_of(INFER) == ()


def test_bounds_of_a_case_are_kept_with_further_ones_and_where_it_is_copied() -> None:
    assert bounds_of(with_bounds(BOUNDED, [10])) == (2.5, 10, 50)
    assert bounds_of(BOUNDED.with_factors(batch=4)) == (2.5, 50)
    assert bounds_of(pickle.loads(pickle.dumps(BOUNDED))) == (2.5, 50)


def test_a_resolved_plan_gives_them_back_and_without_them_stores_nothing() -> None:
    stored = to_json([INFER.with_factors(batch=2), BOUNDED])
    assert stored == {"case_slo_ms": {INFER.id: [2.5, 50]}}
    assert [bounds_of(case) for case in from_json([INFER.with_factors(batch=2), INFER], stored)] == [(), (2.5, 50)]
    assert to_json([INFER]) == {}
    with pytest.raises((TypeError, ValueError)):
        from_json([INFER], {"case_slo_ms": {INFER.id: ["soon"]}})


def test_a_case_yields_each_metric_once_for_each_bound() -> None:
    assert metrics_of(BOUNDED) - metrics_of(INFER) == {
        "slo_attainment_ratio@2.5ms",
        "slo_attainment_ratio@50ms",
        "goodput_samples_per_s@2.5ms",
        "goodput_samples_per_s@50ms",
    }
    assert "slo_attainment_ratio" not in metrics_of(INFER)
    assert not any("@" in name for name in metrics_of(BOUNDED.with_factors(workload="train")))


def test_a_row_of_a_bound_is_found_by_its_name() -> None:
    row = BUILT_IN.metric("goodput_samples_per_s@2.5ms")
    assert row == BOUNDED.catalogue.metrics["goodput_samples_per_s@2.5ms"]
    assert (row.bound_ms, row.label, row.unit, row.better) == (2.5, "Goodput at 2.5 ms", "1/s", "higher")
    assert BUILT_IN.metric("latency_mean_ms") is METRICS["latency_mean_ms"]


def test_a_criterion_of_such_a_metric_is_judged_at_each_bound() -> None:
    accept = {"goodput_ratio_min": 0.9, "speedup_min": 1.0}
    (contrast,) = parse({"baseline": {"runtime": "torch"}, "accept": accept})
    asked = at_bounds(contrast, [BOUNDED, INFER])
    assert [(one.name, one.metric) for one in asked.accept] == [
        ("goodput_ratio_min@2.5ms", "goodput_samples_per_s@2.5ms"),
        ("goodput_ratio_min@50ms", "goodput_samples_per_s@50ms"),
        ("speedup_min", "latency_mean_ms"),
    ]
    assert at_bounds(contrast, [INFER]) == contrast


def test_an_absolute_criterion_is_of_the_case_alone_and_takes_shares_and_rates() -> None:
    (contrast,) = parse({"baseline": {"runtime": "torch"}, "accept": {"slo_attainment_min": 0.99, "goodput_min": 50}})
    assert [one.compare(2.0, 0.0) for one in contrast.accept] == [2.0, 2.0]
    assert [one.metric for one in at_bounds(contrast, [with_bounds(INFER, [10])]).accept] == [
        "slo_attainment_ratio@10ms",
        "goodput_samples_per_s@10ms",
    ]
    for wrong in ({"slo_attainment_min": 99}, {"slo_attainment_min": 0}, {"goodput_min": 0}):
        with pytest.raises(UsageError, match=f"{next(iter(wrong))} takes a"):
            parse({"baseline": {"runtime": "torch"}, "accept": wrong})
