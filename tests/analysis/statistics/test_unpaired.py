# SPDX-License-Identifier: Apache-2.0
"""Tests of independent samples: scipy and statsmodels as judges, slow twins, cases by hand, and every decision provoked
by data that make it go the other way."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from statsmodels.stats.meta_analysis import effectsize_smd
from statsmodels.stats.multicomp import pairwise_tukeyhsd

from pybench.analysis.statistics.estimate import Sample
from pybench.analysis.statistics.unpaired import (
    CLIFF,
    HEDGES,
    MANN_WHITNEY,
    SHAPIRO_MOST,
    WELCH_T,
    PairTest,
    analyse_variance,
    brown_forsythe,
    compare_adaptively,
    compare_means,
    compare_ranks,
    hedges_g,
    judge_normality,
)
from tests.oracles import unpaired as slow

# Quantiles of the normal distribution: as normal as thirty numbers can be. Their exponentials are not.
NORMAL = stats.norm.ppf((np.arange(30) + 0.5) / 30)
SKEWED = np.exp(NORMAL)


def compared(first: NDArray[np.float64] | list[float], second: NDArray[np.float64] | list[float]) -> PairTest:
    samples = Sample.of(first), Sample.of(second)
    return compare_adaptively(*samples, (judge_normality(samples[0]), judge_normality(samples[1])))


# --- which test ------------------------------------------------------------------------------------------------------


def test_two_normal_samples_are_compared_by_welch() -> None:
    found = compared(NORMAL + 10, 2 * NORMAL + 12)
    assert (found.test, found.effect_name) == (WELCH_T, HEDGES)
    assert found.why == "Shapiro-Wilk rejects neither sample (p 1 and 1)"
    judge = stats.ttest_ind(NORMAL + 10, 2 * NORMAL + 12, equal_var=False)
    assert (found.statistic, found.p_value) == (pytest.approx(judge.statistic), pytest.approx(judge.pvalue))
    assert (found.statistic, found.p_value) == pytest.approx(slow.welch(list(NORMAL + 10), list(2 * NORMAL + 12)))


@pytest.mark.parametrize(("skewed", "named"), [(0, "the first: Shapiro-Wilk p"), (1, "the second: Shapiro-Wilk p")])
def test_one_skewed_sample_turns_the_pair_to_mann_whitney(skewed: int, named: str) -> None:
    sides = [NORMAL + 3, NORMAL + 4]
    sides[skewed] = SKEWED + skewed
    found = compared(*sides)
    assert (found.test, found.effect_name) == (MANN_WHITNEY, CLIFF)
    assert found.why.startswith(named)
    assert "; " not in found.why
    judge = stats.mannwhitneyu(*sides, alternative="two-sided")
    assert (found.statistic, found.p_value) == (pytest.approx(judge.statistic), pytest.approx(judge.pvalue))
    assert (found.statistic, found.effect) == pytest.approx(slow.wins(*map(list, sides)))


@pytest.mark.parametrize(
    ("first", "second"),
    [([3.0] * 3, [1.0] * 3), ([1.0, 2.0, 2.0, 5.0], [2.0, 3.0, 3.0]), ([1.0, 2.0], [2.0, 2.0])],
)
def test_few_values_with_ties_are_counted_arrangement_by_arrangement(first: list[float], second: list[float]) -> None:
    together = first + second
    wins = []
    for chosen in itertools.combinations(range(len(together)), len(first)):
        rest = [together[index] for index in range(len(together)) if index not in chosen]
        wins.append(slow.wins([together[index] for index in chosen], rest)[0])
    here = slow.wins(first, second)[0]
    tails = sum(one >= here for one in wins), sum(one <= here for one in wins)
    assert compared(first, second).p_value == pytest.approx(min(1.0, 2 * min(tails) / len(wins)))


def test_the_line_between_them_is_shapiro_wilks_p_at_five_percent() -> None:
    # A share of skew is mixed in until p crosses 0.05: the choice has to turn there and nowhere else.
    tests = []
    for share in np.linspace(0, 1, 41):
        mixed = (1 - share) * NORMAL + share * SKEWED
        tests.append((stats.shapiro(mixed).pvalue >= 0.05, compared(mixed, NORMAL).test == WELCH_T))
    assert all(expected == chosen for expected, chosen in tests)
    assert {chosen for _, chosen in tests} == {True, False}


def test_the_wrong_choice_would_give_another_answer() -> None:
    # One slow run in thirty hides a shift from Welch and not from the ranks: the choice matters.
    outlier = np.append(NORMAL[:-1] + 2.0, 500.0)
    found = compared(outlier, NORMAL)
    assert found.p_value is not None
    assert found.p_value < 1e-6
    by_means = compare_means(Sample.of(outlier), Sample.of(NORMAL), "forced").p_value
    assert by_means is not None
    assert by_means > 0.05


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([1.0, 2.0], "fewer than 3 values"),
        ([3.0] * 30, "all values are equal"),
        (list(np.linspace(0, 1, SHAPIRO_MOST + 1)), "more than 5000 values"),
    ],
)
def test_a_sample_that_cannot_be_tested_does_not_count_as_normal(values: list[float], why: str) -> None:
    found = judge_normality(Sample.of(values))
    assert found.p_value is None
    assert not found.is_plausible
    assert found.why_not.startswith(why)
    assert compared(values, list(NORMAL)).test == MANN_WHITNEY


# --- numbers ---------------------------------------------------------------------------------------------------------


def test_welch_and_hedges_worked_by_hand() -> None:
    # means 3 and 5, variances 1 and 4, n = 3: t = -2 / sqrt(5/3) = -1.54919, df = (5/3)^2 / (1/18 + 16/18) = 2.941
    found = compare_means(Sample.of([2, 3, 4]), Sample.of([3, 5, 7]), "by hand")
    assert found.statistic == pytest.approx(-1.5491933)
    assert found.p_value == pytest.approx(2 * stats.t.sf(1.5491933, 2.9411765))
    # average variance 2.5: d = -2 / sqrt(2.5) = -1.26491, df = 25 / (1/2 + 16/2) = 2.941, correction 1 - 3/10.765
    assert found.effect == pytest.approx(-2 / math.sqrt(2.5) * (1 - 3 / (4 * 25 / 8.5 - 1)))


def test_mann_whitney_and_cliff_worked_by_hand() -> None:
    # 1 2 3 against 4 5: the first never wins, U = 0, delta -1; of 10 ways to deal two are so extreme: p = 0.2
    found = compare_ranks(Sample.of([1, 2, 3]), Sample.of([4, 5]), "by hand")
    assert (found.statistic, found.effect, found.p_value) == (0.0, -1.0, pytest.approx(0.2))
    # 1 3 against 2 3: larger (3, 2), equal (3, 3), smaller (1, 2), (1, 3): U = 1.5, delta = (1 - 2) / 4
    found = compare_ranks(Sample.of([1, 3]), Sample.of([2, 3]), "by hand")
    assert (found.statistic, found.effect) == (1.5, -0.25)


@pytest.mark.parametrize("seed", range(5))
def test_few_values_get_the_exact_p(seed: int) -> None:
    generator = np.random.default_rng(seed)
    first, second = list(generator.normal(0, 1, 5)), list(generator.normal(1, 1, 4))
    found = compare_ranks(Sample.of(first), Sample.of(second), "")
    assert found.p_value == pytest.approx(slow.exact_p_of_wins(first, second))


def test_hedges_agrees_with_statsmodels_where_sizes_and_variances_are_equal() -> None:
    first, second = NORMAL + 5, -NORMAL
    judge, _ = effectsize_smd(
        first.mean(), first.std(ddof=1), len(first), second.mean(), second.std(ddof=1), len(second)
    )
    assert hedges_g(Sample.of(first), Sample.of(second)) == pytest.approx(judge)


@pytest.mark.parametrize(("few", "many"), [(3.0, 1.0), (1.0, 3.0)])
def test_hedges_is_right_on_average_whichever_sample_is_the_smaller(few: float, many: float) -> None:
    """Means one root of the average variance apart; a pooled variance would give 1.5 and 0.8."""
    generator = np.random.default_rng(6)
    apart = math.sqrt((few**2 + many**2) / 2)
    found = [
        hedges_g(Sample(generator.normal(apart, few, 8)), Sample(generator.normal(0, many, 40))) for _ in range(3000)
    ]
    assert float(np.mean(found)) == pytest.approx(1.0, abs=0.05)  # standard error below 0.01


def test_effects_are_positive_when_the_first_is_larger() -> None:
    for test in (compare_means, compare_ranks):
        up, down = (
            test(Sample.of(NORMAL + 1), Sample.of(NORMAL), ""),
            test(Sample.of(NORMAL), Sample.of(NORMAL + 1), ""),
        )
        assert up.effect is not None
        assert up.effect > 0
        assert down.effect == pytest.approx(-up.effect)


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        ([1.0], [2.0, 3.0], "a sample has only one value"),
        ([2.0, 2.0], [2.0, 2.0, 2.0], "all values of both samples are equal"),
    ],
)
def test_what_cannot_be_tested_has_no_p_and_says_why(first: list[float], second: list[float], why: str) -> None:
    found = compared(first, second)
    assert found.p_value is None
    assert found.why.endswith(why)


def test_two_constant_samples_that_differ_are_told_apart() -> None:
    found = compared([1.0] * 10, [2.0] * 10)
    assert found.effect == -1.0
    assert found.p_value is not None
    assert found.p_value < 0.001


# --- analysis of variance --------------------------------------------------------------------------------------------


def test_anova_and_tukey_run_where_residuals_are_normal_and_variances_equal() -> None:
    values = [NORMAL, NORMAL + 0.2, NORMAL[::-1] + 2.0, NORMAL + 2.1]
    found = analyse_variance([Sample.of(one) for one in values])
    assert found.why_omitted is None
    assert (found.f_statistic, found.p_value) == pytest.approx(slow.anova([list(one) for one in values]))
    judge = pairwise_tukeyhsd(np.concatenate(values), np.repeat(["a", "b", "c", "d"], 30))
    assert found.tukey is not None
    upper = [found.tukey[i][j] for i in range(4) for j in range(i + 1, 4)]
    assert upper == pytest.approx(judge.pvalues, abs=1e-6)
    assert [p < 0.05 for p in upper] == [False, True, True, True, True, False]


def test_anova_worked_by_hand() -> None:
    # -1.5 -0.5 0.5 1.5 around 2, 3 and 7, grand mean 4: between 4 (4 + 1 + 9) / 2 = 28, within 15 / 9, F = 16.8
    around = np.array([-1.5, -0.5, 0.5, 1.5])
    found = analyse_variance([Sample.of(around + mean) for mean in (2, 3, 7)])
    assert found.f_statistic == pytest.approx(16.8)
    assert found.p_value == pytest.approx(stats.f.sf(16.8, 2, 9))


def test_unequal_variances_leave_anova_out_and_say_so() -> None:
    found = analyse_variance([Sample.of(scale * NORMAL) for scale in (1.0, 1.0, 1.0, 1.6)])
    assert found.residuals.is_plausible
    assert found.brown_forsythe_p == pytest.approx(
        stats.levene(NORMAL, NORMAL, NORMAL, 1.6 * NORMAL, center="median").pvalue
    )
    assert found.brown_forsythe_p == pytest.approx(slow.brown_forsythe([list(NORMAL)] * 3 + [list(1.6 * NORMAL)]))
    assert found.why_omitted is not None
    assert found.why_omitted.startswith("variances: Brown-Forsythe p 0.0")
    assert (found.p_value, found.f_statistic, found.tukey) == (None, None, None)


def test_skewed_residuals_leave_anova_out_and_say_so() -> None:
    found = analyse_variance([Sample.of(SKEWED + shift) for shift in (0.0, 1.0, 5.0)])
    assert found.brown_forsythe_p == pytest.approx(1.0)
    assert found.why_omitted == "residuals: Shapiro-Wilk p < 0.001"


def test_both_assumptions_are_named_when_both_fail() -> None:
    found = analyse_variance([Sample.of(scale * SKEWED) for scale in (1.0, 10.0, 100.0)])
    assert found.why_omitted is not None
    assert [part.split(":")[0] for part in found.why_omitted.split("; ")] == ["residuals", "variances"]


def test_a_sample_without_spread_leaves_anova_out() -> None:
    samples = [Sample.of(NORMAL), Sample.of(NORMAL), Sample.of([5.0] * 30)]
    assert brown_forsythe(samples) is None
    assert "variances: a sample has no spread" in str(analyse_variance(samples).why_omitted)


def test_two_values_have_no_spread_that_brown_forsythe_could_judge() -> None:
    # Both are as far from their median, so its F would be something over nothing: p = 0 whatever the samples.
    samples = [Sample.of([1.0, 2.0]), Sample.of([1.0, 2.5]), Sample.of([3.0, 4.0])]
    found = analyse_variance(samples)
    assert found.brown_forsythe_p is None
    assert "fewer than 3 values" in str(found.why_omitted)


def test_residuals_of_equal_values_are_not_what_rounding_leaves() -> None:
    found = analyse_variance([Sample.of([value] * 3) for value in (0.1, 0.3, 0.7)])
    assert (found.residuals.p_value, found.residuals.why_none) == (None, "all values are equal")


def test_two_samples_need_no_anova() -> None:
    assert analyse_variance([Sample.of(NORMAL), Sample.of(NORMAL + 1)]).why_omitted == "fewer than 3 samples"


# --- error rates -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", ["normal", "exponential"])
def test_equal_samples_are_called_different_five_times_in_a_hundred(shape: str) -> None:
    generator = np.random.default_rng(3)
    pairs = [getattr(generator, shape)(size=(2, 30)) for _ in range(800)]
    p_values = [compared(first, second).p_value for first, second in pairs]
    share = sum(p is not None and p < 0.05 for p in p_values) / len(p_values)
    assert 0.03 < share < 0.07  # standard error 0.008


def test_nothing_warns_on_values_that_hardly_differ() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for spread in (1e-15, 1e-13, 1e-11, 1e-9):
            assert compared(list(1.0 + spread * NORMAL), list(2.0 + spread * NORMAL)).p_value is not None
