# SPDX-License-Identifier: Apache-2.0
"""The tables of where the runs ran: everything that is known of it, and in what the plan's environments differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pybench.dataset import Dataset
from pybench.dataset.software import PYTHON
from pybench.report.tables import Column, Table, text_cell

OWN = "pybench's own"
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


def environments_tables(dataset: Dataset) -> list[Table]:
    """Where the plan has several environments: a row for each package, for Python and for the image, of which their
    `ok` runs loaded different versions. What only some of them loaded follows from their cases, and is in the table of
    software. Where nothing differs, Python alone has a row, because a table without rows is not shown."""
    loaded: dict[str | None, dict[str, dict[str, None]]] = {}
    for case in dataset.plan.cases:
        found = loaded.setdefault(case.environment, {})
        for run in dataset.software.get(case.id, {}).values():
            for name, version in run.of_environment.items():
                found.setdefault(name, {})[version] = None
    names = sorted({name for found in loaded.values() for name in found})
    if len(loaded) == 1 or not names:
        return []
    differ = [
        name for name in names if len({tuple(sorted(found[name])) for found in loaded.values() if name in found}) > 1
    ]
    rows = [
        (text_cell(name), *(text_cell(", ".join(found.get(name, ()))) for found in loaded.values()))
        for name in differ or [PYTHON]
    ]
    columns = (Column("Loaded", ("package",)), *_columns(loaded))
    notes = () if differ else ("The runs of all environments loaded the same versions.",)
    return [Table("environments", "In what the environments differ", columns, tuple(rows), notes)]


def _columns(environments: Iterable[str | None]) -> list[Column]:
    """In a CSV `environment=NAME`: the user's names alone might be those of other columns."""
    return [Column(name or OWN, (f"environment={'null' if name is None else name}",)) for name in environments]


def _counted(counts: Counter[str], runs: int) -> str:
    """`a (12 runs), b (3 runs), 4 other values`."""
    parts = [f"{value} ({count} runs)" for value, count in counts.most_common(_VALUES_SHOWN)]
    rest = len(counts) - _VALUES_SHOWN
    parts += [f"{rest} other values"] if rest > 0 else []
    return ", ".join([*parts, f"unknown ({runs - counts.total()} runs)"] if counts.total() < runs else parts)
