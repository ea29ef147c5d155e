# SPDX-License-Identifier: Apache-2.0
"""Slow, readable twins of `pybench.analysis.statistics.unpaired`: sums, loops and enumeration.

They share no code with what they judge and use scipy only for tails of named distributions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from statistics import fmean, median, variance

from scipy import stats


def welch(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """(t, p) with Satterthwaite's degrees of freedom."""
    parts = [variance(side) / len(side) for side in (first, second)]
    t = (fmean(first) - fmean(second)) / math.sqrt(sum(parts))
    freedom = sum(parts) ** 2 / sum(
        part**2 / (len(side) - 1) for part, side in zip(parts, (first, second), strict=True)
    )
    return t, float(2 * stats.t.sf(abs(t), freedom))


def wins(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """(U, delta): pairs in which the first is larger, ties as a half; more often larger than smaller, as a share."""
    pairs = list(itertools.product(first, second))
    larger, smaller = sum(x > y for x, y in pairs), sum(x < y for x, y in pairs)
    return larger + (len(pairs) - larger - smaller) / 2, (larger - smaller) / len(pairs)


def exact_p_of_wins(first: Sequence[float], second: Sequence[float]) -> float:
    """Two-sided p of U over every way to deal the pooled values, none of which may tie."""
    pooled = [*first, *second]
    centre = len(first) * len(second) / 2
    seen = abs(wins(first, second)[0] - centre)
    dealt = list(itertools.combinations(range(len(pooled)), len(first)))
    extreme = 0
    for chosen in dealt:
        one = [pooled[index] for index in chosen]
        other = [pooled[index] for index in range(len(pooled)) if index not in chosen]
        extreme += abs(wins(one, other)[0] - centre) >= seen - 1e-9
    return extreme / len(dealt)


def anova(samples: Sequence[Sequence[float]]) -> tuple[float, float]:
    """(F, p) by sums of squares."""
    everything = [value for sample in samples for value in sample]
    grand = fmean(everything)
    between = sum(len(sample) * (fmean(sample) - grand) ** 2 for sample in samples) / (len(samples) - 1)
    freedom = len(everything) - len(samples)
    within = sum((value - fmean(sample)) ** 2 for sample in samples for value in sample) / freedom
    return between / within, float(stats.f.sf(between / within, len(samples) - 1, freedom))


def brown_forsythe(samples: Sequence[Sequence[float]]) -> float:
    """p: the analysis of variance of distances from each sample's median."""
    return anova([[abs(value - median(sample)) for value in sample] for sample in samples])[1]
