# SPDX-License-Identifier: Apache-2.0
"""Paired effects: recovered truth, scipy, statsmodels, slow twins and one case by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from statsmodels.stats.power import TTestPower
from statsmodels.stats.weightstats import ttost_paired

from pybench.analysis.statistics.paired import EQUIVALENCE_MARGIN, Effect, compare_paired, holm, pair_blocks
from tests.oracles import paired as slow


def effect_of(differences: np.ndarray, margin: float = EQUIVALENCE_MARGIN) -> Effect:
    """Of a candidate whose values are these, against zeros."""
    zeros = dict.fromkeys(range(len(differences)), 0.0)
    found = compare_paired(dict(enumerate(differences)), zeros, "difference", margin)
    assert found is not None
    return found


def test_three_pairs_worked_by_hand() -> None:
    # ratios 2, 4, 8: their geometric mean is 4; logs ln2 (1, 2, 3): mean 2 ln2, s = ln2, t(0.975, 2) = 4.30265
    found = compare_paired({1: 2.0, 2: 4.0, 3: 8.0}, {1: 1.0, 2: 1.0, 3: 1.0}, "ratio")
    assert found is not None
    half = 4.302653 * math.log(2) / math.sqrt(3)
    assert found.estimate.value == pytest.approx(4.0)
    assert found.estimate.lower == pytest.approx(4 * math.exp(-half), rel=1e-5)
    assert found.estimate.upper == pytest.approx(4 * math.exp(half), rel=1e-5)
    # t = 2 ln2 / (ln2 / sqrt 3) = 3.4641 with 2 degrees of freedom: p = 0.0742
    assert found.p_value == pytest.approx(0.0742, abs=1e-4)


def test_drift_common_to_a_block_cancels() -> None:
    drift = {block: 1.0 + 0.2 * block for block in range(1, 7)}
    noise = {1: 1.001, 2: 0.999, 3: 1.0005, 4: 1.0, 5: 0.9995, 6: 1.0}
    candidate = {block: 0.5 * drift[block] * noise[block] for block in drift}
    found = compare_paired(candidate, drift, "ratio")
    assert found is not None
    assert found.estimate.value == pytest.approx(0.5, rel=1e-3)
    assert found.estimate.lower is not None
    assert found.estimate.lower > 0.499


def test_only_full_pairs_are_used_and_the_rest_is_counted() -> None:
    pairing = pair_blocks({1: 1.0, 2: 1.0, 5: 1.0}, {2: 1.0, 3: 1.0, 4: 1.0, 5: 2.0})
    assert (pairing.blocks, pairing.only_candidate, pairing.only_baseline) == ((2, 5), 1, 2)


def test_no_common_block_is_no_effect_at_all() -> None:
    assert compare_paired({1: 1.0}, {2: 1.0}, "ratio") is None


def test_one_pair_has_an_effect_without_interval_or_test() -> None:
    found = compare_paired({1: 3.0}, {1: 2.0}, "ratio")
    assert found is not None
    assert found.estimate.value == pytest.approx(1.5)
    assert (found.estimate.lower, found.estimate.upper, found.p_value, found.detectable) == (None, None, None, None)


def test_a_constant_ratio_has_no_test() -> None:
    found = compare_paired({1: 110.0, 2: 110.0}, {1: 400.0, 2: 400.0}, "ratio")
    assert found is not None
    assert found.estimate.value == pytest.approx(0.275)
    assert (found.p_value, found.p_equivalence) == (None, None)


def test_equivalence_of_symmetric_differences_is_statsmodels_tost() -> None:
    one_side = np.random.default_rng(4).normal(0, 0.1, 6)
    differences = np.concatenate((one_side, -one_side)) + 0.01  # without skewness nothing is adjusted
    judge = ttost_paired(differences, np.zeros(12), -0.08, 0.08)[0]
    assert effect_of(differences, 0.08).p_equivalence == pytest.approx(judge)


@pytest.mark.parametrize("seed", range(20))
def test_equivalence_is_found_exactly_when_the_90_percent_interval_is_within_the_margin(seed: int) -> None:
    differences = np.random.default_rng(seed).lognormal(0, 0.6, 9) * 0.05 - 0.04
    lower, upper = slow.skewed_interval(list(differences), 0.90)
    p_value = effect_of(differences, 0.04).p_equivalence
    assert p_value is not None
    assert (p_value < 0.05) == (lower > -0.04 and upper < 0.04)


@pytest.mark.parametrize("seed", range(20))
def test_p_is_below_5_percent_exactly_when_the_interval_excludes_no_effect(seed: int) -> None:
    rng = np.random.default_rng(seed)
    baseline = dict(enumerate(np.exp(rng.normal(0, 0.02, 8))))
    candidate = {block: value * np.exp(0.05 * rng.exponential() - 0.02) for block, value in baseline.items()}
    found = compare_paired(candidate, baseline, "ratio")
    assert found is not None
    assert found.p_value is not None
    assert found.estimate.lower is not None
    assert found.estimate.upper is not None
    assert (found.p_value < 0.05) == (not found.estimate.lower <= 1.0 <= found.estimate.upper)


def test_equal_cases_are_found_equivalent_and_a_large_effect_is_not() -> None:
    rng = np.random.default_rng(6)
    baseline = {block: float(np.exp(rng.normal(0, 0.01))) for block in range(1, 11)}
    same = {block: value * float(np.exp(rng.normal(0, 0.01))) for block, value in baseline.items()}
    slower = {block: 1.2 * value for block, value in same.items()}
    near, far = (compare_paired(side, baseline, "ratio") for side in (same, slower))
    assert near is not None
    assert far is not None
    assert near.is_equivalent
    assert not far.is_equivalent


@pytest.mark.parametrize("n", [3, 6, 30])
def test_the_smallest_detectable_effect_of_symmetric_differences_is_statsmodels(n: int) -> None:
    differences = np.linspace(-0.3, 0.3, n)
    judge = TTestPower().solve_power(nobs=n, alpha=0.05, power=0.8) * differences.std(ddof=1)
    assert effect_of(differences).detectable == pytest.approx(judge, rel=1e-4)


def test_a_longer_tail_asks_for_a_larger_effect() -> None:
    even = np.linspace(-0.3, 0.3, 8)
    tailed = np.exp(even * 5)
    tailed *= even.std() / tailed.std()
    effects = [effect_of(values).detectable for values in (even, tailed, -tailed)]
    assert effects[1] == pytest.approx(effects[2])
    assert effects[1] is not None
    assert effects[0] is not None
    assert effects[1] > 1.1 * effects[0]


def test_the_smallest_detectable_effect_is_detected_four_times_in_five() -> None:
    differences = np.linspace(-0.3, 0.3, 8)
    effect = effect_of(differences).detectable
    assert effect is not None
    spread = float(differences.std(ddof=1))
    # The skewness seen here is 0; that of eight normal values is not, which costs the test up to 4 points of power.
    assert slow.power_by_simulation(effect, spread, 8, 0.05, 3000, 2) == pytest.approx(0.78, abs=0.04)


def test_holm_by_hand_and_by_the_slow_twin() -> None:
    # 0.01 * 4, then 0.02 * 3, then max(0.06, 0.03 * 2), then max(0.06, 0.5)
    assert holm([0.02, 0.01, 0.5, 0.03]) == pytest.approx([0.06, 0.04, 0.5, 0.06])
    values = list(np.random.default_rng(5).uniform(0, 0.2, 12))
    assert holm(values) == pytest.approx(slow.holm(values))


def test_holm_leaves_what_was_not_tested_alone() -> None:
    assert holm([None, 0.02, None, 0.04]) == [None, pytest.approx(0.04), None, pytest.approx(0.04)]
    assert holm([None]) == [None]


def test_a_true_ratio_lies_in_its_interval_95_times_in_a_hundred() -> None:
    rng = np.random.default_rng(12)
    hits = 0
    for _ in range(300):
        drift = rng.normal(0, 0.05, 6)
        baseline = dict(enumerate(np.exp(drift + rng.normal(0, 0.02, 6))))
        candidate = dict(enumerate(0.6 * np.exp(drift + rng.normal(0, 0.02, 6))))
        found = compare_paired(candidate, baseline, "ratio")
        assert found is not None
        assert found.estimate.lower is not None
        assert found.estimate.upper is not None
        hits += found.estimate.lower <= 0.6 <= found.estimate.upper
    assert 0.91 <= hits / 300 <= 0.985
