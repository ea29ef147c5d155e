# SPDX-License-Identifier: Apache-2.0
"""Accuracy over units (images, windows of text): shares, paired differences of shares, agreement of predictions.

A deterministic model answers the same in every repetition, so an image or a window counts, and not the run. Two cases
are paired by the ids of their units. The interval of the difference is Tango's score interval (1998, Statistics in
Medicine 17:891): it inverts the test whose special case at zero is McNemar's, and keeps its confidence where few units
change sides. A good quantisation changes few, and there Wald's interval fails. The error term: units are taken as a
random draw from what the model will meet. Where they are alike within groups, `design_effect` divides their number.
Slow twin: tests/oracles/proportions.py (likelihood maximised numerically, on a grid).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import scipy  # loads its parts on first use: commands that compute nothing stay quick

from pybench.analysis.statistics.estimate import CONFIDENCE, TANGO, WILSON, Estimate

EXACT_BELOW = 25  # units that changed sides: below it the normal approximation of McNemar's test is not trusted


@dataclass(frozen=True, slots=True)
class UnitPairs:
    """Counts over units judged by both sides: right on both, on one only, on none."""

    both: int
    only_candidate: int
    only_baseline: int
    neither: int

    @property
    def changed(self) -> int:
        """Units that are right on one side only."""
        return self.only_candidate + self.only_baseline

    @property
    def n(self) -> int:
        return self.both + self.only_candidate + self.only_baseline + self.neither

    def as_json(self) -> dict[str, Any]:
        return {
            "both_right": self.both,
            "only_candidate_right": self.only_candidate,
            "only_baseline_right": self.only_baseline,
            "neither_right": self.neither,
        }


@dataclass(frozen=True, slots=True)
class ScoreTest:
    """Tango's test of the difference of two paired shares, from which its interval is. `whole`: what a share of 1 is
    called, 100 of percentage points."""

    pairs: UnitPairs
    design_effect: float = 1.0
    whole: float = 1.0

    def p_above(self, limit: float) -> float:
        """One-sided p: small means that the difference is above `limit`."""
        return float(scipy.special.ndtr(-self._score(limit)))

    def p_below(self, limit: float) -> float:
        """One-sided p: small means that the difference is below `limit`."""
        return float(scipy.special.ndtr(self._score(limit)))

    def _score(self, limit: float) -> float:
        share = limit / self.whole
        if abs(share) >= 1:  # no difference is beyond
            return math.copysign(math.inf, -share)
        return score(self.pairs, share) / math.sqrt(self.design_effect)


@functools.cache
def estimate_share(hits: int, n: int, confidence: float = CONFIDENCE, *, design_effect: float = 1.0) -> Estimate:
    """hits/n with Wilson's score interval (1927), which is that of n/design_effect independent units."""
    if design_effect == 1.0:
        return Estimate(hits / n, *_wilson_bounds(hits, n, confidence), n, WILSON, confidence)
    square = _normal_quantile(confidence) ** 2
    share, units = hits / n, n / design_effect
    middle = (share + square / (2 * units)) / (1 + square / units)
    width = math.sqrt(square * (share * (1 - share) / units + square / (4 * units**2))) / (1 + square / units)
    return Estimate(share, max(middle - width, 0.0), min(middle + width, 1.0), n, WILSON, confidence)


def _wilson_bounds(hits: int, n: int, confidence: float) -> tuple[float, float]:
    """Those of `scipy.stats.binomtest`, bit for bit: importing scipy.stats takes longer than most analyses."""
    quantile, share = _normal_quantile(confidence), hits / n
    scale = 2 * (n + quantile**2)
    middle = (2 * n * share + quantile**2) / scale
    half = quantile / scale * math.sqrt(4 * n * share * (1 - share) + quantile**2)
    return 0.0 if hits == 0 else middle - half, 1.0 if hits == n else middle + half


def _normal_quantile(confidence: float) -> float:
    """Half a two-sided interval of the normal distribution, in standard deviations."""
    return float(scipy.special.ndtri((1 + confidence) / 2))


def estimate_paired_difference(
    pairs: UnitPairs, confidence: float = CONFIDENCE, *, design_effect: float = 1.0
) -> Estimate:
    """Candidate's share minus baseline's, with Tango's score interval; in shares, not percent.

    `design_effect`: by which every count is divided first, where units are alike within groups.
    """
    value = (pairs.only_candidate - pairs.only_baseline) / pairs.n
    critical = _normal_quantile(confidence) * math.sqrt(design_effect)
    lower = _bound(pairs, critical, -1.0, value)
    upper = _bound(pairs, -critical, value, 1.0)
    return Estimate(value, lower, upper, pairs.n, TANGO, confidence)


def p_of_no_difference(pairs: UnitPairs, *, design_effect: float | None = None) -> float:
    """McNemar's test, two-sided; 1 when no unit changed sides. `design_effect`: None where units are independent.

    Fewer than `EXACT_BELOW` units that changed sides have the exact test, which never errs more often than its level
    says. More of them, and units that are alike within groups, have the score test without continuity correction, which
    is below 0.05 where Tango's 95 % interval excludes zero. Its level is near the nominal one (Fagerland, Lydersen and
    Laake 2013, BMC Med. Res. Methodol. 13:91).
    """
    if is_exact(pairs, grouped=design_effect is not None):
        fewer = min(pairs.only_candidate, pairs.only_baseline)
        return min(1.0, 2 * float(scipy.special.bdtr(fewer, pairs.changed, 0.5)))
    return 2 * float(scipy.special.ndtr(-abs(score(pairs, 0.0)) / math.sqrt(design_effect or 1.0)))


def is_exact(pairs: UnitPairs, *, grouped: bool = False) -> bool:
    """Whether the test is exact: no such test is known for units that may be alike within groups."""
    return pairs.changed < EXACT_BELOW and not grouped


def score(pairs: UnitPairs, difference: float) -> float:
    """Tango's statistic for a true difference of `difference`; falls as `difference` grows."""
    b, c, n = pairs.only_candidate, pairs.only_baseline, pairs.n
    variance = n * (2 * _baseline_only_share(pairs, difference) + difference * (1 - difference))
    distance = b - c - n * difference
    if variance <= 0:
        return 0.0 if distance == 0 else math.copysign(math.inf, distance)
    return distance / math.sqrt(variance)


def _baseline_only_share(pairs: UnitPairs, difference: float) -> float:
    """Maximum-likelihood share of units right on the baseline only, given the difference.

    It is the larger root of 2n q^2 + B q + C = 0 with B = -b - c + (2n - b + c) d and C = -c d (1 - d). This is Tango's
    equation (16) for this sign of d."""
    b, c, n = pairs.only_candidate, pairs.only_baseline, pairs.n
    linear = -b - c + (2 * n - b + c) * difference
    constant = -c * difference * (1 - difference)
    discriminant = max(linear * linear - 8 * n * constant, 0.0)
    return (math.sqrt(discriminant) - linear) / (4 * n)


def _bound(pairs: UnitPairs, target: float, low: float, high: float) -> float:
    """Where the score equals `target` between `low` and `high`; the end itself when the score never gets there."""

    def excess(difference: float) -> float:
        return max(min(score(pairs, difference), 1e6), -1e6) - target

    if excess(low) <= 0:
        return low
    if excess(high) >= 0:
        return high
    return float(scipy.optimize.brentq(excess, low, high, xtol=1e-12))
