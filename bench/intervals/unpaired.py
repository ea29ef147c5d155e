# SPDX-License-Identifier: Apache-2.0
"""Intervals of a difference of two independent means, and of energies, over thousands of samples at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from bench.intervals.methods import RESAMPLES, TAIL, Bounds, Draw

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class TwoDraws:
    """Mean of `second` minus mean of `first` is estimated; each float64 [samples, its own n]."""

    first: Draw
    second: Draw

    @property
    def difference(self) -> Numbers:
        return np.asarray(self.second.mean - self.first.mean)

    @property
    def error(self) -> Numbers:
        return np.asarray(np.hypot(self.first.error, self.second.error))

    @property
    def freedom(self) -> Numbers:
        """Satterthwaite's."""
        parts = [side.error**4 / (side.n - 1) for side in (self.first, self.second)]
        return np.asarray(self.error**4 / (parts[0] + parts[1]))

    @property
    def skewness(self) -> Numbers:
        """Of the difference itself, moments with 1/n."""
        signed = ((-1, self.first), (1, self.second))
        third = sum(sign * side.skewness * side.values.std(axis=1) ** 3 / side.n**2 for sign, side in signed)
        second = sum(side.values.var(axis=1) / side.n for _, side in signed)
        return np.asarray(third / second**1.5)


def welch(pair: TwoDraws) -> Bounds:
    half = -special.stdtrit(pair.freedom, TAIL) * pair.error
    return Bounds(pair.difference - half, pair.difference + half)


def skew_adjusted_welch(pair: TwoDraws) -> Bounds:
    quantile = -special.stdtrit(pair.freedom, TAIL)
    longer = pair.skewness * (2 * quantile**2 + 1) / 6 * pair.error
    bounds = welch(pair)
    return Bounds(bounds.lower + np.minimum(longer, 0), bounds.upper + np.maximum(longer, 0))


def pooled(pair: TwoDraws) -> Bounds:
    """Student's: one variance for both."""
    freedom = pair.first.n + pair.second.n - 2
    squares = sum(side.spread**2 * (side.n - 1) for side in (pair.first, pair.second))
    error = np.sqrt(squares / freedom * (1 / pair.first.n + 1 / pair.second.n))
    half = -float(special.stdtrit(freedom, TAIL)) * error
    return Bounds(pair.difference - half, pair.difference + half)


def bca_difference(pair: TwoDraws) -> Bounds:
    """Each sample resampled by itself; accelerations after Efron and Tibshirani (1993, section 14.3)."""
    rng = pair.first.rng
    shifts = []
    for side in (pair.first, pair.second):
        counts = rng.multinomial(side.n, np.full(side.n, 1 / side.n), size=RESAMPLES).T / side.n
        shifts.append((side.values - side.mean[:, None]) @ counts)
    means = np.sort(shifts[1] - shifts[0], axis=1)
    bias = special.ndtri(np.clip((means < 0).mean(axis=1), 0.5 / RESAMPLES, 1 - 0.5 / RESAMPLES))
    influences = [
        sign * (side.values - side.mean[:, None]) / side.n for sign, side in ((-1, pair.first), (1, pair.second))
    ]
    cubes, squares = (sum((values**power).sum(axis=1) for values in influences) for power in (3, 2))
    acceleration = np.asarray(cubes / (6 * squares**1.5))

    def bound(level: float) -> Numbers:
        normal = bias + special.ndtri(level)
        wanted = special.ndtr(bias + normal / (1 - acceleration * normal))
        index = np.clip(np.rint(wanted * (RESAMPLES + 1)).astype(int) - 1, 0, RESAMPLES - 1)
        return np.asarray(pair.difference + means[np.arange(len(means)), index])

    return Bounds(bound(TAIL), bound(1 - TAIL))


def before(pair: TwoDraws) -> Bounds:
    """What pybench did before: Welch's t where a sample has fewer than 15 values, BCa else."""
    return welch(pair) if min(pair.first.n, pair.second.n) < 15 else bca_difference(pair)


UNPAIRED: dict[str, Callable[[TwoDraws], Bounds]] = {
    "skew-adjusted Welch t": skew_adjusted_welch,
    "Welch t": welch,
    "before: Welch, BCa from 15": before,
    "BCa": bca_difference,
    "pooled t": pooled,
}


@dataclass(frozen=True, slots=True)
class Energies:
    """Runs of one case whose energy is measured. Standard deviations relative to the energy, 1.

    runs: between runs
    own: a run's own error, which the budget states
    gain_limit: the board's gain lies within plus and minus this, evenly
    common: an error that all runs of one case share and another case's do not
    """

    name: str
    runs: float
    own: float
    gain_limit: float
    common: float = 0.0


ENERGIES = (
    Energies("gain alone", 0.001, 0.002, 0.05),
    Energies("gain and runs alike", 0.03, 0.005, 0.05),
    Energies("runs far apart", 0.15, 0.005, 0.05),
    Energies("no gain, own errors", 0.001, 0.01, 0.0),
)
RATIOS = (
    Energies("own errors differ by run", 0.005, 0.01, 0.05),
    Energies("a third in common", 0.005, 0.01, 0.05, 0.0033),
    Energies("all in common", 0.005, 0.0, 0.05, 0.01),
)


def absolute_share(world: Energies, n: int, samples: int, rng: np.random.Generator) -> tuple[float, float]:
    """Share of absolute intervals of a mean energy that contain the truth, and their mean half-width over the energy.

    The combination of `pybench.analysis.findings.cases`: half-width of the interval over runs, and 1.96 times the mean
    of the runs' absolute standard uncertainties, in squares.
    """
    gain = rng.uniform(-world.gain_limit, world.gain_limit, size=(samples, 1))
    spread = rng.normal(0, math.hypot(world.runs, world.own), size=(samples, n))
    draw = Draw(np.log1p(gain) + spread, rng)
    quantile = -float(special.stdtrit(n - 1, TAIL))
    longer = np.abs(draw.skewness) / math.sqrt(n) * (2 * quantile**2 + 1) / 6
    farther = np.expm1((quantile + longer) * draw.error)
    half = np.hypot(farther, 1.959964 * math.hypot(world.own, world.gain_limit / math.sqrt(3)))
    return float((np.abs(np.exp(draw.mean) - 1) <= half * np.exp(draw.mean)).mean()), float(half.mean())


def ratio_of_energies(world: Energies, n: int, samples: int, rng: np.random.Generator) -> Draw:
    """Paired log-ratios of two cases on one board, true ratio 1: the gain is in both sides and cancels."""
    sides = []
    for _ in range(2):
        own = rng.normal(0, math.hypot(world.runs, world.own), size=(samples, n))
        sides.append(own + rng.normal(0, world.common, size=(samples, 1)))
    return Draw(sides[0] - sides[1], rng)
