# SPDX-License-Identifier: Apache-2.0
"""Intervals of means and differences, against slow twins, scipy, hand calculation and their promised coverage."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from pybench.analysis.statistics.bootstrap import RESAMPLES
from pybench.analysis.statistics.estimate import BCA, EQUAL, SINGLE, SKEW_T, SKEW_WELCH, STUDENT, WIDE, Estimate, Sample
from pybench.analysis.statistics.intervals import (
    bootstrap_mean,
    estimate_difference,
    estimate_geometric_mean,
    estimate_mean,
    student_mean,
)
from tests.oracles.paired import bca_interval, skewed_interval, skewed_welch_interval, student_interval

Values = NDArray[np.float64]
Draw = Callable[[int, np.random.Generator], Values]


def test_five_even_values_worked_by_hand_give_students_interval() -> None:
    # mean 12, s = sqrt(10/4) = 1.5811, s/sqrt(5) = 0.70711, t(0.975, 4) = 2.77645: half-width 1.96324
    found = estimate_mean(Sample.of([10, 11, 12, 13, 14]))
    assert found.method == SKEW_T
    assert (found.value, found.n) == (12.0, 5)
    assert found.lower == pytest.approx(12 - 1.96324, abs=1e-5)
    assert found.upper == pytest.approx(12 + 1.96324, abs=1e-5)


def test_a_long_tail_worked_by_hand_moves_one_bound() -> None:
    # 0, 0, 0, 4: mean 1, s = 2, g1 = (24/4) / (12/4)^1.5 = 1.15470, t(0.975, 3) = 3.18245: Student's half 3.18245,
    # longer tail 2 * 1.15470 * (2 * 3.18245^2 + 1) / 24 = 2.04536
    found = estimate_mean(Sample.of([0, 0, 0, 4]))
    assert found.lower == pytest.approx(1 - 3.18245, abs=1e-5)
    assert found.upper == pytest.approx(1 + 3.18245 + 2.04536, abs=1e-4)


@pytest.mark.parametrize("n", [2, 3, 7, 14, 15, 60])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_every_number_of_values_equals_the_slow_twin(n: int, side: float) -> None:
    values = side * np.random.default_rng(n).lognormal(0, 0.5, n)
    found = estimate_mean(Sample.of(values))
    assert (found.lower, found.upper) == pytest.approx(skewed_interval(list(values), 0.95))


@pytest.mark.parametrize("n", [2, 3, 20])
def test_a_papers_student_interval_is_scipys_and_the_slow_twins(n: int) -> None:
    values = np.random.default_rng(n).lognormal(0, 0.5, n)
    found = student_mean(Sample.of(values))
    judge = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert found.method == STUDENT
    assert (found.lower, found.upper) == pytest.approx((judge.low, judge.high))
    assert (found.lower, found.upper) == pytest.approx(student_interval(list(values), 0.95))


@pytest.mark.parametrize("spread", [0.1, 0.8])
def test_a_papers_bootstrap_equals_one_written_step_by_step(spread: float) -> None:
    values = np.random.default_rng(3).lognormal(0, spread, 30)
    found = bootstrap_mean(Sample.of(values), seed=1)
    assert found.method == BCA
    assert found.lower is not None
    assert found.upper is not None
    # Two Monte Carlo runs of 10 000 resamples agree to about a thirtieth of the interval's width.
    tolerance = (found.upper - found.lower) / 20
    assert (found.lower, found.upper) == pytest.approx(bca_interval(list(values), 0.95, 10_000, 5), abs=tolerance)


@pytest.mark.parametrize("n", [5, 30, 61])
@pytest.mark.parametrize("decimals", [0, 9])
def test_a_papers_bootstrap_is_scipys_bit_for_bit(n: int, decimals: int) -> None:
    values = np.random.default_rng(n).lognormal(1, 0.8, n).round(decimals)
    found = bootstrap_mean(Sample.of(values), seed=7)
    rng = np.random.default_rng(7)
    judge = stats.bootstrap((values,), np.mean, n_resamples=RESAMPLES, method="BCa", rng=rng).confidence_interval
    assert (found.lower, found.upper) == (judge.low, judge.high)


def test_one_value_has_no_interval_and_says_so() -> None:
    found = estimate_mean(Sample.of([3.0]))
    assert (found.value, found.lower, found.upper, found.method) == (3.0, None, None, SINGLE)


@pytest.mark.parametrize("values", [[1.0, 500.0], [1e-60, 1e60]])
def test_two_values_that_scatter_too_much_have_no_interval_and_say_so(values: list[float]) -> None:
    found = estimate_geometric_mean(Sample.of(values))
    assert (found.lower, found.upper, found.n, found.method) == (None, None, 2, WIDE)
    assert found.value == pytest.approx(np.sqrt(values[0]) * np.sqrt(values[1]))
    assert found.why_no_interval == "the values scatter too much for an interval"
    narrow = estimate_geometric_mean(Sample.of([1.0, 2.0]))
    assert narrow.has_interval
    assert json.dumps(found.inverse().as_json(), allow_nan=False)


def test_equal_values_give_a_point_that_is_labelled() -> None:
    found = estimate_mean(Sample.of([0.1 + 0.2, 0.3, 0.3]))
    assert found.method == EQUAL
    assert found.lower == found.upper == found.value


def _normal(n: int, rng: np.random.Generator) -> Values:
    return rng.normal(size=n)


def _t3(n: int, rng: np.random.Generator) -> Values:
    return rng.standard_t(3, size=n)


def _outliers(n: int, rng: np.random.Generator) -> Values:
    return rng.normal(size=n) + 5.0 * (rng.random(n) < 0.1) - 0.5


def _lognormal(n: int, rng: np.random.Generator) -> Values:
    return rng.lognormal(0, 0.5, size=n) - np.exp(0.125)


@pytest.mark.parametrize(
    ("draw", "n", "least"),
    [
        (_normal, 5, 0.94),
        (_normal, 20, 0.94),
        (_t3, 20, 0.94),  # the BCa bootstrap: 0.89
        (_t3, 30, 0.94),  # 0.90
        (_outliers, 30, 0.93),  # 0.92
        (_lognormal, 10, 0.93),  # 0.88; Student's t: 0.92
    ],
)
def test_nominal_95_percent_contain_the_truth_93_times_in_a_hundred(draw: Draw, n: int, least: float) -> None:
    """Log-ratios of known truth 0 (bench/intervals has the whole table). Standard error of a share: 0.004."""
    rng = np.random.default_rng(8)
    hits = 0
    trials = 3000
    for _ in range(trials):
        found = estimate_geometric_mean(Sample.of(np.exp(0.05 * draw(n, rng))))
        assert found.lower is not None
        assert found.upper is not None
        hits += found.lower <= 1.0 <= found.upper
    assert least <= hits / trials <= 0.98


def test_an_unpaired_difference_without_skewness_is_welchs() -> None:
    first, second = [10.0, 11.0, 12.0], [14.0, 15.5, 16.0, 17.5]
    found = estimate_difference(Sample.of(first), Sample.of(second))
    judge = stats.ttest_ind(second, first, equal_var=False).confidence_interval(0.95)
    assert found.method == SKEW_WELCH
    assert (found.lower, found.upper) == pytest.approx((judge.low, judge.high))


@pytest.mark.parametrize(("n", "m"), [(2, 3), (5, 5), (40, 9)])
def test_an_unpaired_difference_equals_the_slow_twin(n: int, m: int) -> None:
    rng = np.random.default_rng(n)
    first, second = rng.lognormal(0, 0.5, n), rng.lognormal(1, 0.2, m)
    found = estimate_difference(Sample.of(first), Sample.of(second))
    assert (found.lower, found.upper) == pytest.approx(skewed_welch_interval(list(first), list(second), 0.95))
    turned = estimate_difference(Sample.of(second), Sample.of(first))
    assert found.lower is not None
    assert found.upper is not None
    assert (turned.lower, turned.upper) == pytest.approx((-found.upper, -found.lower))


def test_a_difference_to_a_constant_has_the_interval_of_the_other_mean() -> None:
    values = Sample.of([1.0, 2.0, 2.5, 7.0])
    found, alone = estimate_difference(Sample.of([1.0, 1.0]), values), estimate_mean(values)
    assert alone.lower is not None
    assert alone.upper is not None
    assert (found.lower, found.upper) == pytest.approx((alone.lower - 1, alone.upper - 1))


def test_the_inverse_of_an_estimate_swaps_its_bounds() -> None:
    assert Estimate(2.0, 1.6, 2.5, 5, STUDENT).inverse() == Estimate(0.5, 0.4, 0.625, 5, STUDENT)


@pytest.mark.parametrize("values", [[], [1.0, float("nan")], [float("inf")]])
def test_a_sample_refuses_what_has_no_mean(values: list[float]) -> None:
    with pytest.raises(ValueError, match="finite"):
        Sample.of(values)


def test_a_ratio_refuses_zero() -> None:
    with pytest.raises(ValueError, match="positive"):
        Sample.of([1.0, 0.0]).log()


def test_a_geometric_mean_by_hand_stays_positive_and_is_the_same_for_a_rate() -> None:
    times = Sample.of([1.0, 10.0, 100.0])
    found = estimate_geometric_mean(times)
    assert found.value == pytest.approx(10.0)
    # logarithms -1, 0, 1 times ln 10: s = ln 10, half-width 4.302653 ln 10 / sqrt 3
    assert found.lower == pytest.approx(10 ** (1 - 4.302653 / 3**0.5), rel=1e-5)
    rate = estimate_geometric_mean(Sample.of(1 / times.values))
    assert (rate.lower, rate.upper) == pytest.approx((found.inverse().lower, found.inverse().upper))


@pytest.mark.parametrize("n", [2, 4])
def test_the_bootstrap_gives_no_interval_where_it_would_hold_the_truth_least(n: int) -> None:
    found = bootstrap_mean(Sample.of(range(1, n + 1)), seed=1)
    assert (found.value, found.has_interval, found.n, found.method) == ((n + 1) / 2, False, n, "too few values")
    assert bootstrap_mean(Sample.of(range(1, 6)), seed=1).has_interval
