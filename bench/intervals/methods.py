# SPDX-License-Identifier: Apache-2.0
"""Ways to put a 95 % interval around a mean, each over thousands of samples at once.

A method takes a `Draw` (samples x values, in the order of the blocks) and returns `Bounds`. Infinite bounds stand for
"no interval at this n". `skew_adjusted` is the chosen one; a test compares it with
`pybench.analysis.statistics.intervals`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

Numbers = NDArray[np.float64]

TAIL = 0.025
RESAMPLES = 999
TRIM = 0.2  # share of values cut off at each end (Yuen 1974)


@dataclass(frozen=True, slots=True)
class Bounds:
    """float64 [samples] each."""

    lower: Numbers
    upper: Numbers


@dataclass(frozen=True)
class Draw:
    """`values`: float64 [samples, n]. Resamples are made once and shared by the bootstraps; `rng` draws them."""

    values: Numbers
    rng: np.random.Generator = field(repr=False)

    @property
    def n(self) -> int:
        return int(self.values.shape[1])

    @cached_property
    def mean(self) -> Numbers:
        return self.values.mean(axis=1)

    @cached_property
    def spread(self) -> Numbers:
        """Standard deviations with n - 1."""
        return self.values.std(axis=1, ddof=1)

    @cached_property
    def error(self) -> Numbers:
        """Standard errors of the means."""
        return self.spread / math.sqrt(self.n)

    @cached_property
    def skewness(self) -> Numbers:
        """g1: third central moment over the second's power 1.5, both with 1/n."""
        centred = self.values - self.mean[:, None]
        return np.asarray((centred**3).mean(axis=1) / self.values.var(axis=1) ** 1.5)

    @cached_property
    def resampled(self) -> tuple[Numbers, Numbers]:
        """(means sorted, studentised means sorted), both [samples, RESAMPLES]. A chunk of samples shares its resamples'
        counts, so that a resample's mean is one entry of a matrix product."""
        means, ratios = np.empty((2, len(self.values), RESAMPLES))
        for begin in range(0, len(self.values), 250):
            part = slice(begin, begin + 250)
            centred = self.values[part] - self.mean[part, None]
            counts = self.rng.multinomial(self.n, np.full(self.n, 1 / self.n), size=RESAMPLES).T / self.n
            shift = centred @ counts
            variance = np.maximum((centred**2) @ counts - shift**2, 0.0)
            variance[variance < 1e-12 * centred.var(axis=1)[:, None]] = 0.0
            with np.errstate(divide="ignore", invalid="ignore"):
                ratios[part] = np.nan_to_num(
                    shift / np.sqrt(variance / (self.n - 1)), nan=0.0, posinf=np.inf, neginf=-np.inf
                )
            means[part] = shift + self.mean[part, None]
        means.sort(axis=1)
        ratios.sort(axis=1)
        return means, ratios


Method = Callable[[Draw], Bounds]


def _around(draw: Draw, half: Numbers) -> Bounds:
    return Bounds(draw.mean - half, draw.mean + half)


def _at(ordered: Numbers, level: float | Numbers) -> Numbers:
    """The quantile of each sorted row."""
    index = np.clip(np.rint(np.asarray(level) * (RESAMPLES + 1)).astype(int) - 1, 0, RESAMPLES - 1)
    return np.asarray(ordered[np.arange(len(ordered)), np.broadcast_to(index, len(ordered))])


def none(draw: Draw) -> Bounds:
    infinite = np.full(len(draw.values), np.inf)
    return Bounds(-infinite, infinite)


def student(draw: Draw, tail: float = TAIL) -> Bounds:
    return _around(draw, stats.t.ppf(1 - tail, draw.n - 1) * draw.error)


def skew_adjusted(draw: Draw, tail: float = TAIL) -> Bounds:
    """Student's t; on the side of the longer tail farther out by the skewness term (Johnson 1978, Hall 1983).
    `tail`: probability on each side."""
    quantile = float(stats.t.ppf(1 - tail, draw.n - 1))
    longer = draw.skewness / math.sqrt(draw.n) * (2 * quantile**2 + 1) / 6 * draw.error
    bounds = student(draw, tail)
    return Bounds(bounds.lower + np.minimum(longer, 0), bounds.upper + np.maximum(longer, 0))


def johnson(draw: Draw) -> Bounds:
    """Johnson (1978, JASA 73:536): the centre is moved by the skewness."""
    shift = draw.skewness * draw.spread / (6 * draw.n)
    bounds = student(draw)
    return Bounds(bounds.lower + shift, bounds.upper + shift)


def hall(draw: Draw) -> Bounds:
    """Hall (1992, J. R. Statist. Soc. B 54:221): a cubic of the t ratio takes its skewness away; t quantiles."""
    root = math.sqrt(draw.n)
    skew = np.where(np.abs(draw.skewness) < 1e-6, 1e-6, draw.skewness)

    def undone(quantile: float) -> Numbers:
        return np.asarray(3 * root / skew * (np.cbrt(1 + skew / root * (quantile - skew / (6 * root))) - 1))

    quantile = float(stats.t.ppf(1 - TAIL, draw.n - 1))
    return Bounds(draw.mean - undone(quantile) * draw.error, draw.mean - undone(-quantile) * draw.error)


def percentile(draw: Draw) -> Bounds:
    means, _ = draw.resampled
    return Bounds(_at(means, TAIL), _at(means, 1 - TAIL))


def expanded(draw: Draw) -> Bounds:
    """Hesterberg (2015, Am. Statist. 69:371): percentile bootstrap at a level that makes it as wide as Student's t."""
    means, _ = draw.resampled
    level = float(special.ndtr(math.sqrt(draw.n / (draw.n - 1)) * stats.t.ppf(TAIL, draw.n - 1)))
    return Bounds(_at(means, level), _at(means, 1 - level))


def bca(draw: Draw) -> Bounds:
    """Efron (1987, JASA 82:171)."""
    means, _ = draw.resampled
    below = (means < draw.mean[:, None]).mean(axis=1) + (means == draw.mean[:, None]).mean(axis=1) / 2
    bias = special.ndtri(np.clip(below, 0.5 / RESAMPLES, 1 - 0.5 / RESAMPLES))
    centred = draw.values - draw.mean[:, None]
    acceleration = (centred**3).sum(axis=1) / (6 * (centred**2).sum(axis=1) ** 1.5)

    def bound(level: float) -> Numbers:
        normal = bias + special.ndtri(level)
        return _at(means, special.ndtr(bias + normal / (1 - acceleration * normal)))

    return Bounds(bound(TAIL), bound(1 - TAIL))


def today(draw: Draw) -> Bounds:
    """What pybench did before: Student's t below 15 values, BCa from there on."""
    return student(draw) if draw.n < 15 else bca(draw)


def bootstrap_t(draw: Draw) -> Bounds:
    """Efron (1982, ch. 10): the t ratio's own quantiles, from resamples; infinite where resamples have no spread."""
    _, ratios = draw.resampled
    return Bounds(draw.mean - _at(ratios, 1 - TAIL) * draw.error, draw.mean - _at(ratios, TAIL) * draw.error)


def wider(draw: Draw) -> Bounds:
    """On each side the farther of Student's t and bootstrap-t."""
    first, second = student(draw), bootstrap_t(draw)
    return Bounds(np.minimum(first.lower, second.lower), np.maximum(first.upper, second.upper))


def wider_hall(draw: Draw) -> Bounds:
    """On each side the farther of Student's t and Hall's cubic."""
    first, second = student(draw), hall(draw)
    return Bounds(np.minimum(first.lower, second.lower), np.maximum(first.upper, second.upper))


def student_97(draw: Draw) -> Bounds:
    """Student's t that asks for 97 %: what coverage costs when it is bought by width alone."""
    return _around(draw, stats.t.ppf(0.985, draw.n - 1) * draw.error)


def sign_flips(draw: Draw) -> Bounds:
    """Fisher's sign-flip test inverted, by Hartigan's (1969, JASA 64:1303) means of random subsets; from 6 values."""
    if draw.n < 6:
        return none(draw)
    means = np.empty((len(draw.values), RESAMPLES))
    for begin in range(0, len(means), 250):
        chosen = (draw.rng.random((draw.n, RESAMPLES)) < 0.5).astype(np.float64)
        chosen[0, chosen.sum(axis=0) == 0] = 1.0
        means[begin : begin + 250] = draw.values[begin : begin + 250] @ (chosen / chosen.sum(axis=0))
    means.sort(axis=1)
    return Bounds(_at(means, TAIL), _at(means, 1 - TAIL))


def yuen(draw: Draw) -> Bounds:
    """Yuen (1974, Biometrika 61:165): t around the trimmed mean. Its truth is the trimmed mean's."""
    cut = int(TRIM * draw.n)
    ordered = np.sort(draw.values, axis=1)
    kept = ordered[:, cut : draw.n - cut]
    centre = kept.mean(axis=1)
    spread = np.clip(ordered, kept[:, :1], kept[:, -1:]).std(axis=1, ddof=1)
    half = stats.t.ppf(1 - TAIL, kept.shape[1] - 1) * spread / ((1 - 2 * cut / draw.n) * math.sqrt(draw.n))
    return Bounds(centre - half, centre + half)


def sign_test(draw: Draw) -> Bounds:
    """Order statistics of the binomial. Its truth is the median's; from 6 values."""
    if draw.n < 6:
        return none(draw)
    outside = int(stats.binom.ppf(TAIL, draw.n, 0.5))
    while stats.binom.cdf(outside - 1, draw.n, 0.5) > TAIL:
        outside -= 1
    ordered = np.sort(draw.values, axis=1)
    return Bounds(ordered[:, outside - 1], ordered[:, draw.n - outside])


@lru_cache
def _signed_rank_cut(n: int) -> int:
    """The largest k with P(signed-rank sum < k) <= TAIL under symmetry."""
    ways = np.zeros(n * (n + 1) // 2 + 1)
    ways[0] = 1.0
    for rank in range(1, n + 1):
        ways[rank:] = ways[rank:] + ways[:-rank]
    below = np.cumsum(ways / 2.0**n)
    return int(np.searchsorted(below, TAIL, side="right"))


def hodges_lehmann(draw: Draw) -> Bounds:
    """Wilcoxon's signed-rank test inverted (Hodges and Lehmann 1963). Its truth is the pseudo-median; from 6 values."""
    if draw.n < 6:
        return none(draw)
    first, second = np.triu_indices(draw.n)
    walsh = np.sort((draw.values[:, first] + draw.values[:, second]) / 2, axis=1)
    cut = _signed_rank_cut(draw.n)
    return Bounds(walsh[:, cut - 1], walsh[:, walsh.shape[1] - cut])


def _lag_one(draw: Draw) -> Numbers:
    centred = draw.values - draw.mean[:, None]
    return np.asarray((centred[:, 1:] * centred[:, :-1]).sum(axis=1) / (centred**2).sum(axis=1))


def student_effective(draw: Draw) -> Bounds:
    """Student's t with the effective number of an AR(1) series, where lag-1 autocorrelation is significant (5 %,
    one-sided). Its bias is removed after Marriott and Pope (1954)."""
    if draw.n < 7:
        return student(draw)
    found = _lag_one(draw)
    corrected = np.clip((draw.n * found + 1) / (draw.n - 3), 0.0, 0.9)
    significant = found > -1 / draw.n + 1.645 / math.sqrt(draw.n)
    factor = np.where(significant, (1 + corrected) / (1 - corrected), 1.0)
    effective = np.maximum(draw.n / factor, 2.0)
    variance = draw.spread**2 * (draw.n - 1) / draw.n / (effective - 1)
    return _around(draw, stats.t.ppf(1 - TAIL, effective - 1) * np.sqrt(variance))


def cosines(draw: Draw) -> Bounds:
    """Equal-weighted cosines (Lazarus, Lewis, Stock and Watson 2018, JBES 36:541): robust to slow autocorrelation."""
    terms = max(2, round(0.41 * draw.n ** (2 / 3)))
    angles = np.pi * np.outer(np.arange(draw.n) + 0.5, np.arange(1, terms + 1)) / draw.n
    weights = math.sqrt(2 / draw.n) * np.cos(angles)
    variance = ((draw.values @ weights) ** 2).mean(axis=1)
    return _around(draw, stats.t.ppf(1 - TAIL, terms) * np.sqrt(variance / draw.n))


METHODS: dict[str, Method] = {
    "skew-adjusted t": skew_adjusted,
    "Student t": student,
    "before: t, BCa from 15": today,
    "BCa": bca,
    "percentile": percentile,
    "expanded percentile": expanded,
    "bootstrap-t": bootstrap_t,
    "wider of t and bootstrap-t": wider,
    "wider of t and Hall": wider_hall,
    "Student t at 97 %": student_97,
    "Johnson t": johnson,
    "Hall cubic t": hall,
    "sign flips": sign_flips,
    "t, AR(1) if seen": student_effective,
    "cosines (HAR)": cosines,
    "Yuen trimmed t": yuen,
    "Hodges-Lehmann": hodges_lehmann,
    "sign test": sign_test,
}
