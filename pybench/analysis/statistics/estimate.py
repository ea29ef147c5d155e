# SPDX-License-Identifier: Apache-2.0
"""`Estimate`: a number that never travels without its interval, its sample size and the method that gave it.

After criterion.rs (`src/stats`). `Sample` checks what every estimator here relies on, once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pybench.analysis.statistics import elementary

CONFIDENCE = 0.95
NORMAL_95 = 1.959964  # 97.5th percentile of the normal distribution: half a 95 % interval in standard uncertainties

# How an interval was found; the words appear in tables.
SKEW_T = "skew-adjusted t"
SKEW_WELCH = "skew-adjusted Welch t"
STUDENT = "Student t"  # only in protocols that repeat a paper
BCA = "BCa bootstrap"  # only in protocols that repeat a paper
EQUAL = "all equal"  # no spread was seen: the interval is a point, and its width says nothing about the error
SINGLE = "one value"  # no interval
WIDE = "too wide"  # no interval: its ends are further than `WIDEST` apart
WIDEST = 1e9  # of the two ends of a ratio's interval, the larger over the smaller: beyond it nothing is known
ONE_REPETITION = "one repetition gives no interval"  # what is said of it
SCATTERED = "the values scatter too much for an interval"  # and of `WIDE`
FEW = "too few values"  # no interval by the method that was asked for
EXACT = "exact"  # counted, not sampled: the interval is a point by nature
TANGO = "Tango score"
WILSON = "Wilson score"
GROUPED_T = "Student t over groups"  # of units that are alike within groups


@dataclass(frozen=True, slots=True)
class Sample:
    """At least one finite float64; the order is that of the blocks."""

    values: NDArray[np.float64]

    @classmethod
    def of(cls, values: Iterable[float]) -> Sample:
        """Raises ValueError on an empty sample or a value that is not finite."""
        array = np.asarray(list(values), dtype=np.float64)
        if array.size == 0 or not np.isfinite(array).all():
            raise ValueError("a sample needs at least one value, all finite")
        return cls(array)

    @property
    def n(self) -> int:
        return int(self.values.size)

    @property
    def is_constant(self) -> bool:
        """Whether the spread is nothing but rounding: a relative range below 1e-12."""
        low, high = float(self.values.min()), float(self.values.max())
        return high - low <= 1e-12 * max(high, -low, 1e-300)

    def log(self) -> Sample:
        """Natural logarithms; raises ValueError unless every value is positive."""
        if (self.values <= 0).any():
            raise ValueError("a ratio needs positive values")
        return Sample(elementary.log(self.values))


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its interval.

    value: in the unit of what is estimated
    lower, upper: ends of the interval at `confidence`; None where `n` allows none
    n: how many units are behind it (blocks, images)
    method: how the interval was found
    confidence: 0 to 1
    """

    value: float
    lower: float | None
    upper: float | None
    n: int
    method: str
    confidence: float = CONFIDENCE

    @property
    def has_interval(self) -> bool:
        return self.lower is not None and self.upper is not None

    @property
    def why_no_interval(self) -> str:
        """What is said where `has_interval` is False."""
        return SCATTERED if self.method == WIDE else ONE_REPETITION

    def exp(self) -> Estimate:
        """The estimate of a log-ratio as one of the ratio; monotone, so the interval keeps its confidence.

        Two blocks that differ much give ends such as 1e-10 and 1e11, or infinity; there is no interval then.
        """
        if self.lower is not None and self.upper is not None and self.upper - self.lower > math.log(WIDEST):
            return Estimate(elementary.exp(self.value), None, None, self.n, WIDE, self.confidence)
        lower, upper = (None if bound is None else elementary.exp(bound) for bound in (self.lower, self.upper))
        return Estimate(elementary.exp(self.value), lower, upper, self.n, self.method, self.confidence)

    def inverse(self) -> Estimate:
        """1 over a positive estimate; the bounds change sides, and a bound of 0 becomes infinity."""
        lower, upper = (
            None if bound is None else 1 / bound if bound > 0 else math.inf for bound in (self.upper, self.lower)
        )
        return Estimate(1 / self.value, lower, upper, self.n, self.method, self.confidence)

    def scaled(self, factor: float) -> Estimate:
        """Times a positive factor: a change of unit."""
        lower, upper = (None if bound is None else bound * factor for bound in (self.lower, self.upper))
        return Estimate(self.value * factor, lower, upper, self.n, self.method, self.confidence)

    def within(self, least: float, most: float) -> Estimate:
        """The interval ends where values can lie; it loses nothing that could be true."""
        lower, upper = (None if bound is None else min(max(bound, least), most) for bound in (self.lower, self.upper))
        return Estimate(self.value, lower, upper, self.n, self.method, self.confidence)

    def as_json(self) -> dict[str, Any]:
        return {
            "value": self.value,
            "lower": self.lower,
            "upper": self.upper,
            "confidence": self.confidence,
            "n": self.n,
            "method": self.method,
        }
