# SPDX-License-Identifier: Apache-2.0
"""The headline metric of each case, one figure a workload: every repetition next to the mean."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from pybench.analysis import Analysis
from pybench.analysis.findings.cases import CaseFinding, MetricFinding
from pybench.analysis.statistics.estimate import Estimate
from pybench.case import Case, catalogue_of
from pybench.catalogue.workloads import Workload
from pybench.report.canvas import (
    GREY,
    WIDTH_INCH,
    Drawing,
    Picture,
    label_rows,
    mark_cases,
    pick,
    picture,
    plain_log_ticks,
    spans_widely,
)
from pybench.report.labels import case_text, naming_factors
from pybench.report.numbers import DisplayUnit, display_unit
from pybench.report.rows import HEIGHT_INCH, NAMED_ROWS, draw_bars, draw_estimates, number_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D


def draw_headlines(analysis: Analysis) -> list[Drawing]:
    """For each workload its headline metric by case, every repetition beside the mean."""
    shown: list[Drawing] = []
    for row in catalogue_of(case.case for case in analysis.cases).workloads.values():
        timed = [case for case in analysis.cases if case.case.workload == row.name and row.timed]
        for name in dict.fromkeys(case.case.headline for case in timed):
            findings = {
                number: (case.case, case.metrics[name])
                for number, case in enumerate(timed, start=1)
                if name is not None and case.case.headline == name and _has_estimate(case, name)
            }
            if findings:
                shown.append(partial(_draw_cases, row, str(name), findings))
    return shown


def _draw_cases(workload: Workload, name: str, cases: Mapping[int, tuple[Case, MetricFinding]]) -> Picture:
    """`cases`: by the numbers of their rows in the workload's table, each with what is drawn of it."""
    import matplotlib.pyplot as plt

    findings = {number: finding for number, (_, finding) in cases.items()}
    drawn = [case for case, _ in cases.values()]
    every = [value for finding in findings.values() for value in finding.points.values()]
    metric = next(iter(findings.values())).metric
    unit, is_named = display_unit(metric.unit, every), len(cases) <= NAMED_ROWS
    height = 0.75 + 0.27 * len(cases) if is_named else HEIGHT_INCH
    figure, axes = plt.subplots(figsize=(WIDTH_INCH, height))
    if is_named:
        for row, (case, finding) in enumerate(cases.values()):
            mark_cases(_draw_points(axes, row, finding, unit), [case])
        factors = naming_factors(drawn)
        label_rows(axes, [case_text(case, factors) or workload.name for case in drawn])
    else:
        _draw_many(axes, findings, unit)
        number_rows(axes, max(findings))
    if spans_widely(every, [finding.estimate for finding in findings.values() if finding.estimate is not None]):
        plain_log_ticks(axes)
    else:
        axes.set_xlim(left=0)
    axes.set_xlabel(metric.label + ("" if unit.name in ("1", "1/s") else f" ({unit.name})"))
    scale = " The axis is logarithmic." if axes.get_xscale() == "log" else ""
    grey = "every repetition" if is_named else "from the least repetition to the largest"
    parts = f"{grey} (grey), their mean and its 95 % interval (colour)"
    rows = "" if is_named else f" Rows are those of tables/cases-{workload.name}.csv."
    return picture(
        f"{workload.name}-{name.rsplit('_', 1)[0]}",
        f"{workload.label}: {metric.label.lower()}",
        f"{metric.label} of each case: {parts}.{rows}{scale}",
        figure,
    )


def _draw_many(axes: Axes, findings: Mapping[int, MetricFinding], unit: DisplayUnit) -> None:
    """A grey line from the least to the largest repetition in place of their points."""
    points = {row: [value / unit.scale for value in finding.points.values()] for row, finding in findings.items()}
    draw_bars(axes, [(row, min(values), max(values)) for row, values in points.items() if values], color=GREY)
    estimates = {row: one.estimate.scaled(1 / unit.scale) for row, one in findings.items() if one.estimate is not None}
    draw_estimates(axes, estimates, *pick(0))


def _draw_points(axes: Axes, row: int, finding: MetricFinding, unit: DisplayUnit) -> list[Line2D]:
    points = [value / unit.scale for value in finding.points.values()]
    # Repetitions are spread over the row in the order of their blocks: drift shows as a slope, and nothing is random.
    spread = [
        row - 0.24 + 0.48 * index / max(len(points) - 1, 1) if len(points) > 1 else row for index in range(len(points))
    ]
    drawn = axes.plot(
        points, spread, linestyle="none", marker="o", markersize=2.6, markeredgewidth=0, color=GREY, alpha=0.75
    )
    if finding.estimate is not None:
        drawn += _draw_interval(axes, finding.estimate.scaled(1 / unit.scale), row, *pick(0))
    return drawn


def _draw_interval(axes: Axes, estimate: Estimate, row: float, colour: str, marker: str) -> list[Line2D]:
    drawn = []
    if estimate.lower is not None and estimate.upper is not None:
        ends = [estimate.lower, estimate.upper]
        drawn += axes.plot(ends, [row, row], color=colour, linewidth=1.6, solid_capstyle="butt")
    return drawn + axes.plot(
        [estimate.value],
        [row],
        marker=marker,
        color=colour,
        markersize=4.6,
        markeredgecolor="white",
        markeredgewidth=0.6,
    )


def _has_estimate(case: CaseFinding, name: str) -> bool:
    return name in case.metrics and case.metrics[name].estimate is not None
