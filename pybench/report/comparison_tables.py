# SPDX-License-Identifier: Apache-2.0
"""The tables of `pybench compare`: what is judged, what is context, what could not be compared, cases of one side.

Below them stand the counts of verdicts in sentences, and what a change of the machine could have done. The terminal and
Markdown have the same ones.
"""

from __future__ import annotations

import statistics
from collections import Counter

from pybench.analysis.findings.changes import VERDICTS, Change, MetricChange
from pybench.analysis.findings.comparison import Comparison
from pybench.analysis.statistics.paired import ALPHA
from pybench.report.numbers import factor_above_one, format_duration
from pybench.report.tables import (
    Cell,
    Column,
    Table,
    estimate_cell,
    estimate_fields,
    number_cell,
    p_cell,
    text_cell,
    to_markdown,
)
from pybench.words import counted

_TONES = {
    Change.WORSE: "bad",
    Change.BETTER: "good",
    Change.SAME: "neutral",
    Change.UNCLEAR: "neutral",
    Change.NOT_JUDGED: None,
    Change.NOT_COMPARED: None,
    Change.NOT_COMPARABLE: None,
}


_COLUMNS = (
    Column("Case", ("case",)),
    Column("Metric", ("metric",)),
    Column("Unit", ("unit",)),
    Column("A", ("before",), numeric=True),
    Column("B", ("after",), numeric=True),
    Column("B/A, or B−A in pp", estimate_fields("change"), numeric=True),
)
_CONTEXT = "context"
_WITHOUT_VERDICT = (Change.NOT_COMPARED, Change.NOT_COMPARABLE)


def comparison_tables(comparison: Comparison) -> list[Table]:
    """What is judged, worst verdicts on top; then context; then what was not compared; then cases of one side."""
    tables = [
        _software_table(comparison),
        _judged_table(comparison),
        _context_table(comparison),
        _not_compared_table(comparison),
    ]
    for name, title, cases in (
        ("only-a", "Cases only in A", comparison.only_before),
        ("only-b", "Cases only in B", comparison.only_after),
    ):
        rows = tuple((Cell(case.title(), csv=(case.id,)),) for case in cases)
        tables.append(Table(name, title, (Column("Case", ("case",)),), rows))
    return tables


def comparison_markdown(comparison: Comparison) -> str:
    """The sentences and the tables, as a summary of continuous integration shows them."""
    tables = [_folded(table) for table in comparison_tables(comparison) if table.rows]
    sentences = "".join(f"- {sentence}\n" for sentence in comparison_sentences(comparison))
    return "\n".join([sentences, *tables])


def _folded(table: Table) -> str:
    """Context opens by a click: it has several times as many rows as what is judged."""
    text = to_markdown(table)
    return f"<details><summary>{table.title}</summary>\n\n{text}\n</details>\n" if table.name == _CONTEXT else text


def comparison_sentences(comparison: Comparison) -> list[str]:
    """The answer: how many metrics got worse, how many nobody can tell, and what could have been found."""
    counts = comparison.counts
    parts = [f"{counts[change]} {change.value}" for change in VERDICTS]
    parts += [f"{counts[change]} {change.value}" for change in (Change.NOT_JUDGED, *_WITHOUT_VERDICT) if counts[change]]
    found = [f"From A to B: {', '.join(parts)}."]
    if counts[Change.UNCLEAR]:
        found.append(
            "Unclear does not mean the same: the interval or its correction includes the tolerance, there is none, "
            "or what was left out could change the verdict."
        )
    if comparison.lost:
        found.append(
            f"Only A has {counted(len(comparison.lost), 'value')} that would be judged, "
            f"such as {comparison.lost[0].metric.name} of {comparison.lost[0].case.title()}."
        )
    if counts[Change.NOT_JUDGED]:
        found.append("What is not judged is context, and no part of the exit code; `--metric NAME` judges a metric.")
    if comparison.found_from:
        least, median = (factor_above_one(one) for one in (comparison.found_from[0], _median(comparison)))
        found.append(
            f"The smallest change that these runs can show to be worse is about a factor of {least}; "
            f"for half of the judged metrics it is {median} or more."
        )
    if comparison.runs_shared:
        found.append(
            f"{comparison.runs_shared} of {comparison.runs_after} runs of B are runs of A, byte for byte: "
            "between a campaign and its copy nothing can be found."
        )
    return found if comparison.runs_shared else [*found, *_machine_sentences(comparison)]


def _machine_sentences(comparison: Comparison) -> list[str]:
    """What no interval contains, and what looks like it."""
    found = []
    if comparison.apart_s:
        found.append(
            f"The two campaigns ran {format_duration(comparison.apart_s)} apart: "
            "what changed of the machine between them is in no interval."
        )
    for code, (before, after) in comparison.disturbed.items():
        name = code.code.replace("_", " ").capitalize()
        found.append(
            f"{name} ({code.meaning}): {before} of {counted(comparison.runs_before, 'run')} of A, "
            f"{after} of {counted(comparison.runs_after, 'run')} of B."
        )
    if comparison.shift is not None:
        least, most = map(factor_above_one, comparison.shift)
        found.append(
            f"All judged ratios got worse, by factors of {least} to {most}, as on a slower machine: "
            "run A's plan again, and compare the new campaign with A and with B."
        )
    return found


def _median(comparison: Comparison) -> float:
    return statistics.median(comparison.found_from)


def _judged_table(comparison: Comparison) -> Table:
    changes = sorted(comparison.judged, key=lambda change: VERDICTS.index(change.change))
    columns = (*_COLUMNS, Column("p (Holm)", ("p_holm",), numeric=True), Column("Verdict", ("verdict",)))
    notes = (
        f"Worse or better: the whole 95 % interval is outside a factor of {1 + comparison.tolerance:g}.",
        f"For accuracies: outside {comparison.tolerance_pp:g} pp.",
        f"For both: p (Holm) is below {ALPHA:g}, too. It is small where a change is beyond the tolerance.",
        f"Each interval is at 95 % by itself; p (Holm) is corrected for {counted(comparison.tests, 'test')}.",
        "Runs of two campaigns are not paired, because they share no blocks. Accuracies are paired by unit (image).",
    )
    return Table("changes", "Changes from A to B", columns, tuple(map(_judged_row, changes)), notes)


def _context_table(comparison: Comparison) -> Table:
    rows = tuple(_row(change) for change in comparison.changes if change.change is Change.NOT_JUDGED)
    notes = ("Each interval is at 95 % by itself; of many, some exclude 1 although nothing changed.",)
    return Table(_CONTEXT, "Context that is not judged", _COLUMNS, rows, notes)


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
    )


def _judged_row(change: MetricChange) -> tuple[Cell, ...]:
    verdict = change.change.value
    note = None if change.estimate is None else change.why
    return (*_row(change), p_cell(change.p_adjusted), text_cell(verdict, tone=_TONES[change.change], note=note))
