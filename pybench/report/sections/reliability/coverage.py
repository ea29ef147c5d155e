# SPDX-License-Identifier: Apache-2.0
"""Coverage: how many repetitions of each case have an answer, and whether their files are guarded."""

from __future__ import annotations

from pybench.campaign.layout import COVERING
from pybench.case import distinct_titles
from pybench.dataset.coverage import STATES, Coverage
from pybench.report.tables import Column, Table, number_cell, text_cell
from pybench.words import counted


def coverage_table(coverage: Coverage) -> Table:
    """One row a case: how many of its repetitions have an answer."""
    occurring = [state for state in STATES if coverage.states.get(state)]
    columns = (
        Column("Case", ("case",)),
        Column("Covered", ("covered", "planned"), numeric=True),
        *(Column(state.replace("_", " ").capitalize(), (state,), numeric=True) for state in occurring),
        Column("Reasons", ("reasons",)),
    )
    titles = distinct_titles([entry.case for entry in coverage.cases])
    rows = []
    for entry in coverage.cases:
        share = f"{entry.covered}/{entry.planned}"
        covered = number_cell(entry.covered, text=share, tone="good" if entry.covered == entry.planned else "bad")
        counts = [number_cell(entry.states.get(state, 0)) for state in occurring]
        reasons = ", ".join(f"{reason} ({count})" for reason, count in entry.reasons.items())
        rows.append((text_cell(titles[entry.case.id], cases=(entry.case.id,)), covered, *counts, text_cell(reasons)))
    covering = ", ".join(sorted(COVERING))
    notes = [f"{coverage.covered_text} (outcome {covering})."]
    if coverage.orphans:
        runs, cases = sum(coverage.orphans.values()), len(coverage.orphans)
        of = f"{counted(runs, 'run')} of {counted(cases, 'case')}"
        notes.append(f"Not counted, because the plan no longer has the case: {of}.")
    if coverage.beyond:
        beyond = counted(coverage.beyond, "run")
        notes.append(f"Not counted, because of blocks beyond the plan's repetitions: {beyond}.")
    if coverage.finished:
        notes.append(guard_text(coverage))
    return Table("coverage", "Coverage of the plan", columns, tuple(rows), tuple(notes))


def guard_text(coverage: Coverage) -> str:
    """How many finished runs and artefacts are known to be as they finished, in a sentence."""
    if coverage.unguarded:
        return (
            f"{_unguarded_text(coverage)}: an older pybench stored no digests of their files, so a change of these "
            "files would not be noticed."
        )
    return f"The files of all {coverage.finished_text} have the digests that were stored when the run finished."


def _unguarded_text(coverage: Coverage) -> str:
    """`All 59 runs and 3 artefacts are unguarded`, `5 of 19 are unguarded (16 runs and 3 artefacts)`."""
    if coverage.unguarded == coverage.finished > 1:
        return f"All {coverage.finished_text} are unguarded"
    are = "is" if coverage.unguarded == 1 else "are"
    if coverage.artefacts:
        return f"{coverage.unguarded} of {coverage.finished} {are} unguarded ({coverage.finished_text})"
    return f"{coverage.unguarded} of {coverage.finished_text} {are} unguarded"
