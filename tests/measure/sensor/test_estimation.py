# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, stats

from pybench.measure.sensor.estimation import FEWEST, UncertainValue, leave_one_out, minimise, robust_mean, t_widening


def test_a_robust_mean_of_normal_values_is_their_mean_with_its_standard_error() -> None:
    values = np.random.default_rng(1).normal(5.0, 2.0, 400)
    found = robust_mean(values)
    assert found is not None
    assert found.value == pytest.approx(values.mean(), abs=0.03)
    assert found.u == pytest.approx(values.std() / 20, rel=0.1)


def test_a_robust_mean_is_not_moved_by_a_few_wild_values() -> None:
    values = np.concatenate((np.random.default_rng(2).normal(5.0, 0.1, 45), [90.0, -50.0, 1e6]))
    found = robust_mean(values)
    assert found is not None
    assert found.value == pytest.approx(5.0, abs=0.05)
    assert found.u < 0.03


def test_values_that_are_equal_or_too_few_are_told_apart() -> None:
    assert robust_mean(np.full(9, 3.0)) == UncertainValue(3.0, 0.0)
    assert robust_mean(np.arange(FEWEST - 1.0)) is None


def test_the_spread_of_few_observations_is_that_of_students_t() -> None:
    for count in (FEWEST, 8, 30):
        assert t_widening(count) == pytest.approx(stats.t(count - 1).std())


def test_leaving_out_one_value_at_a_time_gives_the_standard_error_of_a_mean() -> None:
    values = np.random.default_rng(3).normal(0.0, 1.0, 12)
    u = leave_one_out(lambda kept: np.array([values[kept].mean()]), len(values))
    assert u[0] == pytest.approx(values.std(ddof=1) / np.sqrt(12) * t_widening(12))


def test_a_minimum_is_found_where_scipy_finds_it() -> None:
    found = minimise(lambda each: float(optimize.rosen(each)), np.array((0.3, 0.4)), np.array((0.2, 0.2)), rounds=500)
    judge = optimize.minimize(optimize.rosen, (0.3, 0.4), method="Nelder-Mead")
    assert found == pytest.approx(judge.x, abs=1e-2)
