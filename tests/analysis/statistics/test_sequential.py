# SPDX-License-Identifier: Apache-2.0
"""Intervals and tests that share one level, and the looks that they share it over."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pybench.analysis.statistics.estimate import WIDE, WIDEST
from pybench.analysis.statistics.paired import compare_paired
from pybench.analysis.statistics.sequential import confidence_among, p_among
from pybench.case.repetitions import LOOKS, looks_until


def test_one_interval_has_the_whole_level_and_several_share_it() -> None:
    assert confidence_among(1) == 0.95
    assert confidence_among(8) == pytest.approx(1 - 0.05 / 8)
    assert confidence_among(4, 0.99) == pytest.approx(1 - 0.01 / 4)
    assert (p_among(1, 0.04), p_among(8, 0.04), p_among(3, 0.01)) == (0.04, 0.32, pytest.approx(0.03))
    assert p_among(8, 0.5) == 1.0


@pytest.mark.parametrize("tests", [1, 3, 8, 40])
@pytest.mark.parametrize("seed", range(20))
def test_an_interval_excludes_no_effect_exactly_where_p_is_below_a_twentieth(tests: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    base = dict.fromkeys(range(6), 1.0)
    case = {block: math.exp(rng.normal(0.03, 0.03)) for block in range(6)}
    found = compare_paired(case, base, "ratio", tests=tests)
    assert found is not None
    assert found.estimate.lower is not None
    assert found.estimate.upper is not None
    excludes = not found.estimate.lower <= 1 <= found.estimate.upper
    assert excludes == (found.p_value is not None and found.p_value < 0.05)


def test_what_is_detectable_grows_with_the_number_of_tests() -> None:
    rng = np.random.default_rng(1)
    base, case = ({block: math.exp(rng.normal(0, 0.02)) for block in range(10)} for _ in range(2))
    effects = [compare_paired(case, base, "ratio", tests=tests) for tests in (1, 8)]
    one, eight = (effect.detectable for effect in effects if effect is not None)
    assert one is not None
    assert eight is not None
    assert 1 < one < eight


@pytest.mark.parametrize("ratios", [(1.0, 3.0), (1.0, 1.01, 2.7), (1.0, 1e30)])
@pytest.mark.parametrize("tests", [1, 240, 5000])
def test_the_widest_interval_is_no_error(ratios: tuple[float, ...], tests: int) -> None:
    """Two pairs that differ and hundreds of tests: the interval is beyond every float, and none is given."""
    base = dict.fromkeys(range(len(ratios)), 1.0)
    found = compare_paired(dict(enumerate(ratios)), base, "ratio", tests=tests)
    assert found is not None
    for estimate in (found.estimate, found.estimate.inverse()):
        if estimate.lower is None or estimate.upper is None:
            assert estimate.method == WIDE
        else:
            assert 1 / WIDEST < estimate.lower < 1 < estimate.upper < WIDEST
    assert (found.estimate.method == WIDE) == (max(ratios) > 1e9 or tests > 1)


def test_looks_are_few_and_fixed_and_the_last_block_is_one() -> None:
    assert looks_until(20) == (3, 5, 8, 12, 20)
    assert looks_until(60) == (3, 5, 8, 12, 20, 32, 50, 60)
    assert looks_until(3) == (3,)
    assert looks_until(LOOKS[-1]) == LOOKS
