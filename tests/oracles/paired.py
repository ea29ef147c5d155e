# SPDX-License-Identifier: Apache-2.0
"""Slow, readable twins of `pybench.analysis.paired` and `intervals`: loops, textbook formulas, brute force.

They share no code with what they judge and use scipy only for quantiles of named distributions.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from statistics import NormalDist, fmean, stdev

from scipy import stats


def student_interval(values: Sequence[float], confidence: float) -> tuple[float, float]:
    """mean ± t s / sqrt(n)."""
    half = stats.t.ppf((1 + confidence) / 2, len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return fmean(values) - half, fmean(values) + half


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
    """Share of paired t tests that reject when differences are normal with this mean and spread."""
    generator = random.Random(seed)
    critical = stats.t.ppf(1 - alpha / 2, n - 1)
    hits = 0
    for _ in range(trials):
        sample = [generator.gauss(mean, spread) for _ in range(n)]
        hits += abs(fmean(sample)) / (stdev(sample) / math.sqrt(n)) > critical
    return hits / trials
