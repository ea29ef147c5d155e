# SPDX-License-Identifier: Apache-2.0
"""Runs that are not ok, case by case."""

from __future__ import annotations

from pybench.analysis import Analysis
from pybench.report.tables import Column, Table, number_cell, text_cell


def failures_table(analysis: Analysis, run_link: str) -> Table:
    """Cases with runs that are not ok."""
    rows = []
    for case in analysis.cases:
        for (outcome, reason), runs in case.failures.items():
            rows.append(
                (
                    text_cell(
                        case.case.title(),
                        href=f"{run_link}/{case.case.id}/" if case.folders else None,
                        cases=(case.case.id,),
                    ),
                    text_cell(outcome),
                    text_cell(reason),
                    number_cell(runs),
                )
            )
    columns = (
        Column("Case", ("case",)),
        Column("Outcome", ("outcome",)),
        Column("Reason", ("reason",)),
        Column("Runs", ("runs",), numeric=True),
    )
    return Table("not-ok", "Runs that are not ok", columns, tuple(rows))
