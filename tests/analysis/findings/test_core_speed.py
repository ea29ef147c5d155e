# SPDX-License-Identifier: Apache-2.0
"""How much of the spread of runs the calling core explains: by hand, and by statsmodels' least squares."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from statsmodels.regression.linear_model import OLS

from pybench.analysis import analyse
from pybench.analysis.findings.core_speed import CoreSpeed, follow_cores
from pybench.analysis.measurements import Measurements, MetricValues
from pybench.case import Case
from pybench.dataset import load
from pybench.dataset.software import Software
from pybench.report import write_report
from tests.support.campaigns import CampaignBuilder
from tests.support.environments import environment
from tests.support.precision_campaign import INFER

CASES = [INFER.with_factors(batch=batch) for batch in (1, 8, 64)]


def follow(
    logs: Mapping[Case, tuple[list[float], list[float]]], software: Mapping[str, Mapping[int, Software]] | None = None
) -> tuple[CoreSpeed, ...]:
    """`logs`: of each case, log latency and log probe of its blocks."""
    cells = {
        (case.id, name): MetricValues(values={block: float(np.exp(value)) for block, value in enumerate(values, 1)})
        for case, both in logs.items()
        for name, values in zip(("latency_mean_ms", "core_probe_mean_ms"), both, strict=True)
    }
    return follow_cores(list(logs), Measurements(cells, {}, {}), software or {})


def test_runs_that_take_twice_as_long_on_a_core_of_half_the_speed_have_a_slope_of_1_and_leave_nothing() -> None:
    probes = [0.0, 0.5, 1.0]
    (found,) = follow({case: ([offset + probe for probe in probes], probes) for offset, case in enumerate(CASES)})
    assert found.slope.value == pytest.approx(1)
    assert found.explained == pytest.approx(1)
    assert found.left == pytest.approx(0, abs=1e-9)
    assert found.spread == pytest.approx((3 * 0.5 / 6) ** 0.5)  # squares 0.25 + 0.25 a case, 9 - 3 degrees of freedom
    assert found.waits


def test_least_squares_with_a_constant_for_each_case_agree() -> None:
    generator = np.random.default_rng(8)
    probes = generator.normal(0, 0.1, (3, 5))
    latencies = 0.7 * probes + generator.normal(0, 0.05, (3, 5)) + np.array([[0.0], [1.0], [4.0]])
    (found,) = follow({case: (list(a), list(b)) for case, a, b in zip(CASES, latencies, probes, strict=True)})
    cases = np.repeat(np.eye(3), 5, axis=0)
    fitted = OLS(latencies.ravel(), np.column_stack([probes.ravel(), cases])).fit()
    alone = OLS(latencies.ravel(), cases).fit()
    assert found.slope.value == pytest.approx(fitted.params[0])
    assert (found.slope.lower, found.slope.upper) == pytest.approx(tuple(fitted.conf_int()[0]))
    assert found.explained == pytest.approx(1 - fitted.ssr / alone.ssr)
    assert found.spread == pytest.approx(alone.mse_resid**0.5)
    assert found.left == pytest.approx(fitted.mse_resid**0.5)
    assert found.runs == 15


def test_the_interval_contains_the_slope_in_nineteen_of_twenty() -> None:
    generator = np.random.default_rng(9)
    inside = 0
    for _ in range(600):
        probes = generator.normal(0, 0.1, (3, 3))
        latencies = 1.2 * probes + generator.normal(0, 0.1, (3, 3))
        (found,) = follow({case: (list(a), list(b)) for case, a, b in zip(CASES, latencies, probes, strict=True)})
        assert found.slope.lower is not None
        assert found.slope.upper is not None
        inside += found.slope.lower <= 1.2 <= found.slope.upper
    assert 0.925 < inside / 600 < 0.975  # standard error 0.009


def test_runs_on_two_boards_are_each_compared_with_those_of_their_board() -> None:
    """The second board is half as fast, and its host's cores are slower: no slope comes of that."""
    logs = {case: ([0.3, 0.3, 0.31, 1.0, 1.0, 1.01], [0.0, 0.2, 0.1, 1.0, 1.2, 1.1]) for case in CASES}
    by_board = {block: Software({"board": "a" if block < 4 else "b"}, {}, None) for block in range(1, 7)}
    (mixed,) = follow(logs)
    (apart,) = follow(logs, {case.id: by_board for case in CASES})
    assert mixed.waits
    assert abs(apart.slope.value) < 0.01
    assert not apart.waits


def test_models_and_runtimes_have_lines_of_their_own() -> None:
    generator = np.random.default_rng(10)
    cases = [case.with_factors(runtime=runtime) for runtime in ("torch", "onnxruntime") for case in CASES]
    logs = {case: (list(generator.normal(0, 0.1, 4)), list(generator.normal(0, 0.1, 4))) for case in cases}
    found = follow(logs)
    assert [[case.runtime for case in one.cases] for one in found] == [["torch"] * 3, ["onnxruntime"] * 3]


@pytest.mark.parametrize(
    "logs",
    [
        {CASES[0]: ([0.0, 0.1, 0.2, 0.3, 0.4], [0.0, 0.1, 0.2, 0.3, 0.5])},  # 5 - 1 - 1 degrees of freedom
        {case: ([0.0], [0.1]) for case in CASES},
        {case: ([0.0, 0.1, 0.2], []) for case in CASES},
        {case: ([0.0, 0.1, 0.2], [0.5, 0.5, 0.5]) for case in CASES},
        {case: ([0.1, 0.1, 0.1], [0.1, 0.2, 0.3]) for case in CASES},
    ],
)
def test_too_few_runs_and_runs_that_do_not_differ_have_no_line(
    logs: dict[Case, tuple[list[float], list[float]]],
) -> None:
    assert follow(logs) == ()


def test_a_report_says_that_runs_wait_for_their_core(tmp_path: Path) -> None:
    builder = CampaignBuilder(tmp_path / "c", CASES, repetitions=3)
    for case in CASES:
        for block, slow in enumerate((1.0, 1.3, 1.6), start=1):
            own = case.batch * slow * (1 + 0.01 * (block % 2))
            builder.run(
                case, block, {"latency_mean_ms": own, "core_probe_mean_ms": 0.005 * slow}, environment=environment()
            )
    (found,) = analyse(load(builder.path)).core_speeds
    assert found.waits
    page = write_report(load(builder.path))
    assert "Runs wait for their core" in page.read_text()
    assert "Spread of repeated runs, and the speed of the calling core" in page.read_text()
    name = f"infer {CASES[0].model} {CASES[0].runtime}"
    assert (page.parent / "tables" / "core_speed.csv").read_text().splitlines()[1].startswith(f"{name},9,")
