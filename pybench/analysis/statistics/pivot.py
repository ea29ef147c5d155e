# SPDX-License-Identifier: Apache-2.0
"""A mean, or a difference of two means: its interval and its tests (docs/method/statistics.md, "Intervals").

Student's t with one addition: on the side of the longer tail its bound is farther out, by the skewness term of the
t ratio's Edgeworth expansion (Johnson 1978, JASA 73:536; Hall 1983, Ann. Statist. 11:569). The other side stays
Student's. So an interval is never shorter than Student's and a p value is never smaller. An interval excludes a number
exactly when the test of that number has p below 1 - confidence, because both come from one `Pivot`.
bench/intervals shows why this was chosen; docs/decisions/ has what was tried. Slow twin: tests/oracles/paired.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import scipy  # loads its parts on first use: commands that compute nothing stay quick

from pybench.analysis.statistics.elementary import cube
from pybench.analysis.statistics.estimate import Sample


class LimitTest(Protocol):
    """One-sided tests of an effect. Its interval excludes a number exactly where twice a p value is below 0.05."""

    def p_above(self, limit: float) -> float: ...

    def p_below(self, limit: float) -> float: ...


def p_beyond(test: LimitTest, low: float, high: float) -> float:
    """Two-sided p: small means that the effect is not between `low` and `high`."""
    return min(1.0, 2 * min(test.p_above(high), test.p_below(low)))


@dataclass(frozen=True, slots=True)
class Pivot:
    """A value with its standard error.

    value, error: in one unit; `error` is above 0
    freedom: degrees of freedom of `error`
    skewness: third central moment of the value over the cube of its error, 1: g1/sqrt(n) of a mean of n values. Error
        term: it is estimated from the same values, and a tail that no value came from is not seen.
    """

    value: float
    error: float
    freedom: float
    skewness: float

    def bounds(self, confidence: float) -> tuple[float, float]:
        """The interval with equal tails."""
        quantile = self._quantile((1 - confidence) / 2)
        below, above = (_reach(quantile, tail) for tail in (-self.skewness, self.skewness))
        return self.value - below * self.error, self.value + above * self.error

    def p_above(self, limit: float) -> float:
        """One-sided p: small means that the mean is above `limit`."""
        return self._tail(_undone((self.value - limit) / self.error, -self.skewness))

    def p_below(self, limit: float) -> float:
        """One-sided p: small means that the mean is below `limit`."""
        return self._tail(_undone((limit - self.value) / self.error, self.skewness))

    def p_different(self, limit: float) -> float:
        """Two-sided p: small means that the mean is not `limit`."""
        return p_beyond(self, limit, limit)

    def critical(self, alpha: float) -> float:
        """Standard errors from zero at which the two-sided test finds an effect, on the side of the longer tail."""
        return _reach(self._quantile(alpha / 2), abs(self.skewness))

    def _quantile(self, tail: float) -> float:
        return -float(scipy.special.stdtrit(self.freedom, tail))

    def _tail(self, quantile: float) -> float:
        return float(scipy.special.stdtr(self.freedom, -quantile))


def pivot_of_mean(sample: Sample) -> Pivot:
    """The mean of at least two values that differ."""
    return _pivot(float(sample.values.mean()), [(1, sample)])


def pivot_of_difference(first: Sample, second: Sample) -> Pivot:
    """Mean of `second` minus mean of `first`, independent, two values each at least, not both constant.

    Variances may differ: degrees of freedom after Satterthwaite, as in Welch's test (1947, Biometrika 34:28).
    """
    return _pivot(float(second.values.mean() - first.values.mean()), [(-1, first), (1, second)])


def _pivot(value: float, signed: list[tuple[int, Sample]]) -> Pivot:
    """`signed`: the samples whose means add up to `value`, each with its sign."""
    deviations = [sample.values - sample.values.mean() for _, sample in signed]
    parts = [float((some**2).sum()) / (some.size - 1) / some.size for some in deviations]
    error = math.sqrt(math.fsum(parts))
    shares = [part / math.fsum(parts) for part in parts]
    freedom = 1 / math.fsum(share**2 / (sample.n - 1) for share, (_, sample) in zip(shares, signed, strict=True))
    cubes = [
        sign * float(cube(some / error).mean()) / some.size**2
        for (sign, _), some in zip(signed, deviations, strict=True)
    ]
    # Moments with 1/n in the numerator and the denominator, as in g1: `error` has 1/(n - 1).
    biased = math.fsum(share * (sample.n - 1) / sample.n for share, (_, sample) in zip(shares, signed, strict=True))
    return Pivot(value, error, freedom, math.fsum(cubes) / biased**1.5)


def _reach(quantile: float, skewness: float) -> float:
    """How many standard errors a bound is away, on the side towards which `skewness` is positive."""
    return quantile + max(skewness, 0.0) * (2 * quantile**2 + 1) / 6


def _undone(reach: float, skewness: float) -> float:
    """The quantile whose `_reach` this is; below a quantile of 0 the term's slope there is continued."""
    term = max(skewness, 0.0)
    beyond = reach - term / 6
    return beyond if beyond <= 0 else 2 * beyond / (1 + math.sqrt(1 + 4 * term / 3 * beyond))
