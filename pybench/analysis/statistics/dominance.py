# SPDX-License-Identifier: Apache-2.0
"""Which points of two numbers are beaten by another one: the front of Pareto and what is behind it.

A point beats another if it is as good in both numbers and better in one. Means decide that; whether their intervals
show it is said apart. Intervals are taken as independent, so of paired values they show less than a test of pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pybench.analysis.statistics.estimate import Estimate


@dataclass(frozen=True, slots=True)
class Beaten:
    """By which point one is beaten. `is_shown`: in each number the two are equal, or their intervals are apart."""

    by: int
    is_shown: bool


def find_beaten(points: Sequence[tuple[Estimate, Estimate]], *, higher: tuple[bool, bool]) -> tuple[Beaten | None, ...]:
    """For each point the one that beats it, or None on the front. `higher`: whether more of a number is better.

    Where some are shown to beat it, the one of them with the best first number is named; else the one of all. An
    estimate without an interval is never shown to differ from another value. Takes time quadratic in the points.
    """
    if not points:
        return ()
    x, y = (_Axis.of([point[axis] for point in points], higher=higher[axis]) for axis in (0, 1))
    order = np.lexsort((y.values, x.values))  # the best first number comes first, of equal ones the best second
    found: list[Beaten | None] = []
    for place in range(len(points)):
        beats = (x.values <= x.values[place]) & (y.values <= y.values[place])
        beats &= (x.values < x.values[place]) | (y.values < y.values[place])
        shown = beats & x.shown(place) & y.shown(place)
        is_shown = bool(shown.any())
        by = order[(shown if is_shown else beats)[order]]
        found.append(Beaten(int(by[0]), is_shown) if len(by) else None)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Axis:
    """One number of each point with its interval, float64 [n]; less is better, and no interval is an endless one."""

    values: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]

    @classmethod
    def of(cls, estimates: Sequence[Estimate], *, higher: bool) -> _Axis:
        values = np.array([one.value for one in estimates], dtype=np.float64)
        lower = np.array([-np.inf if one.lower is None else one.lower for one in estimates], dtype=np.float64)
        upper = np.array([np.inf if one.upper is None else one.upper for one in estimates], dtype=np.float64)
        return cls(-values, -upper, -lower) if higher else cls(values, lower, upper)

    def shown(self, place: int) -> NDArray[np.bool_]:
        """Of points that are as good: whether they are equal, or better by the whole of both intervals."""
        found: NDArray[np.bool_] = (self.values == self.values[place]) | (self.upper < self.lower[place])
        return found
