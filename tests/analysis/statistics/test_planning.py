# SPDX-License-Identifier: Apache-2.0
"""How many blocks would decide: against simulated campaigns of that many blocks."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pybench.analysis.statistics.estimate import CONFIDENCE, EXACT, Estimate, Sample
from pybench.analysis.statistics.intervals import estimate_mean
from pybench.analysis.statistics.paired import POWER
from pybench.analysis.statistics.planning import MOST_BLOCKS, blocks_to_decide


def with_spread(mean: float, spread: float, blocks: int) -> Estimate:
    """Of values whose mean and standard deviation are these, and whose third moment is zero."""
    unit = np.linspace(-1, 1, blocks)
    return estimate_mean(Sample(mean + spread * unit / unit.std(ddof=1)))


@pytest.mark.parametrize("distance", [0.2, 0.4, 0.8])
def test_campaigns_of_that_many_blocks_decide_with_the_stated_probability(distance: float) -> None:
    blocks = blocks_to_decide(with_spread(distance, 1.0, 6), 0.0, is_ratio=False)
    assert blocks is not None
    rng = np.random.default_rng(1)
    estimates = [estimate_mean(Sample(rng.normal(distance, 1.0, blocks))) for _ in range(1000)]
    decided = sum(one.lower is not None and one.lower > 0 for one in estimates) / len(estimates)
    assert decided == pytest.approx(POWER, abs=0.05)


def test_a_ratio_needs_as_many_blocks_as_its_logarithm() -> None:
    logarithm = with_spread(0.1, 0.2, 8)
    assert blocks_to_decide(logarithm.exp(), 1.0, is_ratio=True) == blocks_to_decide(logarithm, 0.0, is_ratio=False)


def test_the_side_does_not_matter() -> None:
    below, above = with_spread(-0.3, 1.0, 5), with_spread(0.3, 1.0, 5)
    assert blocks_to_decide(below, 0.0, is_ratio=False) == blocks_to_decide(above, 0.0, is_ratio=False)


def test_no_number_where_the_blocks_cannot_tell() -> None:
    assert blocks_to_decide(with_spread(0.001, 1.0, 6), 0.0, is_ratio=False) is None  # more than MOST_BLOCKS
    assert blocks_to_decide(with_spread(0.3, 1.0, 2), 0.0, is_ratio=False) is None  # too few
    of_images = Estimate(0.1, -0.1, 0.3, 500, EXACT, CONFIDENCE)
    assert blocks_to_decide(of_images, 0.0, is_ratio=False) is None


def test_a_mean_that_is_none_of_logarithms_is_no_error() -> None:
    """Where a value is zero, a mean that is usually geometric is arithmetic, and its interval may begin below."""
    goodput = estimate_mean(Sample(np.array([0.0, 40.0, 50.0])))
    assert goodput.lower is not None
    assert goodput.lower < 0
    linear = blocks_to_decide(goodput, 5.0, is_ratio=False)
    assert linear is not None
    assert blocks_to_decide(goodput, 5.0, is_ratio=True) == linear


def test_where_the_campaign_looks_for_itself_no_number_is_said() -> None:
    looked_at = estimate_mean(Sample(np.array([1.0, 2.0, 3.0])), confidence=0.99)
    assert blocks_to_decide(looked_at, 0.5, is_ratio=False) is None


def test_the_number_is_above_that_of_the_blocks_that_did_not_decide() -> None:
    blocks = blocks_to_decide(with_spread(0.8, 1.0, 6), 0.0, is_ratio=False)
    assert blocks is not None
    assert 6 < blocks < MOST_BLOCKS
    assert math.isclose(blocks, (1.96 + 0.84) ** 2 / 0.8**2, rel_tol=0.3)
