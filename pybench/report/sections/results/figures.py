# SPDX-License-Identifier: Apache-2.0
"""The figures of a report: which there are, and what each shows. Figures of comparisons are in `forest.py`.

Every mean stands with its interval and with the repetitions behind it. A figure without data is not drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from pybench.analysis import Analysis
from pybench.analysis.cases import CaseFinding, MetricFinding
from pybench.analysis.estimate import Estimate
from pybench.case import catalogue_of
from pybench.catalogue.workloads import Workload
from pybench.dataset import Dataset
from pybench.report.canvas import GREY, WIDTH_INCH, Picture, label_rows, pick, picture, plain_log_ticks, style
from pybench.report.sections.findings.forest import draw_forests
from pybench.report.labels import case_text, naming_factors, varying_factors
from pybench.report.numbers import DisplayUnit, display_unit
from pybench.report.sections.findings.paths import draw_paths

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LOG_FROM = 5.0  # a range of values wider than this factor gets a logarithmic axis


def draw_figures(dataset: Dataset, analysis: Analysis) -> list[Picture]:
    """Every figure that has data, in the order of the page."""
    makers: tuple[Callable[[], list[Picture]], ...] = (
        lambda: draw_paths(analysis),
        lambda: draw_forests(analysis),
        lambda: _draw_plane(analysis),
        lambda: _draw_headlines(analysis),
        lambda: _draw_order(dataset, analysis),
    )
    with style():
        return [shown for make in makers for shown in make()]


# --- one value a case ------------------------------------------------------------------------------------------------


def _draw_headlines(analysis: Analysis) -> list[Picture]:
    """For each workload its headline metric by case, every repetition beside the mean."""
    shown = []
    for row in catalogue_of(case.case for case in analysis.cases).workloads.values():
        cases = [
            case
            for case in analysis.cases
            if case.case.workload == row.name and row.timed and _estimate(case, row.headline) is not None
        ]
        if cases:
            shown.append(_draw_cases(row, cases))
    return shown


def _draw_cases(workload: Workload, cases: Sequence[CaseFinding]) -> Picture:
    import matplotlib.pyplot as plt

    factors = naming_factors([case.case for case in cases])
    name = str(workload.headline)
    findings = [case.metrics[name] for case in cases]
    label = findings[0].metric.label
    unit = display_unit(findings[0].metric.unit, [value for finding in findings for value in finding.points.values()])
    figure, axes = plt.subplots(figsize=(WIDTH_INCH, 0.75 + 0.27 * len(cases)))
    for row, finding in enumerate(findings):
        _draw_points(axes, row, finding, unit)
    label_rows(axes, [case_text(case.case, factors) or workload.name for case in cases])
    values = [value / unit.scale for finding in findings for value in finding.points.values()]
    if min(values) > 0 and max(values) / min(values) > _LOG_FROM:
        plain_log_ticks(axes)
    else:
        axes.set_xlim(left=0)
    axes.set_xlabel(label + ("" if unit.name in ("1", "1/s") else f" ({unit.name})"))
    scale = "The axis is logarithmic." if axes.get_xscale() == "log" else ""
    parts = "every repetition (grey), their mean and its 95 % interval (colour)"
    caption = f"{label} of each case: {parts}. {scale}"
    return picture(
        f"{workload.name}-{name.rsplit('_', 1)[0]}",
        f"{workload.label}: {label.lower()}",
        caption.strip(),
        figure,
    )


def _draw_points(axes: Axes, row: int, finding: MetricFinding, unit: DisplayUnit) -> None:
    points = [value / unit.scale for value in finding.points.values()]
    # Repetitions are spread over the row in the order of their blocks: drift shows as a slope, and nothing is random.
    spread = [
        row - 0.24 + 0.48 * index / max(len(points) - 1, 1) if len(points) > 1 else row for index in range(len(points))
    ]
    axes.plot(points, spread, linestyle="none", marker="o", markersize=2.6, markeredgewidth=0, color=GREY, alpha=0.75)
    if finding.estimate is not None:
        _draw_interval(axes, finding.estimate.scaled(1 / unit.scale), row, *pick(0))


def _draw_interval(axes: Axes, estimate: Estimate, row: float, colour: str, marker: str) -> None:
    if estimate.lower is not None and estimate.upper is not None:
        axes.plot([estimate.lower, estimate.upper], [row, row], color=colour, linewidth=1.6, solid_capstyle="butt")
    axes.plot(
        [estimate.value],
        [row],
        marker=marker,
        color=colour,
        markersize=4.6,
        markeredgecolor="white",
        markeredgewidth=0.6,
    )


# --- speed against accuracy
# --------------------------------------------------------------------------------------------


def _draw_plane(analysis: Analysis) -> list[Picture]:
    """Accuracy over latency, one panel a model; a point joins an infer case with the accuracy of its model, runtime and
    precision."""
    accuracies = {
        _identity(case): case
        for case in analysis.cases
        if case.case.workload_row.judges is not None and _estimate(case, "top1_percent")
    }
    speeds = [
        case
        for case in analysis.cases
        if case.case.catalogue.judge_of(case.case.workload_row) is not None and _estimate(case, "latency_mean_ms")
    ]
    joined = [(case, accuracies[_identity(case)]) for case in speeds if _identity(case) in accuracies]
    models = dict.fromkeys(case.case.model for case, _ in joined)
    return [
        _draw_model_plane(
            number, str(model), [pair for pair in joined if pair[0].case.model == model], many=len(models) > 1
        )
        for number, model in enumerate(models, start=1)
    ]


_Joined = Sequence[tuple[CaseFinding, CaseFinding]]  # speed, accuracy


def _draw_model_plane(number: int, model: str, joined: _Joined, *, many: bool) -> Picture:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(WIDTH_INCH * 0.85, 3.0))
    varying = varying_factors([speed.case for speed, _ in joined])
    left = [name for name in varying if name not in ("runtime", "precision", "model")]
    groups: dict[tuple[str, ...], list[tuple[CaseFinding, CaseFinding]]] = {}
    for pair in joined:
        groups.setdefault((str(pair[0].case.runtime), str(pair[0].case.precision)), []).append(pair)
    for position, (group, members) in enumerate(groups.items()):
        _draw_group(axes, position, " ".join(group), members, left)
    values = [speed.metrics["latency_mean_ms"].estimate for speed, _ in joined]
    numbers = [value.value for value in values if value is not None]
    axes.margins(0.14, 0.12)
    if max(numbers) / min(numbers) > _LOG_FROM:
        plain_log_ticks(axes)
    axes.set_xlabel("Mean latency of an iteration (ms)")
    axes.set_ylabel("Top-1 (%)")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    title = f"Accuracy against latency: {model}" if many else "Accuracy against latency"
    caption = (
        f"Top-1 of {model} over mean latency; points at the top left are better. "
        "Horizontal bars: 95 % intervals over repetitions. Vertical bars: 95 % intervals over images."
    )
    return picture(f"plane-{number}", title, caption, figure)


def _draw_group(axes: Axes, position: int, name: str, members: _Joined, left: Sequence[str]) -> None:
    """The points of one runtime and precision, each named by the factors in `left`; names of neighbouring groups stand
    above and below."""
    colour, marker = pick(position)
    for index, (speed, accuracy) in enumerate(members):
        latency, top1 = speed.metrics["latency_mean_ms"].estimate, accuracy.metrics["top1_percent"].estimate
        if latency is None or top1 is None:
            continue
        axes.errorbar(
            latency.value, top1.value, xerr=_bars(latency), yerr=_bars(top1), fmt=marker, color=colour,
            label=name if index == 0 else None, markersize=5, elinewidth=1, markeredgecolor="white",
            markeredgewidth=0.6,
        )  # fmt: skip
        if left:
            axes.annotate(
                case_text(speed.case, left), (latency.value, top1.value), xytext=(5, 4 if position % 2 == 0 else -11),
                textcoords="offset points", fontsize=7.5, color=colour,
            )  # fmt: skip


def _bars(estimate: Estimate) -> list[list[float]] | None:
    if estimate.lower is None or estimate.upper is None:
        return None
    return [[max(estimate.value - estimate.lower, 0.0)], [max(estimate.upper - estimate.value, 0.0)]]


def _identity(case: CaseFinding) -> tuple[object, ...]:
    one = case.case
    quantised = (one.calibration, one.calibration_images) if one.precision == "int8" else ()
    return (one.model, one.checkpoint, one.runtime, one.precision, *quantised)


# --- drift
# -------------------------------------------------------------------------------------------------------------


def _draw_order(dataset: Dataset, analysis: Analysis) -> list[Picture]:
    """Each run's headline over its case's mean, in the order in which runs started."""
    import matplotlib.pyplot as plt

    started = {
        (case_id, block): datetime.fromisoformat(text)
        for case_id, block, text in dataset.runs.select("case_id", "block", "started_utc").iter_rows()
        if text is not None
    }
    series = [
        (started[case.case.id, block], block, 100 * (value / finding.estimate.value - 1))
        for case in analysis.cases
        for finding in [_timed_headline(case)]
        if finding is not None and finding.estimate is not None and len(finding.points) > 1 and finding.estimate.value
        for block, value in finding.points.items()
        if (case.case.id, block) in started
    ]
    if len(series) < 2:
        return []
    series.sort()
    begin = series[0][0]
    minutes = [(when - begin).total_seconds() / 60 for when, _, _ in series]
    figure, axes = plt.subplots(figsize=(WIDTH_INCH, 2.3))
    axes.axhline(0, color="#555555", linewidth=0.8)
    for parity, (colour, marker) in enumerate((pick(0), pick(1))):
        chosen = [index for index, (_, block, _) in enumerate(series) if block % 2 == parity]
        axes.plot(
            [minutes[index] for index in chosen], [series[index][2] for index in chosen], linestyle="none",
            marker=marker, markersize=3, markeredgewidth=0, color=colour, alpha=0.8,
        )  # fmt: skip
    axes.set_xlabel("Minutes since the first run")
    axes.set_ylabel("Deviation from the case's mean (%)")
    caption = (
        "Deviation of every timed run from the mean of its case, by starting time. Colour and shape alternate from "
        "block to block. A slope or a step is drift; comparisons within blocks remove drift between blocks."
    )
    return [picture("order", "Runs by starting time", caption, figure)]


def _timed_headline(case: CaseFinding) -> MetricFinding | None:
    row = case.case.workload_row
    return case.metrics.get(row.headline) if row.headline is not None and row.timed else None


def _estimate(case: CaseFinding, name: str | None) -> Estimate | None:
    finding = None if name is None else case.metrics.get(name)
    return None if finding is None else finding.estimate
