# SPDX-License-Identifier: Apache-2.0
"""Intervals of a mean, and of a difference of two means, over repetitions (docs/method.md, "Intervals").

BCa bootstrap (Efron 1987, Better bootstrap confidence intervals, JASA 82:171) by scipy from `BOOTSTRAP_MINIMUM` values
on; Student's t below it. Measured coverage of nominal 95 % intervals is the reason: with 5 values BCa covers 85 % of
normal samples and t 95 %; BCa reaches 92 % at 15 values and 93 % at 30 (bench/interval_coverage.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy  # loads its parts on first use: commands that compute nothing stay quick
from numpy.typing import NDArray

from pybench.analysis.estimate import BCA, CONFIDENCE, EQUAL, FEW, SINGLE, STUDENT, WELCH, Estimate, Sample

BOOTSTRAP_MINIMUM = 15  # values; fewer go to Student's t
BOOTSTRAP_LEAST = 5  # values; with fewer BCa covers less than 85 %, and nobody gets one
RESAMPLES = 9999  # a bound's Monte Carlo error is then about 1/30 of the interval's half-width

Statistic = Callable[..., NDArray[np.float64]]


def estimate_mean(sample: Sample, seed: int, confidence: float = CONFIDENCE) -> Estimate:
    """The mean with its interval. The error term: resampling assumes that blocks are exchangeable and independent."""
    if sample.n < BOOTSTRAP_MINIMUM:
        return student_mean(sample, confidence)
    return bootstrap_mean(sample, seed, confidence)


def student_mean(sample: Sample, confidence: float = CONFIDENCE) -> Estimate:
    """The mean with Student's t interval, whatever the number of values."""
    value = float(sample.values.mean())
    if sample.n == 1 or sample.is_constant:
        return _without_spread(sample, value, confidence)
    half = float(scipy.stats.t.ppf((1 + confidence) / 2, sample.n - 1)) * standard_error(sample)
    return Estimate(value, value - half, value + half, sample.n, STUDENT, confidence)


def bootstrap_mean(sample: Sample, seed: int, confidence: float = CONFIDENCE) -> Estimate:
    """The mean with its BCa interval, which covers too little below `BOOTSTRAP_MINIMUM`; none below
    `BOOTSTRAP_LEAST`."""
    value = float(sample.values.mean())
    if sample.n == 1 or sample.is_constant:
        return _without_spread(sample, value, confidence)
    if sample.n < BOOTSTRAP_LEAST:
        return Estimate(value, None, None, sample.n, FEW, confidence)
    return _bootstrap((sample.values,), _mean, value, sample.n, seed, confidence)


def _without_spread(sample: Sample, value: float, confidence: float) -> Estimate:
    if sample.n == 1:
        return Estimate(value, None, None, 1, SINGLE, confidence)
    return Estimate(value, value, value, sample.n, EQUAL, confidence)


def estimate_geometric_mean(sample: Sample, seed: int, confidence: float = CONFIDENCE) -> Estimate:
    """The geometric mean of positive values, with the interval of the mean logarithm.

    Noise of times and rates is multiplicative; this mean has the same answer for a latency and its rate, its ratios are
    the ratios that are tested, and its interval never reaches zero.
    """
    if sample.is_constant:
        return estimate_mean(sample, seed, confidence)
    return estimate_mean(sample.log(), seed, confidence).exp()


def estimate_difference(first: Sample, second: Sample, seed: int, confidence: float = CONFIDENCE) -> Estimate:
    """Mean of `second` minus mean of `first`, the two being independent; `n` is the smaller sample's size."""
    value = float(second.values.mean() - first.values.mean())
    n = min(first.n, second.n)
    if n == 1:
        return Estimate(value, None, None, 1, SINGLE, confidence)
    if first.is_constant and second.is_constant:
        return Estimate(value, value, value, n, EQUAL, confidence)
    if n < BOOTSTRAP_MINIMUM or first.is_constant or second.is_constant:
        half = _welch_half_width(first, second, confidence)
        return Estimate(value, value - half, value + half, n, WELCH, confidence)
    return _bootstrap((first.values, second.values), _difference, value, n, seed, confidence)


def standard_error(sample: Sample) -> float:
    """Standard error of the mean, with n - 1; needs two values."""
    return float(sample.values.std(ddof=1)) / math.sqrt(sample.n)


def _welch_half_width(first: Sample, second: Sample, confidence: float) -> float:
    """Welch (1947): unequal variances, degrees of freedom after Satterthwaite."""
    parts = [standard_error(sample) ** 2 for sample in (first, second)]
    weights = [part**2 / (sample.n - 1) for part, sample in zip(parts, (first, second), strict=True)]
    freedom = sum(parts) ** 2 / sum(weights)
    return float(scipy.stats.t.ppf((1 + confidence) / 2, freedom)) * math.sqrt(sum(parts))


def _bootstrap(
    samples: tuple[NDArray[np.float64], ...], statistic: Statistic, value: float, n: int, seed: int, confidence: float
) -> Estimate:
    result: Any = scipy.stats.bootstrap(
        samples,
        statistic,
        vectorized=True,
        n_resamples=RESAMPLES,
        confidence_level=confidence,
        method="BCa",
        rng=np.random.default_rng(seed),
    )
    interval = result.confidence_interval
    return Estimate(value, float(interval.low), float(interval.high), n, BCA, confidence)


def _mean(values: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
    return np.asarray(values.mean(axis=axis))


def _difference(first: NDArray[np.float64], second: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
    return np.asarray(second.mean(axis=axis) - first.mean(axis=axis))
