# SPDX-License-Identifier: Apache-2.0
"""Populations of known truth that blocks are drawn from: log-ratios of pairs, logarithms or values of one case.

Scales are in standard deviations of a block's own noise. An interval of a mean does not depend on the scale.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import signal

Numbers = NDArray[np.float64]
Generator = np.random.Generator


@dataclass(frozen=True, slots=True)
class Population:
    """`draw(samples, n, rng)`: float64 [samples, n]; `truth`: the mean that an interval has to contain."""

    name: str
    meaning: str
    draw: Callable[[int, int, Generator], Numbers]
    truth: float


def _outliers(samples: int, n: int, rng: Generator) -> Numbers:
    return rng.normal(size=(samples, n)) + 5.0 * (rng.random((samples, n)) < 0.1)


def _outliers_either_side(samples: int, n: int, rng: Generator) -> Numbers:
    side = rng.choice([-1.0, 1.0], size=(samples, n))
    return rng.normal(size=(samples, n)) + 5.0 * side * (rng.random((samples, n)) < 0.1)


def _bimodal(samples: int, n: int, rng: Generator) -> Numbers:
    return rng.normal(size=(samples, n)) + 4.0 * (rng.random((samples, n)) < 0.3)


def _autocorrelated(samples: int, n: int, rng: Generator) -> Numbers:
    noise = rng.normal(size=(samples, n + 30))  # thirty blocks until the start is forgotten
    return np.asarray(signal.lfilter([1.0], [1.0, -0.5], noise, axis=1)[:, 30:])


def _trend(samples: int, n: int, rng: Generator) -> Numbers:
    return rng.normal(size=(samples, n)) + np.linspace(-1.0, 1.0, n)


def _drifting_pairs(samples: int, n: int, rng: Generator) -> Numbers:
    shared = np.cumsum(rng.normal(size=(samples, n)), axis=1)
    candidate, baseline = (shared + rng.normal(size=(samples, n)) for _ in range(2))
    return np.asarray(candidate - baseline)


def _p99(samples: int, n: int, rng: Generator) -> Numbers:
    """Logarithm of the 99th percentile of 200 iterations by the rule of `measure.timing.latency`: the third largest.
    Iterations are lognormal and one in fifty is slow by an exponential; the run's own level varies by 2 %."""
    found = np.empty((samples, n))
    for begin in range(0, samples, 200):
        part = found[begin : begin + 200]
        times = np.exp(0.05 * rng.normal(size=(*part.shape, 200)))
        times += rng.exponential(0.5, size=times.shape) * (rng.random(times.shape) < 0.02)
        part[:] = np.log(np.partition(times, -3, axis=2)[..., -3])
    return found + 0.02 * rng.normal(size=(samples, n))


@lru_cache
def _mean_p99() -> float:
    """The truth of `_p99` has no closed form: the mean of 400,000 runs, known to 1/600 of a run's spread."""
    rng = np.random.default_rng(99)
    return float(np.mean([_p99(2000, 20, rng).mean() for _ in range(10)]))


def populations() -> tuple[Population, ...]:
    """Every population that a mean is judged on."""
    return (
        Population("normal", "", lambda s, n, rng: rng.normal(size=(s, n)), 0.0),
        Population(
            "t3", "Student's t with 3 degrees of freedom", lambda s, n, rng: rng.standard_t(3, size=(s, n)), 0.0
        ),
        Population("lognormal", "sigma 0.5", lambda s, n, rng: rng.lognormal(0, 0.5, size=(s, n)), math.exp(0.125)),
        Population("outliers", "one block in ten is slow by 5 sigma", _outliers, 0.5),
        Population("outliers ±", "one in ten, on either side, as in pairs", _outliers_either_side, 0.0),
        Population("bimodal", "30 % of blocks in a second mode 4 sigma away", _bimodal, 1.2),
        Population("p99 of a run", "99th percentile of 200 iterations, logarithm", _p99, _mean_p99()),
        Population("AR(1)", "neighbouring blocks correlate by 0.5", _autocorrelated, 0.0),
        Population("trend", "linear, 2 sigma from first to last block", _trend, 0.0),
        Population("drifting pairs", "a random walk that both sides of a pair share", _drifting_pairs, 0.0),
    )
