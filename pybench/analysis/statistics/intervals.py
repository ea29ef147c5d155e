# SPDX-License-Identifier: Apache-2.0
"""Intervals of a mean, and of a difference of two means, over repetitions (docs/method/statistics.md, "Intervals").

One method for any number of values: the skew-adjusted t of `pybench.analysis.statistics.pivot`. Student's t and the BCa
bootstrap (`pybench.analysis.statistics.bootstrap`) are here for the protocols that repeat a paper.
"""

from __future__ import annotations

import math

import scipy  # loads its parts on first use: commands that compute nothing stay quick

from pybench.analysis.statistics.bootstrap import bca_bounds
from pybench.analysis.statistics.estimate import (
    BCA,
    CONFIDENCE,
    EQUAL,
    FEW,
    SINGLE,
    SKEW_T,
    SKEW_WELCH,
    STUDENT,
    Estimate,
    Sample,
)
from pybench.analysis.statistics.pivot import Pivot, pivot_of_difference, pivot_of_mean

BOOTSTRAP_LEAST = 5  # values; with fewer BCa covers less than 85 %, and nobody gets one


def estimate_mean(sample: Sample, confidence: float = CONFIDENCE) -> Estimate:
    """The mean with its interval. The error term: blocks are taken as exchangeable and independent."""
    return estimate_by(spread_pivot(sample), sample, confidence)


def spread_pivot(sample: Sample) -> Pivot | None:
    """The pivot of the mean; None for one value or values without spread."""
    return None if sample.n < 2 or sample.is_constant else pivot_of_mean(sample)


def estimate_by(pivot: Pivot | None, sample: Sample, confidence: float) -> Estimate:
    """The mean with the interval of its `spread_pivot`."""
    if pivot is None:
        return _without_spread(sample, float(sample.values.mean()), confidence)
    return Estimate(pivot.value, *pivot.bounds(confidence), sample.n, SKEW_T, confidence)


def estimate_geometric_mean(sample: Sample, confidence: float = CONFIDENCE) -> Estimate:
    """The geometric mean of positive values, with the interval of the mean logarithm.

    Noise of times and rates is multiplicative. With this mean, a latency and its rate have the same answer.
    Ratios of such means are the ratios that are tested, and the interval never reaches zero.
    """
    if sample.is_constant:
        return estimate_mean(sample, confidence)
    return estimate_mean(sample.log(), confidence).exp()


def estimate_difference(first: Sample, second: Sample, confidence: float = CONFIDENCE) -> Estimate:
    """Mean of `second` minus mean of `first`, the two being independent; `n` is the smaller sample's size."""
    value = float(second.values.mean() - first.values.mean())
    n = min(first.n, second.n)
    if n == 1:
        return Estimate(value, None, None, 1, SINGLE, confidence)
    pivot = difference_pivot(first, second)
    if pivot is None:
        return Estimate(value, value, value, n, EQUAL, confidence)
    return Estimate(value, *pivot.bounds(confidence), n, SKEW_WELCH, confidence)


def difference_pivot(first: Sample, second: Sample) -> Pivot | None:
    """The pivot of this difference; None where a sample has one value, or neither has any spread."""
    if min(first.n, second.n) < 2 or (first.is_constant and second.is_constant):
        return None
    return pivot_of_difference(first, second)


def student_mean(sample: Sample, confidence: float = CONFIDENCE) -> Estimate:
    """The mean with Student's t interval, as papers print it."""
    value = float(sample.values.mean())
    if sample.n == 1 or sample.is_constant:
        return _without_spread(sample, value, confidence)
    error = float(sample.values.std(ddof=1)) / math.sqrt(sample.n)
    half = -float(scipy.special.stdtrit(sample.n - 1, (1 - confidence) / 2)) * error
    return Estimate(value, value - half, value + half, sample.n, STUDENT, confidence)


def bootstrap_mean(sample: Sample, seed: int, confidence: float = CONFIDENCE) -> Estimate:
    """The mean with its BCa interval, as papers print it; none below `BOOTSTRAP_LEAST`."""
    value = float(sample.values.mean())
    if sample.n == 1 or sample.is_constant:
        return _without_spread(sample, value, confidence)
    if sample.n < BOOTSTRAP_LEAST:
        return Estimate(value, None, None, sample.n, FEW, confidence)
    return Estimate(value, *bca_bounds(sample.values, seed, confidence), sample.n, BCA, confidence)


def _without_spread(sample: Sample, value: float, confidence: float) -> Estimate:
    if sample.n == 1:
        return Estimate(value, None, None, 1, SINGLE, confidence)
    return Estimate(value, value, value, sample.n, EQUAL, confidence)
