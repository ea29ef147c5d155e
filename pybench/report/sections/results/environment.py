# SPDX-License-Identifier: Apache-2.0
"""The table of everything that is known about where the runs ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pybench.dataset import Dataset
from pybench.dataset.run_tables import Environment
from pybench.report.tables import Column, Table, text_cell

_VALUES_SHOWN = 4  # of a fact that differs between runs


def environment_table(dataset: Dataset) -> Table:
    """Every fact of the environments, flattened; facts that differ between runs come first, with how often each value
    occurs."""
    facts = _count_facts(dataset.environments)
    runs = sum(environment.runs for environment in dataset.environments)
    facts.pop("schema_version", None)
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


@dataclass(slots=True)
class _Shared:
    """An object of environments: its own facts, the objects in it, and how many runs have it."""

    facts: list[tuple[str, str]]
    inner: list[_Shared]
    runs: int = 0

    def add(self, runs: int) -> None:
        self.runs += runs
        for part in self.inner:
            part.add(runs)


def _count_facts(environments: Sequence[Environment]) -> dict[str, Counter[str]]:
    """Fact -> value -> runs, in the order of what comes first. Environments share their equal parts, so the facts of
    each part are counted once."""
    facts: dict[str, Counter[str]] = {}
    parts: dict[tuple[str, int], _Shared] = {}
    for environment in environments:
        _part_of(environment.content, "", parts, facts).add(environment.runs)
    for part in parts.values():
        for name, value in part.facts:
            facts[name][value] += part.runs
    return facts


def _part_of(
    content: Mapping[str, Any], prefix: str, parts: dict[tuple[str, int], _Shared], facts: dict[str, Counter[str]]
) -> _Shared:
    """`parts`: (prefix, id) -> part that was looked at before; `facts`: get their order."""
    key = (prefix, id(content))
    if key in parts:
        return parts[key]
    part = parts[key] = _Shared([], [])
    for name, value in content.items():
        if isinstance(value, dict):
            part.inner.append(_part_of(value, f"{prefix}{name}.", parts, facts))
        elif value is not None and not name.endswith("_ns"):  # a clock's reading is another in each run, and no fact
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            facts.setdefault(f"{prefix}{name}", Counter())[text] += 0
            part.facts.append((f"{prefix}{name}", text))
    return part
