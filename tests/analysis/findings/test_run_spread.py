# SPDX-License-Identifier: Apache-2.0
"""How much of the spread of runs the calling core explains: by hand, and by statsmodels' least squares."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from statsmodels.regression.linear_model import OLS

from pybench.analysis import analyse
from pybench.analysis.findings.run_spread import RunSpread, explain_spreads
from pybench.analysis.measurements import Measurements, MetricValues
from pybench.case import Case
from pybench.dataset import load
from pybench.dataset.software import Software
from pybench.report import write_report
from tests.support.campaigns import CampaignBuilder
from tests.support.environments import environment
from tests.support.precision_campaign import INFER

CASES = [INFER.with_factors(batch=batch) for batch in (1, 8, 64)]


ON_ONE_BOARD = {block: Software({"board": "a", "cpu": "x"}, {}, None) for block in range(1, 10)}


def explain(
    logs: Mapping[Case, tuple[Sequence[float], Sequence[float]]], software: Mapping[int, Software] = ON_ONE_BOARD
) -> tuple[RunSpread, ...]:
    """`logs`: of each case, log latency and log probe of its blocks."""
    return explain_values(
        {case: tuple([math.exp(v) for v in values] for values in both) for case, both in logs.items()}, software
    )


def explain_values(
    values: Mapping[Case, tuple[Sequence[float], ...]], software: Mapping[int, Software] = ON_ONE_BOARD
) -> tuple[RunSpread, ...]:
    cells = {
        (case.id, name): MetricValues(values=dict(enumerate(own, 1)))
        for case, both in values.items()
        for name, own in zip(("latency_mean_ms", "core_probe_mean_ms"), both, strict=True)
    }
    return explain_spreads(list(values), Measurements(cells, {}, {}), {case.id: software for case in values})


def test_runs_that_take_twice_as_long_on_a_core_of_half_the_speed_have_a_slope_of_1_and_leave_nothing() -> None:
    probes = [0.0, 0.5, 1.0]
    (found,) = explain({case: ([offset + probe for probe in probes], probes) for offset, case in enumerate(CASES)})
    assert found.slope.value == pytest.approx(1)
    assert found.explained == pytest.approx(1)
    assert found.left == pytest.approx(0, abs=1e-9)
    assert found.spread == pytest.approx((3 * 0.5 / 6) ** 0.5)  # squares 0.25 + 0.25 a case, 9 - 3 degrees of freedom
    assert found.waits_for_core


def test_least_squares_with_a_constant_for_each_case_agree() -> None:
    generator = np.random.default_rng(8)
    probes = generator.normal(0, 0.1, (3, 5))
    latencies = 0.7 * probes + generator.normal(0, 0.05, (3, 5)) + np.array([[0.0], [1.0], [4.0]])
    (found,) = explain({case: (list(a), list(b)) for case, a, b in zip(CASES, latencies, probes, strict=True)})
    cases = np.repeat(np.eye(3), 5, axis=0)
    fitted = OLS(latencies.ravel(), np.column_stack([probes.ravel(), cases])).fit()
    alone = OLS(latencies.ravel(), cases).fit()
    assert found.slope.value == pytest.approx(fitted.params[0])
    assert (found.slope.lower, found.slope.upper) == pytest.approx(tuple(fitted.conf_int()[0]))
    assert found.explained == pytest.approx(1 - fitted.mse_resid / alone.mse_resid)
    assert found.spread == pytest.approx(alone.mse_resid**0.5)
    assert found.left == pytest.approx(fitted.mse_resid**0.5)
    assert found.runs == 15


@pytest.mark.parametrize("noises", [[[0.1]] * 3, [[0.02], [0.02], [0.2]]])
def test_the_interval_contains_the_slope_in_nineteen_of_twenty(noises: list[list[float]]) -> None:
    generator = np.random.default_rng(9)
    inside = 0
    for _ in range(600):
        probes = generator.normal(0, 0.1, (3, 3))
        latencies = 1.2 * probes + generator.normal(0, noises, (3, 3))
        (found,) = explain({case: (list(a), list(b)) for case, a, b in zip(CASES, latencies, probes, strict=True)})
        assert found.slope.lower is not None
        assert found.slope.upper is not None
        inside += found.slope.lower <= 1.2 <= found.slope.upper
    assert 0.925 < inside / 600 < 0.975  # standard error 0.009


@pytest.mark.parametrize("fact", ["board", "cpu"])
def test_runs_on_two_machines_are_each_compared_with_those_of_their_own(fact: str) -> None:
    """The second board is half as fast, and its host's cores are slower: no slope comes of that."""
    logs = {case: ([0.3, 0.3, 0.31, 1.0, 1.0, 1.01], [0.0, 0.2, 0.1, 1.0, 1.2, 1.1]) for case in CASES}
    (mixed,) = explain(logs)
    (apart,) = explain(logs, {block: Software({fact: "a" if block < 4 else "b"}, {}, None) for block in range(1, 7)})
    assert mixed.waits_for_core
    assert abs(apart.slope.value) < 0.01
    assert not apart.waits_for_core


def test_a_run_that_does_not_state_what_it_ran_on_is_left_out() -> None:
    logs = {case: ([0.0, 0.5, 1.0, 7.0], [0.0, 0.5, 1.0, -7.0]) for case in CASES}
    stated = {**ON_ONE_BOARD, 4: Software({"driver": "580.1"}, {}, None)}
    (found,) = explain(logs, stated)
    assert (found.runs, found.slope.value) == (9, pytest.approx(1))
    del stated[4]
    assert explain(logs, stated) == (found,)


@pytest.mark.parametrize("odd", [0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("place", [0, 1])
def test_a_value_without_a_logarithm_is_left_out(odd: float, place: int) -> None:
    values = {case: ([1.0, 2.0, 3.0, 1.0], [1.0, 2.0, 3.0, 1.0]) for case in CASES}
    for both in values.values():
        both[place][3] = odd
    (found,) = explain_values(values)
    assert (found.runs, found.slope.value) == (9, pytest.approx(1))


def test_a_case_without_probes_is_counted() -> None:
    values = {case: ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]) for case in CASES}
    values[CASES[0]] = ([1.0, 2.0, 3.0], [])
    values[CASES[1]] = ([1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, 3.0, 4.0, 5.0])
    (found,) = explain_values(values)
    assert (len(found.cases), found.alike, found.runs) == (2, 3, 8)


@pytest.mark.parametrize(
    ("latencies", "waits"),
    [
        ([0.0, 0.05, 0.1], True),
        ([0.0, 0.019, 0.038], False),  # a spread of 1.9 %
        ([0.0, 0.021, 0.042], True),
        ([0.05, 0.0, 0.1], False),  # 6 % of the variance
        ([0.1, 0.05, 0.0], False),  # a slower core, and less time
    ],
)
def test_runs_wait_for_their_core_where_they_differ_noticeably_and_mostly_by_it(
    latencies: list[float], waits: bool
) -> None:
    (found,) = explain({case: (latencies, [0.0, 0.05, 0.1]) for case in CASES})
    assert found.waits_for_core == waits


def test_runtimes_and_devices_have_lines_of_their_own() -> None:
    generator = np.random.default_rng(10)
    kinds = [("torch", "cpu"), ("torch", "cuda"), ("onnxruntime", "cpu")]
    cases = [case.with_factors(runtime=runtime, device=device) for runtime, device in kinds for case in CASES]
    logs = {case: (list(generator.normal(0, 0.1, 4)), list(generator.normal(0, 0.1, 4))) for case in cases}
    found = explain(logs)
    assert [[(case.runtime, case.device) for case in one.cases] for one in found] == [[kind] * 3 for kind in kinds]


@pytest.mark.parametrize(
    "logs",
    [
        {CASES[0]: ([0.0, 0.1, 0.2, 0.3, 0.4], [0.0, 0.1, 0.2, 0.3, 0.5])},  # 5 - 1 - 1 degrees of freedom
        {case: ([0.0, 0.1, 0.3], [0.0, 0.1, 0.2]) for case in CASES[:1]},
        {case: ([0.0], [0.1]) for case in CASES},
        {case: ([0.0, 0.1, 0.2], []) for case in CASES},
        {case: ([0.0, 0.1, 0.2], [0.5, 0.5, 0.5]) for case in CASES},
        {case: ([0.1, 0.1, 0.1], [0.1, 0.2, 0.3]) for case in CASES},
    ],
)
def test_too_few_runs_and_runs_that_do_not_differ_have_no_line(
    logs: dict[Case, tuple[list[float], list[float]]],
) -> None:
    assert explain(logs) == ()


def test_four_degrees_of_freedom_are_enough() -> None:
    (found,) = explain({CASES[0]: ([0.0, 0.1, 0.2, 0.3, 0.4, 0.5], [0.0, 0.1, 0.2, 0.3, 0.5, 0.4])})
    assert found.runs == 6


def test_a_report_says_that_runs_wait_for_their_core(tmp_path: Path) -> None:
    builder = CampaignBuilder(tmp_path / "c", CASES, repetitions=3)
    for case in CASES:
        for block, slow in enumerate((1.0, 1.3, 1.6), start=1):
            own = case.batch * slow * (1 + 0.01 * (block % 2))
            builder.run(
                case, block, {"latency_mean_ms": own, "core_probe_mean_ms": 0.005 * slow}, environment=environment()
            )
    (found,) = analyse(load(builder.path)).run_spreads
    assert found.waits_for_core
    page = write_report(load(builder.path))
    text = page.read_text()
    name = "infer resnet50 tensorrt"
    assert f"about {100 * found.explained:.0f} % for {name} (9 runs)" in text
    assert "Spread of repeated runs, and the speed of the calling core" in text
    assert (page.parent / "tables" / "run_spread.csv").read_text().splitlines()[1].startswith(f"{name},3,3,9,")
