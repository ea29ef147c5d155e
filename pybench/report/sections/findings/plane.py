# SPDX-License-Identifier: Apache-2.0
"""Accuracy against latency, one figure a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pybench.analysis import Analysis
from pybench.analysis.findings.cases import CaseFinding
from pybench.analysis.statistics.estimate import Estimate
from pybench.analysis.units import unit_of
from pybench.case.pairing import is_judged, join_key
from pybench.report.canvas import WIDTH_INCH, Drawing, Picture, pick, picture, plain_log_ticks, spans_widely
from pybench.report.labels import case_text, metric_title, varying_factors
from pybench.report.numbers import DisplayUnit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LATENCY = "latency_mean_ms"
_NAMED_POINTS = 40  # of a figure; the names of more hide each other, and take most of its time


def draw_plane(analysis: Analysis) -> list[Drawing]:
    """Accuracy over latency, one panel a model; a point joins an infer case with an accuracy of the same answers."""
    joined = speeds_with_accuracies(analysis)
    models = dict.fromkeys(one.speed.case.model for one in joined)
    return [
        partial(
            _draw_model_plane,
            number,
            str(model),
            [one for one in joined if one.speed.case.model == model],
            many=len(models) > 1,
        )
        for number, model in enumerate(models, start=1)
    ]


@dataclass(frozen=True, slots=True)
class JoinedSpeed:
    """A case that has a latency, with the accuracies of the same answers: one where all of them agree."""

    speed: CaseFinding
    accuracies: tuple[CaseFinding, ...]

    @property
    def headline(self) -> str:
        """The metric of its accuracies."""
        return str(self.accuracies[0].case.headline)


def speeds_with_accuracies(analysis: Analysis) -> list[JoinedSpeed]:
    """Every infer case that has a latency and at least one accuracy of the same answers."""
    accuracies: dict[tuple[object, ...], dict[object, CaseFinding]] = {}
    for case in analysis.cases:
        if case.case.workload_row.judges is not None and (found := _estimate(case, case.case.headline)):
            different = accuracies.setdefault(join_key(case.case), {})
            different.setdefault((found.value, found.lower, found.upper), case)
    speeds = [case for case in analysis.cases if is_judged(case.case) and _estimate(case, LATENCY)]
    joined = [(case, accuracies.get(join_key(case.case), {})) for case in speeds]
    return [JoinedSpeed(case, tuple(different.values())) for case, different in joined if different]


def _draw_model_plane(number: int, model: str, joined: Sequence[JoinedSpeed], *, many: bool) -> Picture:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(WIDTH_INCH * 0.85, 3.0))
    varying = varying_factors([one.speed.case for one in joined])
    are_named = len(joined) <= _NAMED_POINTS
    left = [name for name in varying if name not in ("runtime", "precision", "model")] if are_named else []
    groups: dict[tuple[str, ...], list[JoinedSpeed]] = {}
    for one in joined:
        groups.setdefault((str(one.speed.case.runtime), str(one.speed.case.precision)), []).append(one)
    for position, (group, members) in enumerate(groups.items()):
        _draw_group(axes, position, " ".join(group), members, left)
    values = [one.speed.metrics[LATENCY].estimate for one in joined]
    numbers = [value.value for value in values if value is not None]
    axes.margins(0.14, 0.12)
    if spans_widely(numbers):
        plain_log_ticks(axes)
    axes.set_xlabel("Mean latency of an iteration (ms)")
    accuracy = joined[0].accuracies[0]
    metric = accuracy.metrics[joined[0].headline].metric
    axes.set_ylabel(metric_title(metric, DisplayUnit(1.0, metric.unit)))
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    title = f"Accuracy against latency: {model}" if many else "Accuracy against latency"
    best = "top" if metric.better == "higher" else "bottom"
    caption = (
        f"{metric.label} of {model} over mean latency; points at the {best} left are better. Horizontal bars: 95 % "
        f"intervals over repetitions. Vertical bars: 95 % intervals over {unit_of(accuracy.case)}s."
    )
    if any(len(one.accuracies) > 1 for one in joined):
        caption += " A case has a point for each accuracy, where these differ."
    caption += "" if are_named else f" tables/accuracy-{metric.name}.csv has all {len(joined)} points."
    return picture(f"plane-{number}", title, caption, figure)


def _draw_group(axes: Axes, position: int, name: str, members: Sequence[JoinedSpeed], left: Sequence[str]) -> None:
    """The points of one runtime and precision, each named by the factors in `left`; names of neighbouring groups stand
    above and below."""
    colour, marker = pick(position)
    points = [(one.speed, accuracy) for one in members for accuracy in one.accuracies]
    for index, (speed, accuracy) in enumerate(points):
        latency, score = _estimate(speed, LATENCY), _estimate(accuracy, accuracy.case.headline)
        if latency is None or score is None:
            continue
        axes.errorbar(
            latency.value,
            score.value,
            xerr=_bars(latency),
            yerr=_bars(score),
            fmt=marker,
            color=colour,
            label=name if index == 0 else None,
            markersize=5,
            elinewidth=1,
            markeredgecolor="white",
            markeredgewidth=0.6,
        )
        if left:
            axes.annotate(
                case_text(speed.case, left),
                (latency.value, score.value),
                xytext=(5, 4 if position % 2 == 0 else -11),
                textcoords="offset points",
                fontsize=7.5,
                color=colour,
            )


def _bars(estimate: Estimate) -> list[list[float]] | None:
    if estimate.lower is None or estimate.upper is None:
        return None
    return [[max(estimate.value - estimate.lower, 0.0)], [max(estimate.upper - estimate.value, 0.0)]]


def _estimate(case: CaseFinding, name: str | None) -> Estimate | None:
    finding = None if name is None else case.metrics.get(name)
    return None if finding is None else finding.estimate
