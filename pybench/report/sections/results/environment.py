# SPDX-License-Identifier: Apache-2.0
"""The table of everything that is known about where the runs ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from pybench.dataset import Dataset
from pybench.report.tables import Column, Table, text_cell

_VALUES_SHOWN = 4  # of a fact that differs between runs


def environment_table(dataset: Dataset) -> Table:
    """Every fact of the environments, flattened; facts that differ between runs come first, with how often each value
    occurs."""
    facts: dict[str, Counter[str]] = {}
    flattened: dict[tuple[str, int], list[tuple[str, str]]] = {}
    for environment in dataset.environments:
        for name, value in _flatten(environment.content, "", flattened):
            facts.setdefault(name, Counter())[value] += environment.runs
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


def _flatten(
    content: Mapping[str, Any], prefix: str, flattened: dict[tuple[str, int], list[tuple[str, str]]]
) -> list[tuple[str, str]]:
    """`flattened`: (prefix, id) -> facts of innermost objects, which environments share where they are equal."""
    found: list[tuple[str, str]] = []
    for name, value in content.items():
        if isinstance(value, dict):
            key = (f"{prefix}{name}.", id(value))
            facts = flattened.get(key)
            if facts is None:
                facts = _flatten(value, key[0], flattened)
                if not any(isinstance(part, dict) for part in value.values()):
                    flattened[key] = facts
            found += facts
        elif value is not None and not name.endswith("_ns"):  # a clock's reading is another in each run, and no fact
            found.append((f"{prefix}{name}", ", ".join(map(str, value)) if isinstance(value, list) else str(value)))
    return found
