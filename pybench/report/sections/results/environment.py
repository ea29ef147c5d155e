# SPDX-License-Identifier: Apache-2.0
"""The table of everything that is known about where the runs ran."""

from __future__ import annotations

from collections import Counter

from pybench.dataset import Dataset
from pybench.report.tables import Column, Table, text_cell

_VALUES_SHOWN = 4  # of a fact that differs between runs


def environment_table(dataset: Dataset) -> Table:
    """Every fact of the environments, flattened; facts that differ between runs come first, with how often each value
    occurs."""
    runs = dataset.runs.height
    facts = {name: counts for name, counts in dataset.environments.items() if name != "schema_version"}
    differing = [name for name, counts in facts.items() if len(counts) > 1 or counts.total() < runs]
    rows = [(text_cell(name, tone="neutral"), text_cell(_counted(facts[name], runs))) for name in differing]
    rows += [
        (text_cell(name), text_cell(next(iter(counts)))) for name, counts in facts.items() if name not in differing
    ]
    notes = (f"The first {len(differing)} facts differ between runs.",) if differing else ()
    return Table(
        "environment", "Environment", (Column("Fact", ("fact",)), Column("Value", ("value",))), tuple(rows), notes
    )


def _counted(counts: Counter[str], runs: int) -> str:
    """`a (12 runs), b (3 runs), 4 other values`."""
    parts = [f"{value} ({count} runs)" for value, count in counts.most_common(_VALUES_SHOWN)]
    rest = len(counts) - _VALUES_SHOWN
    parts += [f"{rest} other values"] if rest > 0 else []
    return ", ".join([*parts, f"unknown ({runs - counts.total()} runs)"] if counts.total() < runs else parts)
