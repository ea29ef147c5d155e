# SPDX-License-Identifier: Apache-2.0
"""The BCa bootstrap of a mean (Efron 1987, JASA 82:171), with one draw of resamples for all samples of a size.

The bounds are those of `scipy.stats.bootstrap` with the same seed, in a third of the time. The last bit may differ,
because a cube here has the same bits on every processor. scipy draws the same resamples again for each sample, and
looks at the shapes of its arguments many times.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import scipy  # loads its parts on first use: commands that compute nothing stay quick
from numpy.typing import NDArray

from pybench.analysis.statistics.elementary import cube

Numbers = NDArray[np.float64]

RESAMPLES = 9999  # a bound's Monte Carlo error is then about 1/30 of the interval's half-width


def bca_bounds(values: Numbers, seed: int, confidence: float) -> tuple[float, float]:
    """The interval of the mean of `values`, float64 [n] that differ, with equal tails."""
    n = len(values)
    means = np.sort(values[_resamples(n, seed)].mean(axis=-1))
    mean = values.mean()
    below = np.searchsorted(means, mean, "left") + np.searchsorted(means, mean, "right")
    bias = scipy.special.ndtri(below / (2 * RESAMPLES))
    left_out = values[_all_but_one(n)].mean(axis=-1)
    influences = (n - 1) * (left_out.mean() - left_out)
    acceleration = 1 / 6 * (cube(influences).sum() / (n * n * n)) / ((influences**2).sum() / n**2) ** 1.5
    tail = scipy.special.ndtri((1 - confidence) / 2)
    low, high = (
        _quantile(means, scipy.special.ndtr(bias + (bias + side) / (1 - acceleration * (bias + side))))
        for side in (tail, -tail)
    )
    return low, high


@lru_cache(maxsize=8)
def _resamples(n: int, seed: int) -> NDArray[np.intp]:
    """[resamples, n]: places of values, with replacement."""
    return np.random.default_rng(seed).integers(0, n, (RESAMPLES, n))


@lru_cache(maxsize=8)
def _all_but_one(n: int) -> NDArray[np.intp]:
    """[n, n - 1]: in each row all places but its own."""
    places = np.broadcast_to(np.arange(n), (n, n))
    return places[~np.eye(n, dtype=bool)].reshape(n, n - 1)


def _quantile(ascending: Numbers, share: float) -> float:
    """Between neighbours, as straight."""
    if math.isnan(share):
        return math.nan
    index = max(share * len(ascending) + (1 - share) - 1, 0.0)
    place = min(math.floor(index), len(ascending) - 1)
    beyond = index - place
    return float((1 - beyond) * ascending[place] + beyond * ascending[min(place + 1, len(ascending) - 1)])
