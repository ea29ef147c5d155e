# SPDX-License-Identifier: Apache-2.0
"""Where two lines of a curve cross, with an interval.

The gap of two lines is what pairing compares: the difference of their values within a block, of logarithms where the
metric's mean is geometric. Between two neighbouring values of the factor the gap is taken as straight over the
logarithm of the factor (over the factor itself, where it is not positive). Lines cross where its mean changes sign.

The interval of a crossing contains the measured places at which the interval of the mean gap includes zero (Fieller
1954, J. R. Statist. Soc. B 16:175, with the skew-adjusted t in place of Student's). So a place is outside exactly where
the two lines are shown to differ. Where they do not differ up to the last measured value, the interval ends there. If
an interval were given only when both sides are clear, it would contain the truth in as few as 72 %
(docs/decisions/001).
Error term: the interval does not contain the error of the straight gap.

Only blocks count in which all four cases around a crossing ran on one board with one software.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pybench.analysis.comparability import SoftwareComparisons
from pybench.analysis.statistics.elementary import exp, log
from pybench.analysis.statistics.estimate import CONFIDENCE, Estimate, Sample
from pybench.analysis.statistics.pivot import pivot_of_mean
from pybench.case import Case
from pybench.case.factors import factor_named
from pybench.catalogue.metrics import Metric

Numbers = NDArray[np.float64]

_HALVINGS = 40  # of a stretch between two values, for a bound: 1e-12 of it is left


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """One case of a line. `values`: block -> value behind the estimate; empty for a ratio, and for what is counted over
    units of the data, whose blocks are all alike."""

    at: float
    case: Case
    estimate: Estimate
    values: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class CurveLine:
    """Cases that differ in the factor alone, by rising value of it."""

    points: tuple[CurvePoint, ...]

    @property
    def case(self) -> Case:
        return self.points[0].case


@dataclass(frozen=True, slots=True)
class Crossing:
    """Where two lines cross.

    lower, upper: of the places between the measured values; None with fewer than two blocks
    is_shown: whether the lines are shown to differ on both sides of the interval
    blocks: behind it
    blocks_excluded: left out, because two of the four cases around it ran with different software
    """

    first: CurveLine
    second: CurveLine
    at: float
    lower: float | None
    upper: float | None
    is_shown: bool
    blocks: int
    blocks_excluded: int


@dataclass(frozen=True, slots=True)
class Stretch:
    """The gap of two lines between two neighbouring values of the factor, `ends`.

    left, right: float64 [blocks], the gap at each end, in the same blocks
    confidence: that of the intervals of the points
    """

    ends: tuple[float, float]
    left: Numbers
    right: Numbers
    blocks_excluded: int = 0
    confidence: float = CONFIDENCE

    @property
    def place(self) -> float | None:
        """Where the mean gap is zero, as a share of the stretch; None where it does not change sign."""
        if not self.left.size:
            return None
        left, right = float(self.left.mean()), float(self.right.mean())
        return left / (left - right) if left * right < 0 or (right == 0 != left) else None

    def is_open(self, place: float) -> bool:
        """Whether the gap at a share of the stretch may be zero."""
        sample = Sample((1 - place) * self.left + place * self.right)
        if sample.n < 2 or sample.is_constant:
            return sample.n < 2 or not sample.values.any()
        lower, upper = pivot_of_mean(sample).bounds(self.confidence)
        return lower <= 0 <= upper

    def at(self, place: float) -> float:
        """The value of the factor at a share of the stretch."""
        low, high = self.ends
        if low <= 0:
            return low + place * (high - low)
        left, right = log(np.array(self.ends))
        return exp(float(left + place * (right - left)))


def find_crossings(
    lines: Sequence[CurveLine],
    metric: Metric,
    software: SoftwareComparisons,
    over: str,
    compared: Sequence[frozenset[str]],
) -> tuple[Crossing, ...]:
    """Every place where two lines over a factor change sides between two values that both have, or at one.

    Only lines that differ in one factor, or in what one comparison names (one of `compared`). Where a small model in
    FP32 meets a large one in FP16 is no question of the plan.
    """
    return tuple(
        crossing
        for first, second in itertools.combinations(lines, 2)
        if _is_asked(first.case, second.case, over, compared)
        for crossing in _crossings_of(first, second, metric, software)
    )


def _is_asked(first: Case, second: Case, over: str, compared: Sequence[frozenset[str]]) -> bool:
    differing = {
        name
        for name, value in first.meant.items()
        if name != over and second.meant.get(name, value) != value and not factor_named(name, first).protocol
    }
    return len(differing) <= 1 or any(differing <= names for names in compared)


def _crossings_of(first: CurveLine, second: CurveLine, metric: Metric, software: SoftwareComparisons) -> list[Crossing]:
    others = {point.at: point for point in second.points}
    both = [(point, others[point.at]) for point in first.points if point.at in others]
    stretches = [_stretch(left, right, metric, software) for left, right in itertools.pairwise(both)]
    found = []
    for number, stretch in enumerate(stretches):
        place, blocks, excluded = stretch.place, len(stretch.left), stretch.blocks_excluded
        if place is None or (place == 1 and not _goes_on(stretch, stretches[number + 1 :])):
            continue
        at = stretch.at(place)
        if blocks < 2:
            found.append(Crossing(first, second, at, None, None, False, blocks, excluded))
            continue
        lower, is_below = _bound(stretches[number::-1], place, 0)
        upper, is_above = _bound(stretches[number:], place, 1)
        found.append(Crossing(first, second, at, lower, upper, is_below and is_above, blocks, excluded))
    return found


def _goes_on(before: Stretch, after: Sequence[Stretch]) -> bool:
    """Whether lines that meet at the end of a stretch are on other sides at the end of the next one."""
    return bool(after) and bool(after[0].left.size) and float(before.left.mean() * after[0].right.mean()) < 0


def _stretch(
    left: tuple[CurvePoint, CurvePoint],
    right: tuple[CurvePoint, CurvePoint],
    metric: Metric,
    software: SoftwareComparisons,
) -> Stretch:
    corners = (*left, *right)
    ends = left[0].at, right[0].at
    if not all(point.values for point in corners):
        values = np.array([[point.estimate.value] for point in corners])
        return Stretch(ends, *_gaps(values, metric))
    common = set.intersection(*(set(point.values) for point in corners))
    differing = software.differing_blocks([point.case for point in corners]) & common
    values = np.array([[point.values[block] for block in sorted(common - differing)] for point in corners])
    confidence = max(point.estimate.confidence for point in corners)
    return Stretch(ends, *_gaps(values, metric), len(differing), confidence)


def _gaps(corners: Numbers, metric: Metric) -> tuple[Numbers, Numbers]:
    """float64 [blocks] of the left and of the right end. `corners`: [4, blocks], two lines at the left, then at the
    right."""
    if metric.mean == "geometric" and (corners > 0).all():
        corners = log(corners)
    return corners[0] - corners[1], corners[2] - corners[3]


def _bound(stretches: Sequence[Stretch], place: float, far: Literal[0, 1]) -> tuple[float, bool]:
    """Where lines are first shown to differ, from `place` of the first stretch towards the ends `far` of all of them.

    Returns that place and True, or the last of these ends and False where the lines are not shown to differ."""
    for stretch in stretches:
        if not stretch.is_open(far):
            return stretch.at(_edge(stretch, place, far)), True
        place = 1 - far  # of the next stretch, the near end
    return stretches[-1].ends[far], False


def _edge(stretch: Stretch, inside: float, outside: float) -> float:
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if stretch.is_open(middle) else (inside, middle)
    return (inside + outside) / 2
