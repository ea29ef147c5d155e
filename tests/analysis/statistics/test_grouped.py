# SPDX-License-Identifier: Apache-2.0
"""Units that are alike within groups: worked by hand, against a bootstrap of groups, and as far as promised."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pybench.analysis.statistics.grouped import (
    design_effect,
    effective_groups,
    estimate_grouped_mean,
    grouped_variance,
    p_of_no_grouped_mean,
)
from pybench.analysis.statistics.proportions import (
    UnitPairs,
    estimate_paired_difference,
    estimate_share,
    p_of_no_difference,
    score,
)


def test_units_that_repeat_within_their_group_count_once() -> None:
    values = np.repeat(np.array([0.0, 1.0] * 20), 5)  # 40 files of five equal windows
    groups = [str(i) for i in range(40) for _ in range(5)]
    assert design_effect(values, groups) == pytest.approx(5 * 40 / 39)


def test_groups_of_one_leave_units_as_they_are() -> None:
    values = np.array([0.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0])
    groups = [str(i) for i in range(8)]
    assert grouped_variance(values, groups) == pytest.approx(values.var(ddof=1) / 8)
    assert 1 < design_effect(values, groups) < 8 / 7


def test_without_a_spread_each_group_is_one_unit() -> None:
    assert design_effect(np.zeros(12), list("aaaabbbbcccc")) == 4.0


def changed(count: int, size: int) -> tuple[np.ndarray, list[str]]:
    """2,000 units of 100 groups; the first `size` units of `count` groups are worse."""
    values = np.zeros((100, 20))
    values[:count, :size] = -1.0
    return values.ravel(), [str(i) for i in range(100) for _ in range(20)]


def test_one_changed_unit_does_not_make_an_interval_far_shorter_than_none() -> None:
    found = [design_effect(*changed(count, 1)) for count in range(12)]
    assert found[0] == 20
    assert found[1] == pytest.approx((1 + 0.5 * 20**2) / (1 + 0.5 * 20), rel=0.02)
    assert sorted(found, reverse=True) == found, "each changed group tells more"
    assert found[11] < 1.1


def test_groups_that_change_as_a_whole_keep_their_design_effect() -> None:
    for count in (1, 3, 10):
        assert design_effect(*changed(count, 20)) == pytest.approx(20, rel=0.02)


def test_intervals_contain_the_truth_where_few_groups_change_and_some_as_a_whole() -> None:
    """In half of the changed groups one unit is worse, in the others all are. Without the group that is added the
    interval contained the truth in 75 %."""
    random, contained, tries = np.random.default_rng(4), 0, 400
    truth = -2 * (0.5 * 1 + 0.5 * 20) / 2000
    for _ in range(tries):
        values = np.zeros((100, 20))
        for group in np.nonzero(random.random(100) < 2 / 100)[0]:
            values[group, : random.choice([1, 20])] = -1.0
        worse = int(-values.sum())
        effect = design_effect(values.ravel(), [str(i) for i in range(100) for _ in range(20)])
        bounds = estimate_paired_difference(UnitPairs(2000 - worse, 0, worse, 0), design_effect=effect)
        assert bounds.lower is not None
        assert bounds.upper is not None
        contained += bounds.lower <= truth <= bounds.upper
    assert contained / tries > 0.95


def test_the_interval_is_that_of_resampled_groups() -> None:
    random = np.random.default_rng(3)
    sizes = random.integers(1, 20, 80)
    groups = [str(i) for i, size in enumerate(sizes) for _ in range(size)]
    shift = random.normal(0, 0.3, 80)
    values = np.concatenate([shift[i] + random.normal(0, 0.2, size) for i, size in enumerate(sizes)])
    sums, drawn = np.array([values[np.array(groups) == str(i)].sum() for i in range(80)]), []
    for _ in range(4000):
        chosen = random.integers(0, 80, 80)
        drawn.append(sums[chosen].sum() / sizes[chosen].sum())
    found = estimate_grouped_mean(values, groups)
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert (found.lower, found.upper) == pytest.approx((low, high), abs=0.012)
    assert found.n == len(values)


def test_large_groups_count_for_more_in_the_degrees_of_freedom() -> None:
    """By the number of groups, 87 % of intervals contain the truth here (bench/results/unequal-groups.md)."""
    assert effective_groups(["a", "b", "b", "a"]) == 2
    assert effective_groups(["a"] * 8 + ["b", "c"]) == pytest.approx(100 / 66)
    random, covered, samples = np.random.default_rng(11), 0, 800
    for _ in range(samples):
        sizes = np.maximum(1, np.round(20 * random.lognormal(0, 1, 10))).astype(int)
        groups = np.repeat(np.arange(10), sizes)
        values = random.normal(0, 1, 10)[groups] + random.normal(0, 1, len(groups))
        found = estimate_grouped_mean(values, [str(group) for group in groups])
        assert found.lower is not None
        assert found.upper is not None
        covered += found.lower <= 0 <= found.upper
    assert covered / samples > 0.91


def test_p_is_below_5_percent_exactly_when_the_interval_excludes_zero() -> None:
    random = np.random.default_rng(5)
    groups = [str(i) for i in range(12) for _ in range(4)]
    verdicts = set()
    for centre in np.linspace(-0.6, 0.6, 25):
        values = centre + random.normal(0, 1, 48)
        found, p = estimate_grouped_mean(values, groups), p_of_no_grouped_mean(values, groups)
        assert found.lower is not None
        assert found.upper is not None
        assert p is not None
        assert (p < 0.05) == (not found.lower <= 0 <= found.upper)
        verdicts.add(p < 0.05)
    assert verdicts == {True, False}


def test_one_group_has_a_mean_and_no_interval() -> None:
    found = estimate_grouped_mean(np.array([1.0, 2.0]), ["a", "a"])
    assert (found.value, found.lower, p_of_no_grouped_mean(np.array([1.0, 2.0]), ["a", "a"])) == (1.5, None, None)


def test_a_design_effect_divides_the_counts_of_shares_and_pairs() -> None:
    quarter, whole = estimate_share(20, 25), estimate_share(80, 100, design_effect=4.0)
    assert (whole.lower, whole.upper) == pytest.approx((quarter.lower, quarter.upper))
    few, many = UnitPairs(10, 5, 2, 3), UnitPairs(40, 20, 8, 12)
    small, large = estimate_paired_difference(few), estimate_paired_difference(many, design_effect=4.0)
    assert (large.lower, large.upper) == pytest.approx((small.lower, small.upper))
    by_score = 2 * stats.norm.sf(abs(score(few, 0.0)))
    assert p_of_no_difference(many, design_effect=4.0) == pytest.approx(by_score)
