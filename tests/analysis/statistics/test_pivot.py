# SPDX-License-Identifier: Apache-2.0
"""Interval and tests of one pivot agree, by hand, by inversion of the slow interval, and as a property."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pybench.analysis.statistics.estimate import Sample
from pybench.analysis.statistics.pivot import Pivot, p_beyond, pivot_of_mean
from tests.oracles.paired import p_by_inversion


def test_p_without_skewness_is_scipys() -> None:
    values = np.array([-0.3, -0.1, 0.0, 0.1, 0.3]) + 0.2
    pivot = pivot_of_mean(Sample.of(values))
    assert pivot.skewness == pytest.approx(0.0, abs=1e-12)
    assert pivot.p_different(0.0) == pytest.approx(stats.ttest_1samp(values, 0.0).pvalue)
    assert pivot.p_above(0.1) == pytest.approx(stats.ttest_1samp(values, 0.1, alternative="greater").pvalue)
    assert pivot.p_below(0.5) == pytest.approx(stats.ttest_1samp(values, 0.5, alternative="less").pvalue)


@pytest.mark.parametrize("null", [-0.5, 0.8, 1.0, 1.15, 1.3, 3.0])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_p_is_the_level_at_which_the_slow_interval_touches_the_null(null: float, side: float) -> None:
    values = side * np.random.default_rng(6).lognormal(0, 0.7, 6)
    assert pivot_of_mean(Sample.of(values)).p_different(side * null) == pytest.approx(
        p_by_inversion(list(values), side * null), rel=1e-6
    )


pivots = st.builds(
    Pivot,
    value=st.floats(-3, 3),
    error=st.floats(0.01, 2),
    freedom=st.floats(1, 80),
    skewness=st.floats(-1.5, 1.5),
)


@given(pivots, st.floats(-5, 5), st.floats(0.5, 0.999))
def test_an_interval_excludes_what_its_test_refuses(pivot: Pivot, null: float, confidence: float) -> None:
    lower, upper = pivot.bounds(confidence)
    if min(abs(lower - null), abs(upper - null)) > 1e-6:
        assert (pivot.p_different(null) < 1 - confidence) == (not lower <= null <= upper)


@given(pivots, st.floats(0.5, 0.999))
def test_a_skewed_interval_contains_students(pivot: Pivot, confidence: float) -> None:
    lower, upper = pivot.bounds(confidence)
    even = Pivot(pivot.value, pivot.error, pivot.freedom, 0.0).bounds(confidence)
    assert lower <= even[0] <= even[1] <= upper
    assert pivot.critical(1 - confidence) * pivot.error == pytest.approx(max(pivot.value - lower, upper - pivot.value))


@pytest.mark.parametrize("skewness", [-0.4, 0.0, 0.4])
@pytest.mark.parametrize("margin", [0.0, 0.5, 1.0, 2.0])
def test_a_mean_is_beyond_a_margin_where_its_interval_is(skewness: float, margin: float) -> None:
    for value in np.linspace(-6, 6, 41):
        pivot = Pivot(float(value), 1.0, 7.0, skewness)
        lower, upper = pivot.bounds(0.95)
        assert (p_beyond(pivot, -margin, margin) < 0.05) == (lower > margin or upper < -margin)
