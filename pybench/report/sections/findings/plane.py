# SPDX-License-Identifier: Apache-2.0
"""Planes of trade-offs, one figure a model: accuracy, energy and latency against each other.

fronts   one row a case: in each plane, whether another case beats it
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pybench.analysis.findings.planes import PlaneFinding, PlanePoint
from pybench.analysis.statistics.estimate import Estimate
from pybench.analysis.units import unit_of
from pybench.case import Case
from pybench.catalogue.planes import Plane
from pybench.report.canvas import (
    BLACK,
    WIDTH_INCH,
    Drawing,
    Picture,
    legend_beside,
    mark_cases,
    pick,
    picture,
    plain_log_ticks,
    spans_widely,
)
from pybench.report.labels import case_text, metric_title, varying_factors
from pybench.report.numbers import DASH, display_unit
from pybench.report.tables import Cell, Column, Table

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

_NAMED_POINTS = 40  # of a figure; the names of more hide each other, and take most of its time
_NAME_CHARACTERS = 48  # of a point; with longer ones nothing is left for what is drawn
_MOST_OF_A_PLANE = 6  # figures, half a second each; the table has the fronts of all models
_OPEN = "several accuracies belong to this case"
_NOTES = (
    "A case beats another if it is as good in both numbers and better in one. Means decide that.",
    "Not shown: the intervals of the two cases overlap in one of the numbers, or their latencies are of two kinds.",
    "Only cases of the same work compete: of one model, with inputs of one size and one kind.",
    "Latency is of one iteration, of a whole batch; against accuracy only cases of one batch compete.",
    "Energy is of one sample.",
    "Boards and software may differ between two cases; the tables of effects say so.",
)


def draw_planes(found: Sequence[PlaneFinding]) -> list[Drawing]:
    """Of each plane one figure a model, for the first few models."""
    shown: list[Drawing] = []
    for plane in dict.fromkeys(one.plane for one in found):
        members = [one for one in found if one.plane == plane]
        shown += [
            partial(_draw, number, one, many=len(members) > 1)
            for number, one in enumerate(members[:_MOST_OF_A_PLANE], start=1)
        ]
    return shown


def front_tables(found: Sequence[PlaneFinding]) -> list[Table]:
    """`fronts`: one row for each case that is in a plane; none where no plane is."""
    if not found:
        return []
    planes = list(dict.fromkeys(one.plane for one in found))
    points: dict[Case, dict[Plane, PlanePoint]] = {}
    for one in found:
        for point in one.points:
            points.setdefault(point.case, {})[one.plane] = point
    names = ("model", *(name for name in varying_factors([*points]) if name != "model"))
    columns = (
        Column("Case", ("case",)),
        *(Column(plane.title, tuple(_field(plane, end) for end in ("", "_by", "_shown"))) for plane in planes),
    )
    rows = tuple(
        (
            Cell(case_text(case, names), csv=(case.id,)),
            *(_standing_cell(case, at.get(plane), names) for plane in planes),
        )
        for case, at in points.items()
    )
    return [Table("fronts", "Trade-offs: which cases no other one beats", columns, rows, _NOTES)]


def _field(plane: Plane, end: str) -> str:
    return plane.name.replace("-", "_") + end


def _standing_cell(case: Case, point: PlanePoint | None, names: Sequence[str]) -> Cell:
    """`front`, or what beats the case: of the winner the factors in which it differs."""
    if point is None:
        return Cell(DASH, note="a number is missing", csv=("", "", ""), cases=())
    if point.is_open:
        return Cell(DASH, note=_OPEN, csv=("open", "", ""), cases=())
    if point.beaten_by is None:
        return Cell("front", tone="good", csv=("front", "", ""), cases=())
    differing = [name for name in names if case.meant.get(name) != point.beaten_by.meant.get(name)]
    text = f"beaten by {case_text(point.beaten_by, differing) or point.beaten_by.title()}"
    shown = str(point.is_shown).lower()
    return Cell(text if point.is_shown else f"{text}, not shown", csv=("beaten", point.beaten_by.id, shown), cases=())


def _draw(number: int, found: PlaneFinding, *, many: bool) -> Picture:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(WIDTH_INCH * 0.85, 3.0))
    x_unit = display_unit(found.x.unit, [point.x.value for point in found.points])
    y_unit = display_unit(found.y.unit, [point.y.value for point in found.points])
    varying = varying_factors([point.case for point in found.points])
    names = [name for name in varying if name not in ("runtime", "precision", "model")]
    longest = max(len(case_text(point.case, names)) for point in found.points)
    are_named = len(found.points) <= _NAMED_POINTS and longest <= _NAME_CHARACTERS
    left = names if are_named else []
    groups: dict[str, list[PlanePoint]] = {}
    for point in found.points:
        place = replace(point, x=point.x.scaled(1 / x_unit.scale), y=point.y.scaled(1 / y_unit.scale))
        groups.setdefault(f"{point.case.runtime} {point.case.precision}", []).append(place)
    for position, (name, members) in enumerate(groups.items()):
        _draw_group(axes, position, name, members, left)
    axes.margins(0.14, 0.12)
    drawn = [point for members in groups.values() for point in members]
    if spans_widely([point.x.value for point in drawn], [point.x for point in drawn]):
        plain_log_ticks(axes, "x")
    if spans_widely([point.y.value for point in drawn], [point.y for point in drawn]):
        plain_log_ticks(axes, "y")
    axes.set_xlabel(metric_title(found.x, x_unit))
    axes.set_ylabel(metric_title(found.y, y_unit))
    legend_beside(axes)
    title = f"{found.plane.title}: {found.model}" if many else found.plane.title
    return picture(f"{found.plane.name}-{number}", title, _caption(found, are_named=are_named), figure)


def _draw_group(axes: Axes, position: int, name: str, members: Sequence[PlanePoint], left: Sequence[str]) -> None:
    """The points of one runtime and precision, each named by the factors in `left`; names of neighbouring groups stand
    above and below."""
    colour, marker = pick(position)
    for index, point in enumerate(members):
        x, y = point.x.value, point.y.value
        drawn: list[Artist] = axes.errorbar(
            x,
            y,
            xerr=_bars(point.x),
            yerr=_bars(point.y),
            fmt=marker,
            color=colour,
            label=name if index == 0 else None,
            markersize=5,
            elinewidth=1,
            markeredgecolor="white",
            markeredgewidth=0.6,
        ).get_children()
        if point.is_on_front:
            drawn += axes.plot(x, y, "o", markersize=10, fillstyle="none", color=BLACK, markeredgewidth=0.8)
        if left:
            drawn.append(
                axes.annotate(
                    case_text(point.case, left),
                    (x, y),
                    xytext=(5, 4 if position % 2 == 0 else -11),
                    textcoords="offset points",
                    fontsize=7.5,
                    color=colour,
                )
            )
        mark_cases(drawn, point.cases)


def _caption(found: PlaneFinding, *, are_named: bool) -> str:
    side = "left" if found.x.better == "lower" else "right"
    end = "top" if found.y.better == "higher" else "bottom"
    parts = [
        f"Cases of {found.model}; points at the {end} {side} are better.",
        "Rings: no other case beats this one, by its means. Bars: 95 % intervals over repetitions.",
    ]
    accuracies = [point.accuracy for point in found.points if point.accuracy is not None]
    if accuracies:
        parts.append(f"Bars of accuracies: 95 % intervals over {unit_of(accuracies[0])}s.")
    if any(point.is_open for point in found.points):
        parts.append("A case has a point for each accuracy, where these differ, and then no ring.")
    if not are_named:
        parts.append(f"tables/fronts.csv names all {len(found.points)} points.")
    return " ".join(parts)


def _bars(estimate: Estimate) -> list[list[float]] | None:
    if estimate.lower is None or estimate.upper is None:
        return None
    return [[max(estimate.value - estimate.lower, 0.0)], [max(estimate.upper - estimate.value, 0.0)]]
