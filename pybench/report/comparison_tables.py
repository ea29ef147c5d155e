# SPDX-License-Identifier: Apache-2.0
"""The tables of `pybench compare`: every change, what could not be compared, and cases that only one side has.

Below them stand the counts of verdicts in sentences.
"""

from __future__ import annotations

import statistics
from collections import Counter

from pybench.analysis.findings.comparison import Change, Comparison, MetricChange
from pybench.report.numbers import factor_above_one
from pybench.report.tables import Cell, Column, Table, estimate_cell, estimate_fields, number_cell, text_cell

_TONES = {
    Change.WORSE: "bad",
    Change.BETTER: "good",
    Change.SAME: "neutral",
    Change.UNCLEAR: "neutral",
    Change.NOT_COMPARED: None,
    Change.NOT_COMPARABLE: None,
}


_WITHOUT_VERDICT = (Change.NOT_COMPARED, Change.NOT_COMPARABLE)


def comparison_tables(comparison: Comparison) -> list[Table]:
    """Changes first, worst verdicts on top; then what was not compared, a row a reason; then cases of one side."""
    order = list(Change)
    compared = [change for change in comparison.changes if change.change not in _WITHOUT_VERDICT]
    changes = sorted(compared, key=lambda change: order.index(change.change))
    columns = (
        Column("Case", ("case",)),
        Column("Metric", ("metric",)),
        Column("Unit", ("unit",)),
        Column("A", ("before",), numeric=True),
        Column("B", ("after",), numeric=True),
        Column("B/A, or B−A in pp", estimate_fields("change"), numeric=True),
        Column("Verdict", ("verdict",)),
    )
    notes = (
        f"Worse or better: the whole 95 % interval is outside a factor of {1 + comparison.tolerance:g}.",
        f"For accuracies: outside {comparison.tolerance_pp:g} percentage points.",
        "Runs of two campaigns are not paired, because they share no blocks. Accuracies are paired by unit (image).",
    )
    tables = [
        _software_table(comparison),
        Table("changes", "Changes from A to B", columns, tuple(_row(change) for change in changes), notes),
        _not_compared_table(comparison),
    ]
    for name, title, cases in (
        ("only-a", "Cases only in A", comparison.only_before),
        ("only-b", "Cases only in B", comparison.only_after),
    ):
        rows = tuple((Cell(case.title(), csv=(case.id,)),) for case in cases)
        tables.append(Table(name, title, (Column("Case", ("case",)),), rows))
    return tables


def comparison_sentences(comparison: Comparison) -> list[str]:
    """The answer: how many metrics got worse, how many nobody can tell, and what could have been found."""
    counts = comparison.counts
    judged = [Change.WORSE, Change.BETTER, Change.SAME, Change.UNCLEAR]
    parts = [f"{counts[change]} {change.value}" for change in judged]
    parts += [f"{counts[change]} {change.value}" for change in _WITHOUT_VERDICT if counts[change]]
    found = [f"From A to B: {', '.join(parts)}."]
    if counts[Change.UNCLEAR]:
        found.append(
            "Unclear does not mean the same: the interval is partly outside of the tolerance, or there is none."
        )
    if comparison.found_from:
        least, median = (factor_above_one(one) for one in (comparison.found_from[0], _median(comparison)))
        found.append(
            f"The smallest change that these runs can show to be worse is about a factor of {least}; "
            f"for half of the metrics it is {median} or more."
        )
    if comparison.runs_shared:
        found.append(
            f"{comparison.runs_shared} of {comparison.runs_after} runs of B are runs of A, byte for byte: "
            "between a campaign and its copy nothing can be found."
        )
    return found


def _median(comparison: Comparison) -> float:
    return statistics.median(comparison.found_from)


def _software_table(comparison: Comparison) -> Table:
    """What differs between the two campaigns: the reader sees it before any change."""
    columns = (Column("Fact", ("fact",)), Column("A", ("before",)), Column("B", ("after",)))
    rows = tuple(
        (text_cell(one.name), text_cell(one.baseline), text_cell(one.candidate)) for one in comparison.software
    )
    notes = ("Any of these can be the cause of a change from A to B.",)
    return Table("software", "Software that differs between A and B", columns, rows, notes)


def _not_compared_table(comparison: Comparison) -> Table:
    """One row for each metric and reason; `--json` lists every case."""
    counts = Counter(
        (change.metric, change.change.value, change.why or "")
        for change in comparison.changes
        if change.change in _WITHOUT_VERDICT
    )
    columns = (
        Column("Metric", ("metric",)),
        Column("Status", ("status",)),
        Column("Why", ("why",)),
        Column("Cases", ("cases",), numeric=True),
    )
    rows = tuple(
        (Cell(metric.label, csv=(metric.name,)), text_cell(status), text_cell(why), number_cell(cases))
        for (metric, status, why), cases in counts.items()
    )
    return Table("not-compared", "Not compared", columns, rows)


def _row(change: MetricChange) -> tuple[Cell, ...]:
    difference = change.metric.scale == "difference"
    return (
        Cell(change.case.title(), csv=(change.case.id,)),
        Cell(change.metric.label, csv=(change.metric.name,)),
        text_cell(change.metric.unit),
        number_cell(change.before),
        number_cell(change.after),
        estimate_cell(change.estimate, why_none=change.why, signed=difference),
        text_cell(
            change.change.value, tone=_TONES[change.change], note=None if change.estimate is None else change.why
        ),
    )
