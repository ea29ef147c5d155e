# SPDX-License-Identifier: Apache-2.0
"""The front of Pareto, against a search of all pairs, and one front worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from pybench.analysis.statistics.dominance import Beaten, find_beaten
from pybench.analysis.statistics.estimate import STUDENT, Estimate

LESS_IS_BETTER, TALL_AND_LEFT = (False, False), (False, True)


def at(value: float, half: float | None = 0.1) -> Estimate:
    if half is None:
        return Estimate(value, None, None, 1, STUDENT)
    return Estimate(value, value - half, value + half, 5, STUDENT)


def test_a_front_by_hand() -> None:
    """Latency in ms and Top-1 in %: the third is slower than the first and less accurate than the second."""
    points = [(at(1.0), at(70.0)), (at(2.0), at(76.0)), (at(3.0), at(75.0))]
    assert find_beaten(points, higher=TALL_AND_LEFT) == (None, None, Beaten(1, is_shown=True))


@pytest.mark.parametrize("higher", [(False, False), (False, True), (True, False), (True, True)])
def test_it_is_what_a_search_of_all_pairs_finds(higher: tuple[bool, bool]) -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        numbers = rng.integers(0, 6, (20, 2))  # with many ties
        found = find_beaten([(at(float(x)), at(float(y))) for x, y in numbers], higher=higher)
        for place, one in enumerate(found):
            beating = {other for other in range(20) if _beats(numbers[other], numbers[place], higher)}
            assert (one is None) == (not beating)
            assert one is None or one.by in beating


def _beats(one: np.ndarray, other: np.ndarray, higher: tuple[bool, bool]) -> bool:
    gains = [(b - a) * (-1 if up else 1) for a, b, up in zip(one, other, higher, strict=True)]
    return min(gains) >= 0 and max(gains) > 0


def test_overlapping_intervals_do_not_show_it() -> None:
    slower, equal = (at(2.0), at(76.0, 1.0)), (at(1.0), at(76.5, 1.0))
    assert find_beaten([slower, equal], higher=TALL_AND_LEFT) == (Beaten(1, is_shown=False), None)


def test_equal_numbers_are_as_good_whatever_their_intervals() -> None:
    """The answers of two runtimes are the same, and one of them is faster."""
    points = [(at(2.0), at(76.0, 1.0)), (at(1.0), at(76.0, 1.0))]
    assert find_beaten(points, higher=TALL_AND_LEFT) == (Beaten(1, is_shown=True), None)


def test_one_repetition_shows_nothing() -> None:
    points = [(at(2.0, None), at(2.0)), (at(1.0, None), at(1.0))]
    assert find_beaten(points, higher=LESS_IS_BETTER) == (Beaten(1, is_shown=False), None)


def test_a_winner_that_is_shown_is_named_before_a_better_one_that_is_not() -> None:
    points = [(at(5.0), at(5.0)), (at(1.0, 9.0), at(1.0)), (at(4.0), at(4.0))]
    assert find_beaten(points, higher=LESS_IS_BETTER)[0] == Beaten(2, is_shown=True)


def test_equal_points_are_on_the_front_together() -> None:
    assert find_beaten([(at(1.0), at(1.0))] * 3, higher=LESS_IS_BETTER) == (None, None, None)
    assert find_beaten([], higher=LESS_IS_BETTER) == ()
