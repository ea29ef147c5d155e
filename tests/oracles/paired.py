# SPDX-License-Identifier: Apache-2.0
"""Slow, readable twins of `pybench.analysis.statistics.paired` and `intervals`: loops, textbook formulas, brute force.

They share no code with what they judge and use scipy only for quantiles of named distributions.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from statistics import NormalDist, fmean, pvariance, stdev, variance

from scipy import stats


def student_interval(values: Sequence[float], confidence: float) -> tuple[float, float]:
    """mean ± t s / sqrt(n)."""
    half = stats.t.ppf((1 + confidence) / 2, len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return fmean(values) - half, fmean(values) + half


def skewed_interval(values: Sequence[float], confidence: float) -> tuple[float, float]:
    """Student's interval, and on the side of the longer tail s |g1| (2 t^2 + 1) / (6 n) more."""
    n, mean = len(values), fmean(values)
    t = stats.t.ppf((1 + confidence) / 2, n - 1)
    lower, upper = student_interval(values, confidence)
    second, third = (sum((value - mean) ** power for value in values) / n for power in (2, 3))
    longer = stdev(values) * (third / second**1.5) * (2 * t**2 + 1) / (6 * n)
    return lower + min(longer, 0.0), upper + max(longer, 0.0)


def skewed_welch_interval(first: Sequence[float], second: Sequence[float], confidence: float) -> tuple[float, float]:
    """Of mean(second) - mean(first): Welch's interval, and on the side of the longer tail its skewness term more."""
    sides = (list(first), list(second))
    parts = [variance(side) / len(side) for side in sides]
    error = math.sqrt(sum(parts))
    freedom = sum(parts) ** 2 / sum(part**2 / (len(side) - 1) for part, side in zip(parts, sides, strict=True))
    thirds = [sum((value - fmean(side)) ** 3 for value in side) / len(side) ** 3 for side in sides]
    biased = math.sqrt(sum(pvariance(side) / len(side) for side in sides))
    skewness = (thirds[1] - thirds[0]) / biased**3
    t = stats.t.ppf((1 + confidence) / 2, freedom)
    longer = error * skewness * (2 * t**2 + 1) / 6
    difference = fmean(second) - fmean(first)
    return difference - t * error + min(longer, 0.0), difference + t * error + max(longer, 0.0)


def p_by_inversion(values: Sequence[float], null: float) -> float:
    """The level at which a bound of the skewed interval touches `null`, by bisection over the level."""
    low, high = 1e-12, 1.0
    for _ in range(100):
        level = (low + high) / 2
        lower, upper = skewed_interval(values, 1 - level)
        low, high = (level, high) if lower <= null <= upper else (low, level)
    return high


def bca_interval(values: Sequence[float], confidence: float, resamples: int, seed: int) -> tuple[float, float]:
    """Efron's bias-corrected and accelerated interval of the mean, step by step (Efron and Tibshirani 1993, ch. 14)."""
    generator, normal, n = random.Random(seed), NormalDist(), len(values)
    observed = fmean(values)
    means = sorted(fmean(generator.choices(values, k=n)) for _ in range(resamples))
    below = sum(mean < observed for mean in means) + sum(mean == observed for mean in means) / 2
    bias = normal.inv_cdf(below / resamples)
    left_out = [fmean([*values[:index], *values[index + 1 :]]) for index in range(n)]
    distances = [fmean(left_out) - mean for mean in left_out]
    acceleration = sum(d**3 for d in distances) / (6 * sum(d**2 for d in distances) ** 1.5)

    def bound(level: float) -> float:
        z = bias + normal.inv_cdf(level)
        adjusted = normal.cdf(bias + z / (1 - acceleration * z))
        return means[min(int(adjusted * resamples), resamples - 1)]

    return bound((1 - confidence) / 2), bound((1 + confidence) / 2)


def holm(p_values: Sequence[float]) -> list[float]:
    """Step down from the smallest: multiply by the number left, never fall below the one before."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for step, index in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - step) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def power_by_simulation(mean: float, spread: float, n: int, alpha: float, trials: int, seed: int) -> float:
    """Share of intervals that exclude zero when differences are normal with this mean and spread."""
    generator = random.Random(seed)
    hits = 0
    for _ in range(trials):
        lower, upper = skewed_interval([generator.gauss(mean, spread) for _ in range(n)], 1 - alpha)
        hits += lower > 0 or upper < 0
    return hits / trials
