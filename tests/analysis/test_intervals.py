# SPDX-License-Identifier: Apache-2.0
"""Intervals of means and differences, against slow twins, scipy, hand calculation and their promised coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pybench.analysis.estimate import BCA, EQUAL, SINGLE, STUDENT, WELCH, Estimate, Sample
from pybench.analysis.intervals import (
    BOOTSTRAP_MINIMUM,
    bootstrap_mean,
    estimate_difference,
    estimate_geometric_mean,
    estimate_mean,
)
from tests.oracles.paired import bca_interval, student_interval


def test_five_values_worked_by_hand_give_students_interval() -> None:
    # mean 12, s = sqrt(10/4) = 1.5811, s/sqrt(5) = 0.70711, t(0.975, 4) = 2.77645: half-width 1.96324
    found = estimate_mean(Sample.of([10, 11, 12, 13, 14]), seed=1)
    assert found.method == STUDENT
    assert (found.value, found.n) == (12.0, 5)
    assert found.lower == pytest.approx(12 - 1.96324, abs=1e-5)
    assert found.upper == pytest.approx(12 + 1.96324, abs=1e-5)


@pytest.mark.parametrize("n", [2, 3, 7, BOOTSTRAP_MINIMUM - 1])
def test_few_values_equal_the_slow_twin(n: int) -> None:
    values = np.random.default_rng(n).lognormal(0, 0.5, n)
    found = estimate_mean(Sample.of(values), seed=1)
    assert (found.lower, found.upper) == pytest.approx(student_interval(list(values), 0.95))


@pytest.mark.parametrize("spread", [0.1, 0.8])
def test_many_values_equal_a_bootstrap_written_step_by_step(spread: float) -> None:
    values = np.random.default_rng(3).lognormal(0, spread, 30)
    found = estimate_mean(Sample.of(values), seed=1)
    assert found.method == BCA
    assert found.lower is not None
    assert found.upper is not None
    # Two Monte Carlo runs of 10 000 resamples agree to about a thirtieth of the interval's width.
    tolerance = (found.upper - found.lower) / 20
    assert (found.lower, found.upper) == pytest.approx(bca_interval(list(values), 0.95, 10_000, 5), abs=tolerance)


def test_one_value_has_no_interval_and_says_so() -> None:
    found = estimate_mean(Sample.of([3.0]), seed=1)
    assert (found.value, found.lower, found.upper, found.method) == (3.0, None, None, SINGLE)


def test_equal_values_give_a_point_that_is_labelled() -> None:
    found = estimate_mean(Sample.of([0.1 + 0.2, 0.3, 0.3]), seed=1)
    assert found.method == EQUAL
    assert found.lower == found.upper == found.value


def test_the_same_seed_gives_the_same_interval() -> None:
    sample = Sample.of(np.random.default_rng(3).normal(10, 1, 40))
    assert estimate_mean(sample, seed=9) == estimate_mean(sample, seed=9)


@pytest.mark.parametrize("n", [5, 20])
def test_nominal_95_percent_cover_at_least_90(n: int) -> None:
    rng = np.random.default_rng(8)
    hits = 0
    trials = 300
    for _ in range(trials):
        found = estimate_mean(Sample.of(rng.normal(1.0, 0.1, n)), seed=1)
        assert found.lower is not None
        assert found.upper is not None
        hits += found.lower <= 1.0 <= found.upper
    assert 0.90 <= hits / trials <= 0.99


def test_an_unpaired_difference_of_few_values_is_welchs() -> None:
    first, second = [10.0, 11.0, 12.0], [14.0, 15.5, 15.0, 18.0]
    found = estimate_difference(Sample.of(first), Sample.of(second), seed=1)
    judge = stats.ttest_ind(second, first, equal_var=False).confidence_interval(0.95)
    assert found.method == WELCH
    assert (found.lower, found.upper) == pytest.approx((judge.low, judge.high))


def test_an_unpaired_difference_of_many_values_is_bootstrapped_near_welchs() -> None:
    rng = np.random.default_rng(2)
    first, second = rng.normal(10, 1, 40), rng.normal(11, 2, 50)
    found = estimate_difference(Sample.of(first), Sample.of(second), seed=1)
    judge = stats.ttest_ind(second, first, equal_var=False).confidence_interval(0.95)
    assert found.method == BCA
    assert (found.lower, found.upper) == pytest.approx((judge.low, judge.high), abs=0.12)


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
    found = estimate_geometric_mean(times, seed=1)
    assert found.value == pytest.approx(10.0)
    # logarithms -1, 0, 1 times ln 10: s = ln 10, half-width 4.302653 ln 10 / sqrt 3
    assert found.lower == pytest.approx(10 ** (1 - 4.302653 / 3**0.5), rel=1e-5)
    rate = estimate_geometric_mean(Sample.of(1 / times.values), seed=1)
    assert (rate.lower, rate.upper) == pytest.approx((found.inverse().lower, found.inverse().upper))


@pytest.mark.parametrize("n", [2, 4])
def test_the_bootstrap_gives_no_interval_where_it_would_hold_the_truth_least(n: int) -> None:
    found = bootstrap_mean(Sample.of(range(1, n + 1)), seed=1)
    assert (found.value, found.has_interval, found.n, found.method) == ((n + 1) / 2, False, n, "too few values")
    assert bootstrap_mean(Sample.of(range(1, 6)), seed=1).has_interval
