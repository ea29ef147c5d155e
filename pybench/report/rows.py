# SPDX-License-Identifier: Apache-2.0
"""Figures with more rows than can be named: a page of numbered rows, in which the whole shows.

Hundreds of names make a figure higher than the table with the same numbers, and take most of the time of a report.
A row has the number that it has in a table. All rows of one look are one line with gaps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pybench.analysis.statistics.estimate import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMED_ROWS = 40  # of a figure: 12 inches high
HEIGHT_INCH = 9.0  # with more rows: a page


def number_rows(axes: Axes, count: int) -> None:
    """Rows from the top down, numbered from 1 as those of a table."""
    axes.set_ylim(count + 0.6, 0.4)
    axes.set_ylabel("Row")
    axes.grid(visible=False, axis="y")


def draw_bars(axes: Axes, bars: Sequence[tuple[float, float, float]], **look: Any) -> None:
    """Horizontal bars: (row, begin, end) of each."""
    places = [place for _, begin, end in bars for place in (begin, end, math.nan)]
    axes.plot(places, [row for row, _, _ in bars for _ in range(3)], solid_capstyle="butt", **look)


def draw_estimates(axes: Axes, estimates: Mapping[int, Estimate], colour: str, marker: str) -> None:
    """Row -> its value with its interval."""
    bars = [
        (row, one.lower, one.upper) for row, one in estimates.items() if one.lower is not None and one.upper is not None
    ]
    draw_bars(axes, bars, color=colour, linewidth=1.0)
    values = [one.value for one in estimates.values()]
    axes.plot(values, [*estimates], linestyle="none", marker=marker, color=colour, markersize=3, markeredgewidth=0)
