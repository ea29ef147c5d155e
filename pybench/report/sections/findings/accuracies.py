# SPDX-License-Identifier: Apache-2.0
"""Accuracy, size and latency of each model in one table: what a lower precision costs, and what it gives."""

from __future__ import annotations

from pybench.analysis import Analysis
from pybench.analysis.findings.cases import CaseFinding
from pybench.report.labels import case_text, metric_title, varying_factors
from pybench.report.numbers import DisplayUnit, display_unit
from pybench.report.sections.findings.plane import speeds_with_accuracy
from pybench.report.tables import Cell, Column, Table, estimate_cell, estimate_fields, text_cell

LATENCY, SIZE = "latency_mean_ms", "model_bytes"


def accuracy_tables(analysis: Analysis) -> list[Table]:
    """One table for each metric of accuracy; none where no case of infer has an accuracy.

    A row joins a case of infer with the accuracy case of the same model, runtime and precision.
    """
    joined = speeds_with_accuracy(analysis)
    names = dict.fromkeys(str(accuracy.case.headline) for _, accuracy in joined)
    return [_table(name, [pair for pair in joined if pair[1].case.headline == name]) for name in names]


def _table(name: str, joined: list[tuple[CaseFinding, CaseFinding]]) -> Table:
    metric = joined[0][1].metrics[name].metric
    speeds = [speed for speed, _ in joined]
    shown = ("model", *(factor for factor in varying_factors([speed.case for speed in speeds]) if factor != "model"))
    latency, size = _unit(LATENCY, speeds), _unit(SIZE, speeds)
    columns = (
        Column("Case", ("case",)),
        Column(metric_title(metric, DisplayUnit(1.0, metric.unit)), estimate_fields(name), numeric=True),
        Column(metric_title(speeds[0].metrics[SIZE].metric, size), estimate_fields(SIZE), numeric=True),
        Column(metric_title(speeds[0].metrics[LATENCY].metric, latency), estimate_fields(LATENCY), numeric=True),
    )
    rows = tuple(
        (
            text_cell(case_text(speed.case, shown)),
            _cell(accuracy, name, DisplayUnit(1.0, metric.unit)),
            _cell(speed, SIZE, size),
            _cell(speed, LATENCY, latency),
        )
        for speed, accuracy in joined
    )
    notes = ("Latency is of one iteration, of a whole batch. 95 % intervals.",)
    return Table(f"accuracy-{name}", f"{metric.label}, size and latency", columns, rows, notes)


def _unit(name: str, cases: list[CaseFinding]) -> DisplayUnit:
    metric = cases[0].metrics[name].metric
    estimates = (case.metrics[name].estimate for case in cases)
    return display_unit(metric.unit, [estimate.value for estimate in estimates if estimate is not None])


def _cell(case: CaseFinding, name: str, unit: DisplayUnit) -> Cell:
    found = case.metrics[name]
    return estimate_cell(found.estimate, unit=unit, why_none=found.why_none)
