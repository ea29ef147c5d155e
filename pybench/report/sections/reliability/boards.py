# SPDX-License-Identifier: Apache-2.0
"""Effects over blocks of several boards, board by board."""

from __future__ import annotations

from collections.abc import Sequence

from pybench.analysis.findings.boards import BoardEffects
from pybench.report.labels import case_text, comparison_label, varying_factors
from pybench.report.tables import Cell, Column, Table, estimate_cell, estimate_fields, p_cell


def boards_table(found: Sequence[BoardEffects]) -> Table:
    """Declared effects over blocks of several boards, board by board."""
    boards = list(dict.fromkeys(board for one in found for board in one.by_board))
    names = varying_factors([case for one in found for case in (one.pair.case, one.pair.baseline)])
    columns = (
        Column("Case", ("case",)),
        Column("Baseline", ("baseline",)),
        Column("Quantity", ("metric", "inverse")),
        *(Column(short_board(board), estimate_fields(board), numeric=True) for board in boards),
        Column("p (boards equal)", ("p_value",), numeric=True),
        Column("Holm's p", ("p_adjusted",), numeric=True),
    )
    rows = tuple(
        (
            *(Cell(case_text(case, names), csv=(case.id,)) for case in (one.pair.case, one.pair.baseline)),
            Cell(
                comparison_label(one.metric, one.metric.scale, inverse=one.inverse),
                csv=(one.metric.name, str(one.inverse).lower()),
            ),
            *(estimate_cell(one.by_board.get(board), signed=one.metric.scale == "difference") for board in boards),
            p_cell(one.p_value),
            p_cell(one.p_adjusted),
        )
        for one in found
    )
    notes = (
        "Each effect is that of the blocks of one board.",
        "Where boards differ, the effect over all blocks is a mean, and its interval may contain none of theirs.",
        "It says nothing of other boards.",
    )
    return Table("boards", "Effects by board", columns, rows, notes)


def short_board(board: str) -> str:
    """The first part of a UUID, which is enough to tell boards apart."""
    return board[:12]
