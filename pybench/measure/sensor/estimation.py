# SPDX-License-Identifier: Apache-2.0
"""Estimates with their standard uncertainty from few, partly wrong observations: what characterising a sensor needs.

Numpy only: scipy stays out of the process that measures. A minimum is found by Nelder and Mead's simplex (Comput. J. 7,
1965), a mean by Huber's M-estimator. An uncertainty is found by leaving out one observation at a time (jackknife: Efron
and Tibshirani, An Introduction to the Bootstrap, chapter 11). It is widened as Student's t is for few observations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from pybench.measure.timing.clock import NANOSECONDS_PER_SECOND

Numbers = NDArray[np.float64]

HUBER = 1.5  # 1: in standard deviations; 96 % efficient for normal errors
MAD_TO_SIGMA = 1.4826  # 1: for normal errors
FEWEST = 4  # observations that give an uncertainty: below, the variance of Student's t does not exist


@dataclass(frozen=True, slots=True)
class UncertainValue:
    """A value and its standard uncertainty, in the same unit."""

    value: float
    u: float


def to_seconds(times_ns: NDArray[np.int64], origin_ns: int) -> Numbers:
    """Seconds after `origin_ns`."""
    after_s: Numbers = (times_ns - origin_ns) / NANOSECONDS_PER_SECOND
    return after_s


def t_widening(count: int) -> float:
    """Standard deviation of Student's t with `count` - 1 degrees of freedom, for `count` >= FEWEST."""
    freedom = max(count, FEWEST) - 1
    return sqrt(freedom / (freedom - 2))


def robust_spread(values: Numbers) -> float:
    """Standard deviation of the bulk: the scaled median absolute deviation. 0 for fewer than two values."""
    if len(values) < 2:
        return 0.0
    return MAD_TO_SIGMA * float(np.median(np.abs(values - np.median(values))))


def robust_mean(values: Numbers) -> UncertainValue | None:
    """Huber's mean of float64 [n] and its standard uncertainty; None for fewer than FEWEST values."""
    if len(values) < FEWEST:
        return None
    mean, spread = float(np.median(values)), robust_spread(values) or float(np.std(values))  # 0: more than half equal
    if spread == 0:
        return UncertainValue(mean, 0.0)
    for _ in range(50):
        weight = np.minimum(1.0, HUBER * spread / np.maximum(np.abs(values - mean), 1e-300))
        mean, last = float(np.average(values, weights=weight)), mean
        if abs(mean - last) < 1e-6 * spread:
            break
    pull = np.clip(values - mean, -HUBER * spread, HUBER * spread)
    inside = np.count_nonzero(np.abs(values - mean) <= HUBER * spread)
    u = float(np.sqrt(np.sum(pull**2)) / max(inside, 1)) * t_widening(len(values))
    return UncertainValue(mean, u)


def minimise(loss: Callable[[Numbers], float], start: Numbers, step: Numbers, rounds: int = 200) -> Numbers:
    """Where `loss` of float64 [k] has its minimum near `start`: Nelder and Mead, with a first simplex of size `step`.

    Ends when the simplex is a thousandth of `step`, or after `rounds`.
    """
    corners = np.vstack((start, start + np.diag(step)))
    losses = np.array([loss(corner) for corner in corners])
    for _ in range(rounds):
        order = np.argsort(losses, kind="stable")
        corners, losses = corners[order], losses[order]
        if np.all(np.abs(corners[1:] - corners[0]) <= 1e-3 * step):
            break
        middle = corners[:-1].mean(axis=0)
        reflected = 2 * middle - corners[-1]
        found = loss(reflected)
        if found < losses[0]:
            further = 3 * middle - 2 * corners[-1]
            beyond = loss(further)
            corners[-1], losses[-1] = (further, beyond) if beyond < found else (reflected, found)
        elif found < losses[-2]:
            corners[-1], losses[-1] = reflected, found
        else:
            inner = 0.5 * (middle + (reflected if found < losses[-1] else corners[-1]))
            held = loss(inner)
            if held < min(found, losses[-1]):
                corners[-1], losses[-1] = inner, held
            else:
                corners[1:] = 0.5 * (corners[1:] + corners[0])
                losses[1:] = [loss(corner) for corner in corners[1:]]
    best: Numbers = corners[np.argmin(losses)]
    return best


def leave_one_out(fit: Callable[[NDArray[np.bool_]], Numbers], count: int) -> Numbers:
    """Standard uncertainties of the parameters that `fit(kept)` finds from the observations that are kept.

    `count` observations, each left out once: u^2 = (n - 1) / n * sum of squares around the mean, times t's widening.
    """
    found = []
    for left_out in range(count):
        kept = np.ones(count, bool)
        kept[left_out] = False
        found.append(fit(kept))
    scattered = np.array(found)
    squares = np.sum((scattered - scattered.mean(axis=0)) ** 2, axis=0)
    u: Numbers = np.sqrt((count - 1) / count * squares) * t_widening(count)
    return u
