# SPDX-License-Identifier: Apache-2.0
"""Curves over a number: a panel for each quantity, a line for each group, an interval at each point.

Points are joined by straight lines for the eye; nothing between them was measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pybench.analysis.statistics.estimate import Estimate
from pybench.case import Case
from pybench.report.canvas import (
    WIDTH_INCH,
    Picture,
    legend_below,
    mark_cases,
    pick,
    picture,
    plain_log_ticks,
    spans_widely,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class Line:
    """One group.

    name: as the legend has it
    points: (x, value with its interval), ascending in x
    marked: indices of the points that have a ring
    cases: of its points, where the page may dim it
    """

    name: str
    points: Sequence[tuple[float, Estimate]]
    marked: Sequence[int] = ()
    cases: Sequence[Case] = ()


@dataclass(frozen=True, slots=True)
class Panel:
    """One quantity. `y_label`: with its unit."""

    y_label: str
    lines: Sequence[Line]


def draw_curves(name: str, title: str, caption: str, x_label: str, panels: Sequence[Panel]) -> Picture:
    """One figure, its panels side by side. A line keeps its colour and marker in all panels."""
    import matplotlib.pyplot as plt

    figure, grid = plt.subplots(1, len(panels), figsize=(WIDTH_INCH, 2.9), squeeze=False)
    for axes, panel in zip(grid[0], panels, strict=True):
        _draw_panel(axes, panel)
        axes.set_xlabel(x_label)
    if any(line.name for panel in panels for line in panel.lines):
        legend_below(figure, grid[0][0])
    return picture(name, title, caption, figure)


def draw_line(axes: Axes, position: int, line: Line) -> None:
    """A line with its intervals, in the colour and with the marker of its position."""
    colour, marker = pick(position)
    places = [x for x, _ in line.points]
    values = [estimate.value for _, estimate in line.points]
    drawn = axes.plot(places, values, color=colour, linewidth=0.9, alpha=0.7)
    for x, estimate in line.points:
        if estimate.lower is not None and estimate.upper is not None:
            drawn += axes.plot(
                [x, x], [estimate.lower, estimate.upper], color=colour, linewidth=1.6, solid_capstyle="butt"
            )
    drawn += axes.plot(
        places,
        values,
        linestyle="none",
        marker=marker,
        color=colour,
        markersize=5,
        label=line.name or None,
        markeredgecolor="white",
        markeredgewidth=0.6,
    )
    for place in line.marked:
        drawn += axes.plot(
            [places[place]],
            [values[place]],
            linestyle="none",
            marker="o",
            markersize=10,
            color=colour,
            markerfacecolor="none",
            markeredgewidth=1.1,
        )
    if line.cases:
        mark_cases(drawn, line.cases)


def _draw_panel(axes: Axes, panel: Panel) -> None:
    for position, line in enumerate(panel.lines):
        draw_line(axes, position, line)
    axes.set_ylabel(panel.y_label)
    axes.margins(x=0.08, y=0.12)
    drawn = [estimate for line in panel.lines for _, estimate in line.points]
    if spans_widely([estimate.value for estimate in drawn], drawn):
        plain_log_ticks(axes, "y")
