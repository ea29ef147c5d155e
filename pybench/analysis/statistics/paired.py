# SPDX-License-Identifier: Apache-2.0
"""Two cases compared within blocks: effect, test, equivalence, and what the design could have seen.

A pair is one block in which both sides are valid; drift that hits a whole block cancels in it. Metrics that are ratios
are compared by log-ratio (the effect is a geometric mean of the blocks' ratios), the others by difference.
Interval, test, equivalence and power come from one `Pivot` of the differences, so that they cannot disagree.
Sources: Schuirmann 1987 (two one-sided tests, J. Pharmacokinet. Biopharm. 15:657); the noncentral t for power (Cohen
1988, ch. 2). Holm's correction (1979, Scand. J. Statist. 6:65) is applied over the declared family by `holm`. Slow
twins: tests/oracles/paired.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy  # loads its parts on first use: commands that compute nothing stay quick

from pybench.analysis.statistics.elementary import exp
from pybench.analysis.statistics.estimate import CONFIDENCE, Estimate, Sample
from pybench.analysis.statistics.intervals import estimate_by, spread_pivot
from pybench.analysis.statistics.pivot import Pivot
from pybench.analysis.statistics.sequential import confidence_among, p_among

ALPHA = 0.05
POWER = 0.80
MOST_CRITICAL = 1000.0  # standard errors; two pairs at 0.05 ask for 13, and for more where they are skewed
EQUIVALENCE_MARGIN = (
    0.05  # a ratio within 1/1.05 .. 1.05 is "no difference that matters"; of a difference: see `margin`
)

Scale = Literal["ratio", "difference"]


@dataclass(frozen=True, slots=True)
class Pairing:
    """Which blocks could be paired. `blocks`: in both; the others are counted by the side that lacks them."""

    blocks: tuple[int, ...]
    only_candidate: int
    only_baseline: int


@dataclass(frozen=True, slots=True)
class Effect:
    """Candidate against baseline.

    estimate: ratio or difference, on the metric's own scale
    p_value: of no effect, two-sided; None: n is too small, or there is no spread
    p_equivalence: of an effect beyond `margin`, so small means equivalent; None as `p_value`
    margin: the largest effect that counts as none, on the scale of the estimate
    detectable: the smallest effect found with probability `POWER` (a ratio above 1, or a difference above 0); None as
        `p_value`
    """

    scale: Scale
    estimate: Estimate
    pairing: Pairing
    p_value: float | None
    p_equivalence: float | None
    margin: float
    detectable: float | None

    @property
    def is_equivalent(self) -> bool:
        return self.p_equivalence is not None and self.p_equivalence < ALPHA

    def as_json(self) -> dict[str, Any]:
        return {
            "scale": self.scale,
            **self.estimate.as_json(),
            "blocks": list(self.pairing.blocks),
            "blocks_only_candidate": self.pairing.only_candidate,
            "blocks_only_baseline": self.pairing.only_baseline,
            "p_value": self.p_value,
            "p_equivalence": self.p_equivalence,
            "equivalence_margin": self.margin,
            "smallest_detectable": self.detectable,
        }


def pair_blocks(candidate: Mapping[int, float], baseline: Mapping[int, float]) -> Pairing:
    """Full pairs only: block -> value of each side."""
    both = tuple(sorted(candidate.keys() & baseline.keys()))
    return Pairing(both, len(candidate) - len(both), len(baseline) - len(both))


def compare_paired(
    candidate: Mapping[int, float],
    baseline: Mapping[int, float],
    scale: Scale,
    margin: float = EQUIVALENCE_MARGIN,
    confidence: float = CONFIDENCE,
    tests: int = 1,
) -> Effect | None:
    """The effect of `candidate` against `baseline` (block -> value), or None when no block holds both. `tests`: how
    many share the level of the interval and of both p values.

    Raises ValueError when a ratio is asked of values that are not positive.
    """
    pairing = pair_blocks(candidate, baseline)
    if not pairing.blocks:
        return None
    sides = [Sample.of(side[block] for block in pairing.blocks) for side in (candidate, baseline)]
    first, second = (side.log() for side in sides) if scale == "ratio" else sides
    differences = _differences(first, second)
    pivot = spread_pivot(differences)
    estimate = estimate_by(pivot, differences, confidence_among(tests, confidence))
    width = math.log1p(margin) if scale == "ratio" else margin
    detectable = None if pivot is None else _detectable(pivot, ALPHA / tests)
    if scale == "ratio" and detectable is not None:
        detectable = exp(detectable)
    return Effect(
        scale=scale,
        estimate=estimate.exp() if scale == "ratio" else estimate,
        pairing=pairing,
        p_value=None if pivot is None else p_among(tests, pivot.p_different(0.0)),
        p_equivalence=None if pivot is None else p_among(tests, _not_equivalent(pivot, width)),
        margin=margin,
        detectable=detectable,
    )


def _differences(first: Sample, second: Sample) -> Sample:
    """first - second by block; differences that are rounding against the values themselves become exact zeros."""
    difference = first.values - second.values
    scale = np.maximum(np.abs(first.values), np.abs(second.values))
    return Sample(np.where(np.abs(difference) <= 1e-14 * scale, 0.0, difference))


def p_of_no_effect(differences: Sample) -> float | None:
    """Two-sided p of a zero mean, below 0.05 where the 95 % interval excludes zero; None for one pair or pairs without
    spread."""
    pivot = spread_pivot(differences)
    return None if pivot is None else pivot.p_different(0.0)


def _not_equivalent(pivot: Pivot, margin: float) -> float:
    """p of a mean outside (-margin, margin): the larger of two one-sided tests."""
    return max(pivot.p_above(-margin), pivot.p_below(margin))


def _detectable(pivot: Pivot, alpha: float) -> float | None:
    """The mean that the two-sided test of this n, spread and skewness finds with probability `POWER`, on the same
    scale. `alpha`: of the test. The side of the longer tail counts, where the test asks for more. None where the test
    asks for so much that no digit of the noncentral t is left."""
    critical, freedom = pivot.critical(alpha), pivot.freedom
    if critical > MOST_CRITICAL:
        return None
    survival = scipy.special._ufuncs._nct_sf

    def lack_of_power(noncentrality: float) -> float:
        # The far tail can underflow to nan for large noncentralities; its contribution is below 1e-9 there.
        far = float(scipy.special.nctdtr(freedom, noncentrality, -critical))
        # `nct.sf` takes twenty times as long: it first looks at the shapes and bounds of its arguments.
        near = min(max(float(survival(critical, freedom, noncentrality)), 0.0), 1.0)
        return near + (0.0 if math.isnan(far) else far) - POWER

    noncentrality = scipy.optimize.brentq(lack_of_power, 0.0, critical * 4 + 10)
    return float(noncentrality) * pivot.error


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's adjusted p values in the order given; None stays None and does not count as a test.

    Of m tests, the k-th smallest p value is multiplied by m - k + 1. No adjusted value is below one of a smaller p.
    """
    ascending = sorted((value, place) for place, value in enumerate(p_values) if value is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    least = 0.0
    for rank, (value, place) in enumerate(ascending):
        least = max(least, min(1.0, value * (len(ascending) - rank)))
        adjusted[place] = least
    return adjusted
