# SPDX-License-Identifier: Apache-2.0
"""Accuracy statistics: published values, McNemar's test, the slow twin, a bootstrap and promised coverage."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar

from pybench.analysis.statistics.proportions import (
    EXACT_BELOW,
    ScoreTest,
    UnitPairs,
    estimate_paired_difference,
    estimate_share,
    is_exact,
    p_of_no_difference,
    score,
)
from tests.oracles.proportions import tango_interval


def test_the_interval_is_the_published_one() -> None:
    # Bentur et al. (2009), as analysed by Fagerland, Lydersen and Laake (2014): Tango's interval is -0.517 to -0.026.
    found = estimate_paired_difference(UnitPairs(both=1, only_candidate=1, only_baseline=7, neither=12))
    assert found.value == pytest.approx(-6 / 21)
    assert found.lower == pytest.approx(-0.517, abs=5e-4)
    assert found.upper == pytest.approx(-0.026, abs=5e-4)


@pytest.mark.parametrize("effect", [1.0, 3.0])
@pytest.mark.parametrize(("b", "c", "n"), [(4, 1, 360), (40, 20, 160), (0, 7, 100)])
def test_a_bound_of_the_interval_is_where_half_of_five_percent_are_beyond(
    b: int, c: int, n: int, effect: float
) -> None:
    pairs = UnitPairs(0, b, c, n - b - c)
    found = estimate_paired_difference(pairs, design_effect=effect).scaled(100)
    test = ScoreTest(pairs, effect, 100)
    assert found.lower is not None
    assert found.upper is not None
    assert test.p_above(found.lower) == pytest.approx(0.025, abs=1e-6)
    assert test.p_below(found.upper) == pytest.approx(0.025, abs=1e-6)
    assert (test.p_above(100), test.p_below(-100)) == (1, 1)


@pytest.mark.parametrize(("b", "c", "n"), [(4, 1, 360), (40, 20, 160), (0, 7, 100), (0, 0, 50), (10, 0, 10)])
def test_the_interval_equals_the_slow_twin(b: int, c: int, n: int) -> None:
    found = estimate_paired_difference(UnitPairs(0, b, c, n - b - c))
    lower, upper = tango_interval(b, c, n)
    assert found.lower == pytest.approx(lower, abs=2e-3)
    assert found.upper == pytest.approx(upper, abs=2e-3)


def test_the_score_at_zero_is_mcnemars() -> None:
    pairs = UnitPairs(100, 15, 5, 40)
    judge = mcnemar([[100, 15], [5, 40]], exact=False, correction=False).statistic
    assert score(pairs, 0.0) ** 2 == pytest.approx(judge)


@pytest.mark.parametrize(("b", "c"), [(9, 2), (0, 1), (4, 5), (0, 5), (12, 12), (0, 0)])
def test_the_p_of_few_changes_is_mcnemars_exact_one(b: int, c: int) -> None:
    judge = mcnemar([[100, b], [c, 40]], exact=True).pvalue
    assert p_of_no_difference(UnitPairs(100, b, c, 40)) == pytest.approx(judge)


@pytest.mark.parametrize(("b", "c"), [(13, 12), (20, 5), (40, 90)])
def test_the_p_of_many_changes_is_mcnemars_by_the_score(b: int, c: int) -> None:
    judge = mcnemar([[100, b], [c, 40]], exact=False, correction=False).pvalue
    assert p_of_no_difference(UnitPairs(100, b, c, 40)) == pytest.approx(judge)


def test_one_image_that_changed_sides_is_no_evidence() -> None:
    """By the score, p was 0.32."""
    assert p_of_no_difference(UnitPairs(449, 0, 1, 0)) == 1.0


def test_units_in_groups_have_the_score_test_however_few_changed() -> None:
    pairs = UnitPairs(100, 1, 5, 14)
    assert is_exact(pairs)
    assert not is_exact(pairs, grouped=True)
    expected = 2 * stats.norm.sf(4 / math.sqrt(6) / math.sqrt(2.0))
    assert p_of_no_difference(pairs, design_effect=2.0) == pytest.approx(expected)
    assert p_of_no_difference(pairs, design_effect=1.0) == pytest.approx(2 * stats.norm.sf(4 / math.sqrt(6)))


def test_p_by_the_score_is_below_5_percent_exactly_when_the_interval_excludes_zero() -> None:
    for b, c in itertools.product(range(0, 40, 3), range(0, 40, 3)):
        if b + c < EXACT_BELOW:
            continue
        pairs = UnitPairs(120, b, c, 40)
        found = estimate_paired_difference(pairs)
        assert found.lower is not None
        assert found.upper is not None
        assert (p_of_no_difference(pairs) < 0.05) == (not found.lower <= 0.0 <= found.upper), (b, c)


def test_the_exact_p_is_below_5_percent_only_where_the_interval_excludes_zero() -> None:
    for b, c in itertools.product(range(13), range(13)):
        pairs = UnitPairs(120, b, c, 40)
        found = estimate_paired_difference(pairs)
        assert found.lower is not None
        assert found.upper is not None
        if is_exact(pairs) and p_of_no_difference(pairs) < 0.05:
            assert not found.lower <= 0.0 <= found.upper, (b, c)


def test_swapping_the_sides_mirrors_the_interval() -> None:
    there, back = (estimate_paired_difference(UnitPairs(50, b, c, 30)) for b, c in ((9, 2), (2, 9)))
    assert there.lower is not None
    assert there.upper is not None
    assert (back.lower, back.upper) == pytest.approx((-there.upper, -there.lower))


def test_with_many_images_a_bootstrap_agrees() -> None:
    pairs = UnitPairs(1500, 120, 80, 300)
    changes = np.repeat([0.0, 1.0, -1.0, 0.0], [1500, 120, 80, 300])
    judge = stats.bootstrap(
        (changes,), np.mean, n_resamples=2000, method="percentile", batch=200, rng=np.random.default_rng(1)
    ).confidence_interval
    found = estimate_paired_difference(pairs)
    assert (found.lower, found.upper) == pytest.approx((judge.low, judge.high), abs=1.5e-3)


def test_no_change_still_has_a_width() -> None:
    found = estimate_paired_difference(UnitPairs(300, 0, 0, 60))
    assert found.value == 0
    # z^2 / (n + z^2): what the score test leaves possible when no image of 360 changed sides
    assert found.upper == pytest.approx(1.959964**2 / (360 + 1.959964**2), rel=1e-3)


def test_a_share_has_the_interval_of_scipy_bit_for_bit() -> None:
    for n in (1, 2, 3, 7, 50, 360, 10_000):
        for hits in range(0, n + 1, max(1, n // 50)):
            theirs = stats.binomtest(hits, n).proportion_ci(0.95, method="wilson")
            found = estimate_share(hits, n)
            assert (found.lower, found.upper) == (float(theirs.low), float(theirs.high)), (hits, n)


def test_a_share_has_wilsons_interval_worked_by_hand() -> None:
    # 9 of 10: centre (0.9 + 0.1920729) / 1.3841459 and half-width 1.96 sqrt(0.009 + 0.0096036) / 1.3841459
    found = estimate_share(9, 10)
    assert found.lower == pytest.approx(0.59585, abs=1e-4)
    assert found.upper == pytest.approx(0.98212, abs=1e-4)


@pytest.mark.parametrize(("n", "b_share", "c_share"), [(200, 0.01, 0.03), (360, 0.003, 0.012)])
def test_the_coverage_of_the_difference_is_nominal_by_enumeration(n: int, b_share: float, c_share: float) -> None:
    covered = seen = 0.0
    for b, c in itertools.product(range(30), range(30)):
        probability = float(stats.multinomial.pmf([b, c, n - b - c], n, [b_share, c_share, 1 - b_share - c_share]))
        if probability > 1e-7:
            seen += probability
            covered += probability * (abs(score(UnitPairs(0, b, c, n - b - c), b_share - c_share)) <= 1.959964)
    assert seen > 0.999
    assert covered == pytest.approx(0.95, abs=0.012)


def test_the_score_is_infinite_where_the_difference_is_impossible() -> None:
    assert score(UnitPairs(0, 0, 0, 10), 1.0) == -math.inf
