# SPDX-License-Identifier: Apache-2.0
"""How much of the spread of repeated runs the speed of the calling core explains."""

from __future__ import annotations

from collections.abc import Sequence

from pybench.analysis.findings.run_spread import ALIKE, RunSpread
from pybench.report.sentences import Sentence, list_text
from pybench.report.tables import Cell, Column, Table, estimate_cell, estimate_fields, number_cell


def run_spread_table(found: Sequence[RunSpread]) -> Table:
    """One row for each workload, model, runtime and device."""
    columns = (
        Column("Cases", ("cases",)),
        Column("With probes", ("cases_with_probes", "cases_alike"), numeric=True),
        Column("Runs", ("runs",), numeric=True),
        Column("Slope", estimate_fields("slope"), numeric=True),
        Column("Explained", ("explained_share",), numeric=True),
        Column("SD of runs", ("sd_of_runs",), numeric=True),
        Column("SD left", ("sd_left",), numeric=True),
    )
    rows = tuple(
        (
            Cell(_name(one), csv=(_name(one),), cases=tuple(case.id for case in one.cases)),
            Cell(
                f"{len(one.cases)} of {one.alike}",
                number=float(len(one.cases)),
                csv=(str(len(one.cases)), str(one.alike)),
            ),
            number_cell(one.runs),
            estimate_cell(one.slope),
            number_cell(one.explained, text=f"{100 * one.explained:.0f} %"),
            number_cell(one.spread, text=f"{100 * one.spread:.2g} %"),
            number_cell(one.left, text=f"{100 * one.left:.2g} %"),
        )
        for one in found
    )
    notes = (
        "A line is fitted to logarithms of mean latency and of the probe of the core, centred within case and board.",
        "Slope: 1 where an iteration only waits for the core that calls it, and 0 where it never does.",
        "Explained: the share of the variance between runs of a case that the line accounts for.",
        "SD: standard deviation of logarithms between runs of a case, and what the line leaves of it.",
    )
    return Table("run_spread", "Spread of repeated runs, and the speed of the calling core", columns, rows, notes)


def core_doubts(found: Sequence[RunSpread]) -> list[Sentence]:
    """One sentence where runs differ mainly because the core does."""
    waiting = [one for one in found if one.waits_for_core]
    if not waiting:
        return []
    named = list_text([f"{100 * one.explained:.0f} % for {_name(one)} ({one.runs} runs)" for one in waiting])
    text = (
        "the speed of the CPU core that calls iterations explains most of the variance between repeated runs: about "
        f"{named}. The table `run_spread` of the report lists all cases."
    )
    return [Sentence("Runs wait for their core", text, "neutral")]


def _name(one: RunSpread) -> str:
    case = one.cases[0]
    return case.title(tuple(name for name in ALIKE if name in case.chosen()))
