# SPDX-License-Identifier: Apache-2.0
"""docs/factors.md: a section for each factor, and tables of workloads, data sets and tasks."""

from __future__ import annotations

import typing

from documents.markdown import ROWS_SAY, code, table
from pybench.case.factor import Factor
from pybench.case.factors import FACTORS
from pybench.catalogue.data_sets import DATA_SETS
from pybench.catalogue.tasks import TASKS
from pybench.catalogue.workloads import GROUP_TITLES, WORKLOADS, FactorGroup
from pybench.document.keys import described
from pybench.plan.values import PSEUDO_FACTORS

LONGEST_LINE = 180  # characters
VALUES_A_LINE = 8
_HEAD = f"""# Factors

{ROWS_SAY}

A [plan](user/plans.md) sets factors, and a case has one value of each.
A factor that a plan does not set has its default.
Setting a factor in an entry whose workload does not take it is an error.
"""


def factors_page() -> str:
    """docs/factors.md."""
    groups: tuple[FactorGroup, ...] = typing.get_args(FactorGroup)
    lines = [_HEAD, *_workloads(), *_data(), *(line for group in groups for line in _section(group))]
    return "\n".join(lines).rstrip() + "\n"


def _workloads() -> list[str]:
    rows = [(f"`{row.name}`", row.meaning, row.model) for row in WORKLOADS.values()]
    return ["## Workloads", "", table(("workload", "one iteration", "model"), rows), ""]


def _data() -> list[str]:
    """Data sets, then the tasks that score their units."""
    sets = [(f"`{row.name}`", row.meaning, row.unit, row.task) for row in DATA_SETS.values()]
    tasks = [(row.name, row.meaning, code(row.yields)) for row in TASKS.values()]
    return [
        *("## Data sets", ""),
        *(table(("data set", "what it contains", "unit", "task"), sets), ""),
        *(table(("task", "score of a unit", "metrics"), tasks), ""),
    ]


def _section(group: FactorGroup) -> list[str]:
    factors = [factor for factor in (*FACTORS.values(), *PSEUDO_FACTORS.values()) if factor.group == group]
    if not factors:
        return []
    takers = [name for name in WORKLOADS if name in factors[0].workloads()]
    who = "every workload" if len(takers) == len(WORKLOADS) else code(takers)
    return [
        f"## {GROUP_TITLES.get(group, group.capitalize())}",
        "",
        f"Taken by {who}.",
        "",
        *(line for factor in factors for line in _entry(factor)),
    ]


def _entry(factor: Factor) -> list[str]:
    null = f"- null: {factor.absent}" if factor.absent else None
    lines = (f"- {factor.meaning}", *_values_lines(factor), f"- default: {_default(factor)}", null)
    return [f"### `{factor.name}`", "", *(line for line in lines if line is not None), ""]


def _values_lines(factor: Factor) -> list[str]:
    """One line, or a list where that is too long to read."""
    line = f"- values: {_values(factor)}"
    if len(line) <= LONGEST_LINE:
        return [line]
    words = _values(factor).split(", ")
    rows = [", ".join(words[first : first + VALUES_A_LINE]) for first in range(0, len(words), VALUES_A_LINE)]
    return ["- values:", *(f"  - {row}" for row in rows)]


def _values(factor: Factor) -> str:
    named = code(factor.choices)
    if factor.kind == "file":
        return f"{named}, or a path" if named else "a path"
    if factor.kind in ("integer", "number"):
        most = "" if factor.maximum is None else f" and at most {factor.maximum:g}"
        return f"{'an' if factor.kind == 'integer' else 'a'} {factor.kind}, at least {factor.minimum or 0:g}{most}"
    return named or {"boolean": "`true`, `false`", "text": "text"}[factor.kind]


def _default(factor: Factor) -> str:
    if factor.name in PSEUDO_FACTORS or (factor.default is None and not factor.absent):
        return "none"
    return f"`{described(factor.default)}`".replace("'", "")
