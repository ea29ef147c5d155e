# SPDX-License-Identifier: Apache-2.0
"""Runs by starting time: drift shows as a slope or a step."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from pybench.analysis import Analysis
from pybench.analysis.findings.cases import CaseFinding, MetricFinding
from pybench.dataset import Dataset
from pybench.report.canvas import WIDTH_INCH, Drawing, Picture, pick, picture


def draw_order(dataset: Dataset, analysis: Analysis) -> list[Drawing]:
    """Each run's headline over its case's mean, in the order in which runs started."""
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
    return [partial(_draw, sorted(series))]


def _draw(series: Sequence[tuple[datetime, int, float]]) -> Picture:
    """`series`: when each run started, its block, and its deviation in percent, in order of time."""
    import matplotlib.pyplot as plt

    begin = series[0][0]
    minutes = [(when - begin).total_seconds() / 60 for when, _, _ in series]
    figure, axes = plt.subplots(figsize=(WIDTH_INCH, 2.3))
    axes.axhline(0, color="#555555", linewidth=0.8)
    for parity, (colour, marker) in enumerate((pick(0), pick(1))):
        chosen = [index for index, (_, block, _) in enumerate(series) if block % 2 == parity]
        axes.plot(
            [minutes[index] for index in chosen],
            [series[index][2] for index in chosen],
            linestyle="none",
            marker=marker,
            markersize=3,
            markeredgewidth=0,
            color=colour,
            alpha=0.8,
        )
    axes.set_xlabel("Minutes since the first run")
    axes.set_ylabel("Deviation from the case's mean (%)")
    caption = (
        "Deviation of every timed run from the mean of its case, by starting time. Colour and shape alternate from "
        "block to block. A slope or a step is drift; comparisons within blocks remove drift between blocks."
    )
    return picture("order", "Runs by starting time", caption, figure)


def _timed_headline(case: CaseFinding) -> MetricFinding | None:
    name = case.case.headline
    return case.metrics.get(name) if name is not None and case.case.workload_row.timed else None
