# SPDX-License-Identifier: Apache-2.0
"""How often nominal 95 % intervals of a mean hold the truth: BCa bootstrap against Student's t, by sample size.

The figures behind `BOOTSTRAP_MINIMUM` (docs/method.md). Seconds to run: `python bench/interval_coverage.py`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats

SIZES = (5, 8, 10, 15, 20, 30)
SAMPLES = 1500
RESAMPLES = 999


def draw(name: str, n: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], float]:
    """(samples, n) values of a distribution, and its mean."""
    if name == "normal":
        return rng.normal(size=(SAMPLES, n)), 0.0
    if name == "lognormal":  # sigma 0.5: skewed to the right, as latencies are
        return rng.lognormal(0, 0.5, size=(SAMPLES, n)), math.exp(0.125)
    shifted = rng.random((SAMPLES, n)) < 0.1  # one run in ten is five standard deviations slow
    return rng.normal(size=(SAMPLES, n)) + 5.0 * shifted, 0.5


def coverage(name: str, n: int, rng: np.random.Generator) -> tuple[float, float]:
    """Share of intervals that hold the mean: (BCa, Student's t)."""
    values, truth = draw(name, n, rng)
    result = stats.bootstrap(
        (values,), np.mean, axis=1, n_resamples=RESAMPLES, batch=50, rng=rng, method="BCa"
    ).confidence_interval
    bca = float(np.mean((result.low <= truth) & (truth <= result.high)))
    half = stats.t.ppf(0.975, n - 1) * values.std(axis=1, ddof=1) / math.sqrt(n)
    return bca, float(np.mean(np.abs(values.mean(axis=1) - truth) <= half))


def main() -> None:
    """Prints the table of docs/method.md."""
    rng = np.random.default_rng(1)
    print(f"{'distribution':14}{'n':>4}{'BCa':>8}{'t':>8}")
    for name in ("normal", "lognormal", "outliers"):
        for n in SIZES:
            bca, student = coverage(name, n, rng)
            print(f"{name:14}{n:4}{bca:8.3f}{student:8.3f}")


if __name__ == "__main__":
    main()
