# SPDX-License-Identifier: Apache-2.0
"""The cases of a plan as text: which factors vary, what each case has of them, how many runs that makes."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pybench.case import Case, Repetitions
from pybench.case.factors import FACTORS, factor_names
from pybench.cli.show import SHORT_ID
from pybench.words import counted

NOT_APPLICABLE = "-"


def extent(cases: Sequence[Case], repetitions: Repetitions) -> str:
    """`5 repetitions: 24 runs`, `5 or 7 repetitions: 34 runs`, `at most 60 repetitions: at most 120 runs`."""
    return f"{repetitions.text(cases)}: {repetitions.most}{counted(repetitions.runs(cases), 'run')}"


def print_cases(cases: Sequence[Case]) -> None:
    """Rows in columns: workload, model and what varies or was chosen. With colours and lines on a terminal only."""
    columns = [name for name in factor_names(cases) if _is_column(name, cases)]
    rows = [[case.id[:SHORT_ID], *(_shown(case, name) for name in columns)] for case in cases]
    header = ["case", *columns]
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table

        table = Table(*header)
        for row in rows:
            table.add_row(*row)
        Console().print(table)
        return
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def varying(cases: Sequence[Case]) -> dict[str, list[str]]:
    """Factors with more than one value among the cases that they mean something for; workload and model always,
    where there is one."""
    values = {name: list(dict.fromkeys(_shown(case, name) for case in cases)) for name in factor_names(cases)}
    varying = {name: [text for text in found if text != NOT_APPLICABLE] for name, found in values.items()}
    return {name: found for name, found in varying.items() if len(found) > (name not in ("workload", "model"))}


def _is_column(name: str, cases: Sequence[Case]) -> bool:
    shown = {_shown(case, name) for case in cases} - {NOT_APPLICABLE}
    is_chosen = any(name in case.chosen() for case in cases)
    return len(shown) > 1 or (is_chosen and not (name in FACTORS and FACTORS[name].protocol))


def _shown(case: Case, name: str) -> str:
    """A factor's value as a plan writes it, or a dash where it changes nothing about the case."""
    from pybench.plan.meaning import applies

    if not applies(name, case):
        return NOT_APPLICABLE
    value = case.value(name)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)
