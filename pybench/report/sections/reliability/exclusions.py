# SPDX-License-Identifier: Apache-2.0
"""What was measured and does not count, and what could not be measured, with reasons."""

from __future__ import annotations

from pybench.analysis import Analysis
from pybench.case import Case
from pybench.catalogue.metrics import Metric
from pybench.catalogue.validities import VALIDITIES
from pybench.dataset import Dataset
from pybench.report.reasons import codes_of, group_text
from pybench.report.tables import Cell, Column, Table, number_cell, text_cell


def validity_table(dataset: Dataset) -> Table:
    """How many ok runs are valid in each sense, and why the others are not."""
    ran = dataset.runs.filter(dataset.runs["outcome"] == "ok")
    rows = []
    for name in VALIDITIES:
        column = ran[f"valid_{name}"]
        invalid = ran.filter(~column.fill_null(True))[f"reasons_{name}"].explode()
        reasons = ", ".join(
            f"{code} ({count})" for code, count in invalid.drop_nulls().value_counts(sort=True).iter_rows()
        )
        required = name in dataset.plan.require
        bad = int((~column.fill_null(True)).sum())
        rows.append(
            (
                text_cell(name + (" (required)" if required else "")),
                number_cell(int(column.fill_null(False).sum())),
                number_cell(bad, tone="bad" if bad and required else "neutral" if bad else None),
                number_cell(column.null_count()),
                text_cell(reasons),
            )
        )
    columns = (
        Column("Validity", ("validity",)),
        Column("Valid", ("valid",), numeric=True),
        Column("Invalid", ("invalid",), numeric=True),
        Column("Not checked", ("not_asked",), numeric=True),
        Column("Reasons", ("reasons",)),
    )
    return Table(
        "validity",
        "Validity of the runs with outcome ok",
        columns,
        tuple(rows),
        ("Values of invalid runs are counted and excluded from every mean.",),
    )


def exclusions_table(analysis: Analysis) -> Table:
    """What was measured and does not count, and what could not be measured, by metric and code of the reason."""
    found: dict[tuple[Metric, str, str], list[tuple[Case, str, int]]] = {}
    for case in analysis.cases:
        for finding in case.metrics.values():
            for what, counts in (("invalid", finding.excluded), ("missing", finding.missing)):
                for reason, runs in counts.items():
                    found.setdefault((finding.metric, what, codes_of(reason)), []).append((case.case, reason, runs))
    rows = []
    for (metric, what, _), members in found.items():
        values = sum(runs for _, _, runs in members)
        titles = {case.id: case.title() for case, _, _ in members}
        first = next(iter(titles.values()))
        rows.append(
            (
                Cell(metric.label, csv=(metric.name,)),
                text_cell(what, tone="bad" if what == "invalid" else "neutral"),
                text_cell(group_text([reason for _, reason, _ in members])),
                number_cell(values),
                text_cell(first if len(titles) == 1 else f"{len(titles)} cases, such as {first}", cases=tuple(titles)),
            )
        )
    columns = (
        Column("Metric", ("metric",)),
        Column("Kind", ("left_out_as",)),
        Column("Reason", ("reason",)),
        Column("Values", ("values",), numeric=True),
        Column("Cases", ("of",)),
    )
    return Table("left-out", "Missing and invalid values, with reasons", columns, tuple(rows))
