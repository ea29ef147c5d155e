# SPDX-License-Identifier: Apache-2.0
"""The forest plot of a contrast: one row a candidate, one panel a criterion, every interval against its threshold.

Without criteria the panels are the headline metrics, against no effect. Colour and shape both tell the verdict.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pybench.analysis import Analysis
from pybench.analysis.findings.contrasts import ContrastFinding
from pybench.analysis.findings.verdicts import CaseVerdict, Verdict
from pybench.analysis.statistics.estimate import Estimate
from pybench.case import catalogue_of
from pybench.case.contrasts import Criterion
from pybench.case.pairing import Pair
from pybench.report.canvas import (
    BLUE,
    GREY,
    VERMILION,
    WIDTH_INCH,
    Drawing,
    Picture,
    label_rows,
    log_scale,
    mark_cases,
    picture,
    plain_log_ticks,
)
from pybench.report.labels import bound_text, case_text, comparison_label, criterion_label, pair_texts
from pybench.report.rows import HEIGHT_INCH, NAMED_ROWS, draw_estimates, number_rows
from pybench.report.sections.findings.contrast_tables import context_factors, subjects

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LOOKS = {
    Verdict.ACCEPTED: (BLUE, "o"),
    Verdict.REJECTED: (VERMILION, "X"),
    Verdict.UNDECIDED: (GREY, "D"),
    None: (BLUE, "o"),
}
_SHADE = "#f1f6fa"  # where a threshold is kept
_PANELS_IN_A_ROW = 2  # titles of three would run into each other beside long labels


@dataclass(frozen=True, slots=True)
class _Mark:
    """One interval in one panel; `why_none` stands there when it has none."""

    estimate: Estimate | None
    verdict: Verdict | None
    why_none: str | None
    pair: Pair


@dataclass(frozen=True, slots=True)
class _ForestPanel:
    """One number for every row. `criterion` draws its threshold; ratios are logarithmic around 1, differences linear
    around 0."""

    title: str
    ratio: bool
    criterion: Criterion | None
    marks: tuple[_Mark | None, ...]

    @property
    def is_absolute(self) -> bool:
        """Whether it shows the cases' own numbers, for which no value means no effect."""
        return self.criterion is not None and self.criterion.kind == "absolute"


def draw_forests(analysis: Analysis) -> list[Drawing]:
    """One figure a contrast that has anything to show."""
    shown: list[Drawing] = []
    for number, (contrast, verdicts) in enumerate(zip(analysis.contrasts, analysis.verdicts, strict=True), start=1):
        measured = {row: verdict for row, verdict in enumerate(verdicts, start=1) if verdict.is_measured}
        panels = _panels(contrast, [*measured.values()])
        if any(mark and mark.estimate for panel in panels for mark in panel.marks):
            shown.append(partial(_draw, number, contrast, measured, panels))
    return shown


def _panels(contrast: ContrastFinding, verdicts: Sequence[CaseVerdict]) -> list[_ForestPanel]:
    if contrast.contrast.accept:
        return [_criterion_panel(criterion, verdicts) for criterion in contrast.contrast.accept]
    by_case = {pair.pair.case.id: pair for pair in contrast.pairs}
    headlines = (one.subject.headline for one in verdicts)
    names = dict.fromkeys(name for name in headlines if name is not None)
    metrics = catalogue_of(one.subject.case for one in verdicts).metrics
    panels = []
    for name in names:
        marks: list[_Mark | None] = []
        for verdict in verdicts:
            found = by_case[verdict.subject.case.id].effects.get(name)
            if verdict.subject.headline != name or found is None:
                marks.append(None)
            else:
                estimate = None if found.effect is None else found.effect.estimate
                marks.append(_Mark(estimate, None, found.why_none, verdict.subject))
        metric = metrics[name]
        ratio = metric.scale == "ratio"
        label = comparison_label(metric, "ratio" if ratio else "difference", inverse=False)
        panels.append(_ForestPanel(label, ratio, None, tuple(marks)))
    return panels


def _criterion_panel(criterion: Criterion, verdicts: Sequence[CaseVerdict]) -> _ForestPanel:
    marks: list[_Mark | None] = []
    for verdict in verdicts:
        found = [one for one in verdict.judgements if one.criterion == criterion]
        pair = verdict.subject
        marks.append(_Mark(found[0].estimate, found[0].verdict, found[0].why, pair) if found else None)
    return _ForestPanel(criterion_label(criterion), criterion.kind == "ratio", criterion, tuple(marks))


def _draw(
    number: int, contrast: ContrastFinding, verdicts: Mapping[int, CaseVerdict], panels: Sequence[_ForestPanel]
) -> Picture:
    """`verdicts`: by the numbers of their rows in the table of verdicts."""
    import matplotlib.pyplot as plt

    is_named = len(verdicts) <= NAMED_ROWS
    height = 1.05 + 0.27 * len(verdicts) if is_named else HEIGHT_INCH
    columns = min(len(panels), _PANELS_IN_A_ROW)
    lines = math.ceil(len(panels) / columns)
    figure, grid = plt.subplots(lines, columns, figsize=(WIDTH_INCH, lines * height), squeeze=False, sharey=True)
    rows = range(len(verdicts)) if is_named else [*verdicts]
    for axes, panel in zip(grid.flat, panels, strict=False):
        (_draw_marks if is_named else _draw_many)(axes, dict(zip(rows, panel.marks, strict=True)))
        _draw_panel(axes, panel)
    for first in grid[:, 0]:
        if is_named:
            context = context_factors(contrast, subjects(verdicts.values()))
            label_rows(first, [_row_label(verdict, contrast, context) for verdict in verdicts.values()])
        else:
            number_rows(first, max(verdicts))
    for axes in grid[:, 1:].flat:
        axes.tick_params(axis="y", length=0, labelleft=False)
        axes.grid(visible=False, axis="y")
    for axes in grid.flat[len(panels) :]:
        axes.remove()
    judged = (
        "The dashed line is the threshold; values in the shaded area satisfy it. "
        "Circles are accepted, crosses rejected, diamonds undecided"
    )
    reading = judged if contrast.contrast.accept else "The line marks no effect"
    subject = next(iter(verdicts.values())).subject
    baseline = case_text(subject.baseline, contrast.contrast.baseline)
    caption = f"Each candidate compared with its baseline ({baseline}), with 95 % intervals. {reading}."
    if not is_named:
        caption += f" Rows are the candidates in the order of {_table_name(number, contrast)}."
    return picture(f"forest-{number}", contrast.contrast.title(), caption, figure)


def _table_name(number: int, contrast: ContrastFinding) -> str:
    return f"tables/verdicts-{number}.csv" if contrast.contrast.accept else f"tables/effects-{number}.csv"


def _row_label(verdict: CaseVerdict, contrast: ContrastFinding, context: Sequence[str]) -> str:
    """One line: an SVG viewer with another font moves the lines of a text against each other."""
    candidate, _, where = pair_texts(verdict.subject, tuple(contrast.contrast.baseline), context)
    return ", ".join(part for part in (candidate, where) if part)


def _draw_panel(axes: Axes, panel: _ForestPanel) -> None:
    neutral = None if panel.is_absolute else 1.0 if panel.ratio else 0.0
    numbers = [bound for mark in panel.marks if mark and mark.estimate for bound in _extent(mark.estimate)]
    numbers += [*([] if neutral is None else [neutral]), *([panel.criterion.threshold] if panel.criterion else [])]
    _set_limits(axes, numbers, ratio=panel.ratio)
    if neutral is not None:
        axes.axvline(neutral, color="#555555", linewidth=0.8, zorder=1)
    if panel.criterion is None:
        axes.set_xlabel(panel.title)
    else:
        _draw_threshold(axes, panel.criterion)
        axes.set_title(panel.title)
        axes.set_xlabel(f"required {bound_text(panel.criterion)}")


def _draw_marks(axes: Axes, marks: Mapping[int, _Mark | None]) -> None:
    for row, mark in marks.items():
        if mark is not None:
            _draw_mark(axes, row, mark)


def _draw_many(axes: Axes, marks: Mapping[int, _Mark | None]) -> None:
    """Marks of one verdict together. A row without a value stays empty."""
    for verdict, look in _LOOKS.items():
        found = {row: mark.estimate for row, mark in marks.items() if mark is not None and mark.verdict is verdict}
        estimates = {row: estimate for row, estimate in found.items() if estimate is not None}
        if estimates:
            draw_estimates(axes, estimates, *look)


def _draw_mark(axes: Axes, row: int, mark: _Mark) -> None:
    """A point with its interval, or the words where there is neither (placed by the panel's width, whatever its
    limits)."""
    estimate, cases = mark.estimate, (mark.pair.case, mark.pair.baseline)
    if estimate is None:
        words = axes.text(
            0.5,
            row,
            "no value",
            transform=axes.get_yaxis_transform(),
            ha="center",
            va="center",
            fontsize=7.5,
            color=GREY,
            style="italic",
        )
        mark_cases([words], cases)
        return
    colour, shape = _LOOKS[mark.verdict]
    if estimate.lower is not None and estimate.upper is not None:
        ends = [estimate.lower, estimate.upper]
        mark_cases(axes.plot(ends, [row, row], color=colour, linewidth=1.8, solid_capstyle="butt"), cases)
    point = axes.plot(
        [estimate.value], [row], shape, color=colour, markersize=5.5, markeredgecolor="white", markeredgewidth=0.6
    )
    mark_cases(point, cases)


def _draw_threshold(axes: Axes, criterion: Criterion) -> None:
    """A dashed line, the side that keeps it shaded up to the panel's edge."""
    low, high = axes.get_xlim()
    kept = (criterion.threshold, high) if criterion.sense == "min" else (low, criterion.threshold)
    axes.axvspan(*kept, color=_SHADE, zorder=0, linewidth=0)
    axes.axvline(criterion.threshold, color="#333333", linewidth=0.9, linestyle=(0, (4, 2)), zorder=1)
    axes.set_xlim(low, high)


def _set_limits(axes: Axes, numbers: Sequence[float], *, ratio: bool) -> None:
    """A margin of 8 % on both sides; ratios on a logarithmic axis."""
    low, high = min(numbers), max(numbers)
    if ratio:
        margin = max((high / low) ** 0.08, 1.02)
        log_scale(axes)
        axes.set_xlim(low / margin, high * margin)
        plain_ratio_ticks(axes)
    else:
        margin = 0.08 * (high - low) or 0.5
        axes.set_xlim(low - margin, high + margin)


def plain_ratio_ticks(axes: Axes) -> None:
    """Ratios near 1 get evenly spaced ticks, wide ranges those of a logarithmic axis."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

    low, high = axes.get_xlim()
    if high / low > 4:
        plain_log_ticks(axes)
        return
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.4g}"))


def _extent(estimate: Estimate) -> list[float]:
    return [bound for bound in (estimate.lower, estimate.value, estimate.upper) if bound is not None]
