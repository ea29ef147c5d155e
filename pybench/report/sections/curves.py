# SPDX-License-Identifier: Apache-2.0
"""Curves: a metric or a ratio over a numeric factor, one line for each group of cases, and where lines cross."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pybench.analysis.findings.crossings import Crossing, CurveLine
from pybench.analysis.findings.curves import Curve
from pybench.analysis.statistics.estimate import Estimate
from pybench.catalogue.metrics import Metric
from pybench.report.canvas import GREY, WIDTH_INCH, Picture, legend_beside, picture, plain_log_ticks, spans_widely
from pybench.report.curves import Line, draw_line
from pybench.report.labels import case_text, comparison_label, metric_title, naming_factors
from pybench.report.numbers import DisplayUnit, display_unit, format_estimate
from pybench.report.sections.elements import Element, Material, Paragraph, Pictures, Section, Sentences, Tables
from pybench.report.sentences import Sentence
from pybench.report.tables import Cell, Column, Table, estimate_cell, estimate_fields, number_cell, text_cell

_LEAD = (
    "Cases of one line are equal in everything but the factor on the horizontal axis. Bars are 95 % intervals over "
    "repetitions; a line between two points is a guide for the eye."
)
_NOTES = (
    "Between two neighbouring values the ratio or difference of the lines is taken as straight.",
    "The interval contains the places at which the 95 % interval of that ratio or difference includes no effect.",
    "It ends at the first or last measured value if the lines are not shown to differ there.",
    "Only blocks are used in which the four cases around a place ran on one board with one software.",
)
_MOST = 6  # figures of one report, half a second each; every curve is in the table


def build(material: Material) -> list[Element]:
    curves = material.analysis.curves
    if not curves:
        return []
    crossings = [_sentence(curve, crossing) for curve in curves for crossing in curve.crossings]
    return [
        Paragraph(_LEAD, "lead"),
        *([Sentences(crossings)] if crossings else []),
        Pictures(lambda: [partial(_draw, number, curve) for number, curve in enumerate(curves[:_MOST], start=1)]),
        *([Tables(lambda: [crossings_table(curves)], is_printed=True)] if crossings else []),
        Tables(lambda: [curves_table(curves)]),
    ]


# --- tables ----------------------------------------------------------------------------------------------------------


def crossings_table(curves: Sequence[Curve]) -> Table:
    """One row for each place where two lines cross."""
    columns = (
        Column("Curve", ("metric", "workload")),
        Column("Factor", ("factor",)),
        Column("First line", ("first",)),
        Column("Second line", ("second",)),
        Column("They cross at", ("at", "at_lower", "at_upper"), numeric=True),
        Column("Differ on both sides", ("is_shown",)),
        Column("Blocks", ("blocks", "blocks_excluded"), numeric=True),
    )
    rows = [
        (
            Cell(_title(curve), csv=(curve.metric.name, curve.workload)),
            text_cell(curve.factor),
            *(text_cell(_name(line, told), cases=_ids(line)) for line in (crossing.first, crossing.second)),
            _place_cell(crossing),
            text_cell("yes" if crossing.is_shown else "not shown"),
            _blocks_cell(crossing),
        )
        for curve, told in _with_told(curves)
        for crossing in curve.crossings
    ]
    return Table("crossings", "Where lines cross", columns, tuple(rows), _NOTES)


def curves_table(curves: Sequence[Curve]) -> Table:
    """One row for each point, in stored units."""
    columns = (
        Column("Curve", ("metric", "workload")),
        Column("Line", ("line",)),
        Column("Factor", ("factor",)),
        Column("At", ("at",), numeric=True),
        Column("Value", estimate_fields("value"), numeric=True),
        Column("Case", ("case_id",)),
    )
    rows = [
        (
            Cell(_title(curve), csv=(curve.metric.name, curve.workload)),
            text_cell(_name(line, told)),
            text_cell(curve.factor),
            number_cell(point.at),
            estimate_cell(point.estimate),
            Cell(point.case.id[:12], csv=(point.case.id,)),
        )
        for curve, told in _with_told(curves)
        for line in curve.lines
        for point in line.points
    ]
    return Table("curves", "Points of all curves", columns, tuple(rows))


def _ids(line: CurveLine) -> tuple[str, ...]:
    return tuple(point.case.id for point in line.points)


def _blocks_cell(crossing: Crossing) -> Cell:
    excluded = crossing.blocks_excluded
    note = f"{excluded} blocks excluded, because software differs" if excluded else None
    return Cell(
        str(crossing.blocks), number=float(crossing.blocks), note=note, csv=(str(crossing.blocks), str(excluded))
    )


def _place_cell(crossing: Crossing) -> Cell:
    bounds = (crossing.lower, crossing.upper)
    text, interval = format_estimate(_estimate(crossing))
    return Cell(
        text, interval, crossing.at, csv=tuple("" if one is None else repr(one) for one in (crossing.at, *bounds))
    )


def _estimate(crossing: Crossing) -> Estimate:
    return Estimate(crossing.at, crossing.lower, crossing.upper, 0, "")


def _sentence(curve: Curve, crossing: Crossing) -> Sentence:
    value, interval = format_estimate(_estimate(crossing))
    told = _told(curve)
    lines = f"{_name(crossing.first, told)} and {_name(crossing.second, told)}"
    doubt = "" if crossing.is_shown else "; the blocks do not show on both sides of it that the lines differ"
    place = f"{value} {interval}" if interval else value
    return Sentence(_title(curve), f"{lines} cross at {_words(curve.factor)} {place}{doubt}.", "neutral")


# --- words -----------------------------------------------------------------------------------------------------------


def _title(curve: Curve) -> str:
    """`Inference: mean latency`, or `Inference: speed-up, against FP32`."""
    label = curve.lines[0].case.workload_row.label
    if curve.contrast is None:
        return f"{label}: {_lower(curve.metric.label)}"
    return f"{label}: {_lower(_ratio_label(curve))}, {curve.contrast.title()}"


def _lower(text: str) -> str:
    return text[0].lower() + text[1:]


def _ratio_label(curve: Curve) -> str:
    return comparison_label(curve.metric, "ratio", inverse=curve.inverse)


def _words(factor: str) -> str:
    return factor.replace("_", " ")


def _told(curve: Curve) -> list[str]:
    """The factors that tell a line from the others of its figure. They need every point: ask once for a curve."""
    cases = [point.case for other in curve.lines for point in other.points]
    changed = () if curve.contrast is None else tuple(curve.contrast.baseline)
    names = dict.fromkeys((*changed, *naming_factors(cases)))
    return [name for name in names if name not in (curve.factor, "workload")]


def _with_told(curves: Sequence[Curve]) -> list[tuple[Curve, list[str]]]:
    return [(curve, _told(curve)) for curve in curves]


def _name(line: CurveLine, told: Sequence[str]) -> str:
    return case_text(line.case, told) or line.case.workload


# --- figures ---------------------------------------------------------------------------------------------------------


def _draw(number: int, curve: Curve) -> Picture:
    import matplotlib.pyplot as plt

    unit, told = _unit(curve), _told(curve)
    figure, axes = plt.subplots(figsize=(WIDTH_INCH, 3.1))
    for position, line in enumerate(curve.lines):
        points = [(point.at, point.estimate.scaled(1 / unit.scale)) for point in line.points]
        draw_line(axes, position, Line(_name(line, told), points, cases=[point.case for point in line.points]))
    if curve.contrast is not None:
        axes.axhline(1, color=GREY, linewidth=0.8)
    for crossing in curve.crossings:
        axes.axvline(crossing.at, color=GREY, linewidth=0.8, linestyle=":")
    every = [point for line in curve.lines for point in line.points]
    if spans_widely([point.at for point in every]):
        plain_log_ticks(axes, "x")
    if spans_widely([point.estimate.value for point in every], [point.estimate for point in every]):
        plain_log_ticks(axes, "y")
    elif min(point.estimate.value for point in every) >= 0:
        axes.set_ylim(bottom=0)
    axes.set_xlabel(_words(curve.factor))
    axes.set_ylabel(metric_title(curve.metric, unit) if curve.contrast is None else _ratio_label(curve))
    legend_beside(axes)
    title = f"{_title(curve)} over {_words(curve.factor)}"
    return picture(f"curve-{number}", title, _caption(curve), figure)


def _caption(curve: Curve) -> str:
    parts = ["Means with 95 % intervals over repetitions."]
    if curve.contrast is not None:
        parts.append("At 1, case and baseline are equal.")
    if curve.crossings:
        parts.append("Dotted: where two lines cross.")
    return " ".join(parts)


def _unit(curve: Curve) -> DisplayUnit:
    if curve.contrast is not None:
        return DisplayUnit(1.0, "1")
    metric: Metric = curve.metric
    return display_unit(metric.unit, [point.estimate.value for line in curve.lines for point in line.points])


SECTION = Section("curves", "Curves", build)
