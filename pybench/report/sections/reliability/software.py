# SPDX-License-Identifier: Apache-2.0
"""Software of the two sides of each comparison."""

from __future__ import annotations

from collections.abc import Mapping

from pybench.analysis.comparability import PairComparability
from pybench.case.pairing import Pair
from pybench.report.tables import Cell, Column, Table, text_cell


def software_table(found: Mapping[Pair, PairComparability]) -> Table:
    """One row for each comparison whose sides ran with different software, or loaded different packages."""
    has_brought = any(one.brought for one in found.values())
    columns = (
        Column("Case", ("case",)),
        Column("Baseline", ("baseline",)),
        Column("Status", ("status",)),
        Column("Excluded blocks", ("blocks_excluded", "blocks"), numeric=True),
        Column("What differs", ("differences",)),
        Column("Loaded only by the case", ("packages_of_case_only",)),
        Column("Loaded only by the baseline", ("packages_of_baseline_only",)),
        Column("Known for one side only", ("unstated",)),
        *([Column("Brought by the environment", ("brought_by_environment",))] if has_brought else []),
    )
    rows = []
    for pair, one in found.items():
        if not (one.excluded or one.only_candidate or one.only_baseline or one.unstated or one.brought):
            continue
        left_out = f"{len(one.excluded)}/{len(one.blocks)}"
        names = "; ".join(f"{difference.text()} ({count})" for difference, count in one.differences.items())
        rows.append(
            (
                Cell(pair.case.title(), csv=(pair.case.id,)),
                Cell(pair.baseline.title(), csv=(pair.baseline.id,)),
                text_cell(one.status.value, tone="bad" if one.excluded else None),
                Cell(left_out, csv=(str(len(one.excluded)), str(len(one.blocks)))),
                text_cell(names),
                *(text_cell(", ".join(words)) for words in (one.only_candidate, one.only_baseline, one.unstated)),
                *([text_cell("; ".join(difference.text() for difference in one.brought))] if has_brought else []),
            )
        )
    notes = ["Two runs are compared only if board, CPU, driver, image, pybench, Python and common packages are equal."]
    if has_brought:
        notes.append(
            "Between environments, image, Python and packages may differ, as long as they stay the same in all blocks."
        )
    return Table("software", "Software of the two sides of each comparison", columns, tuple(rows), tuple(notes))
