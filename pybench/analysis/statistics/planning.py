# SPDX-License-Identifier: Apache-2.0
"""How many blocks a question needs, as far as the blocks so far can tell."""

from __future__ import annotations

import math

import scipy  # loads its parts on first use: commands that compute nothing stay fast

from pybench.analysis.statistics.estimate import CONFIDENCE, SKEW_T, Estimate
from pybench.analysis.statistics.paired import POWER

LEAST_BLOCKS = 3  # two blocks say too little of the spread
MOST_BLOCKS = 1000


def blocks_to_decide(estimate: Estimate, threshold: float, *, is_ratio: bool) -> int | None:
    """Blocks whose interval would exclude `threshold` with probability `POWER`, if value and spread were what they are.

    estimate: whose interval contains the threshold. None for one that is not of a mean over at least `LEAST_BLOCKS`
        blocks. None, too, where even `MOST_BLOCKS` would not do, and where the campaign itself looks whether it is
        decided
    is_ratio: whether the interval is that of a logarithm, if all values are positive

    The interval's side towards the threshold tells the spread: `half = t(n - 1) s / sqrt(n)`. The number is the least N
    with `(t(N - 1) + z) s / sqrt(N) <= distance`, z the normal quantile of the power (Cohen 1988, chapter 2, with t in
    the place of its tables). Error term: the spread of a few blocks is uncertain by tens of percent, and N by twice
    that.
    """
    if estimate.method != SKEW_T or estimate.lower is None or estimate.upper is None or estimate.n < LEAST_BLOCKS:
        return None
    if estimate.confidence > CONFIDENCE:
        return None
    bound = estimate.lower if threshold < estimate.value else estimate.upper
    numbers = (estimate.value, threshold, bound)
    is_of_logarithms = is_ratio and estimate.lower > 0 < threshold  # a mean with a zero in it is none of logarithms
    value, limit, bound = map(math.log, numbers) if is_of_logarithms else numbers
    tail = (1 - estimate.confidence) / 2
    spread = abs(value - bound) * math.sqrt(estimate.n) / _quantile(estimate.n, tail)
    z = float(scipy.special.ndtri(POWER))

    def decide(blocks: int) -> bool:
        return (_quantile(blocks, tail) + z) * spread / math.sqrt(blocks) <= abs(value - limit)

    if not decide(MOST_BLOCKS):
        return None
    few, many = estimate.n, MOST_BLOCKS
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if decide(middle) else (middle, many)
    return many


def _quantile(blocks: int, tail: float) -> float:
    return -float(scipy.special.stdtrit(blocks - 1, tail))
