# SPDX-License-Identifier: Apache-2.0
"""Accuracy, size and latency of each model in one table: what a lower precision costs, and what it gives."""

from __future__ import annotations

from collections.abc import Sequence

from pybench.analysis import Analysis
from pybench.analysis.findings.cases import CaseFinding
from pybench.analysis.findings.planes import LATENCY, JoinedSpeed, speeds_with_accuracies
from pybench.report.labels import case_text, metric_title, varying_factors
from pybench.report.numbers import DisplayUnit, display_unit
from pybench.report.sentences import list_text
from pybench.report.tables import Cell, Column, Table, estimate_cell, estimate_fields, several_cell, text_cell

SIZE = "model_bytes"


def accuracy_tables(analysis: Analysis) -> list[Table]:
    """One table for each metric of accuracy; none where no case of infer has an accuracy.

    A row joins a case of infer with the accuracies of the same answers.
    """
    joined = speeds_with_accuracies(analysis.cases)
    names = dict.fromkeys(one.headline for one in joined)
    return [_table(name, [one for one in joined if one.headline == name]) for name in names]


def _table(name: str, joined: list[JoinedSpeed]) -> Table:
    metric = joined[0].accuracies[0].metrics[name].metric
    speeds = [one.speed for one in joined]
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
            text_cell(case_text(one.speed.case, shown), cases=one.ids),
            _accuracy_cell(one.accuracies, name, DisplayUnit(1.0, metric.unit)),
            _cell(one.speed, SIZE, size),
            _cell(one.speed, LATENCY, latency),
        )
        for one in joined
    )
    notes = ("Latency is of one iteration, of a whole batch. 95 % intervals.",)
    return Table(f"accuracy-{name}", f"{metric.label}, size and latency", columns, rows, notes)


def _unit(name: str, cases: list[CaseFinding]) -> DisplayUnit:
    metric = cases[0].metrics[name].metric
    estimates = (case.metrics[name].estimate for case in cases)
    return display_unit(metric.unit, [estimate.value for estimate in estimates if estimate is not None])


def _accuracy_cell(accuracies: Sequence[CaseFinding], name: str, unit: DisplayUnit) -> Cell:
    """The accuracy, or that there are several, and from where to where."""
    if len(accuracies) == 1:
        return _cell(accuracies[0], name, unit)
    found = [case.metrics[name].estimate for case in accuracies]
    values = [estimate.value for estimate in found if estimate is not None]
    words = [factor.replace("_", " ") for factor in varying_factors([case.case for case in accuracies])]
    return several_cell(values, "accuracies", unit=unit, note=f"the accuracy cases differ in {list_text(words)}")


def _cell(case: CaseFinding, name: str, unit: DisplayUnit) -> Cell:
    found = case.metrics[name]
    return estimate_cell(found.estimate, unit=unit, why_none=found.why_none)
