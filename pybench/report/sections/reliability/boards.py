# SPDX-License-Identifier: Apache-2.0
"""Effects over blocks of several boards, board by board, and model by model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pybench.analysis.findings.boards import BoardEffects
from pybench.report.labels import case_text, comparison_label, varying_factors
from pybench.report.tables import Cell, Column, Table, estimate_cell, estimate_fields, p_cell

_TELLING = 12  # characters of a UUID, which are enough to tell boards apart


def board_tables(models: Sequence[BoardEffects], boards: Sequence[BoardEffects]) -> list[Table]:
    """Effects by model, where there are several, and by board."""
    return [*([board_models_table(models)] if models else []), boards_table(boards)]


def boards_table(found: Sequence[BoardEffects]) -> Table:
    """Declared effects over blocks of several boards, board by board."""
    titles = {board: board[:_TELLING] for one in found for board in one.by_board}
    notes = (
        "Each effect is that of the blocks of one board.",
        "Where boards differ, the effect over all blocks is a mean, and its interval may contain none of theirs.",
        "It says nothing of other boards.",
    )
    return Table("boards", "Effects by board", _columns(titles, "boards"), _rows(found, titles), notes)


def board_models_table(found: Sequence[BoardEffects]) -> Table:
    """Declared effects over blocks of boards of several models, model by model."""
    titles = {model: model for one in found for model in one.by_board}
    notes = (
        "Each effect is that of the blocks on boards of one model.",
        "For the p value each board counts once, with the mean of its blocks; a model of one board has none.",
        "Where models differ, the effect over all blocks is a mean over these boards, and may be that of no model.",
    )
    columns = _columns(titles, "models")
    return Table("board_models", "Effects by model of board", columns, _rows(found, titles), notes)


def _columns(titles: Mapping[str, str], groups: str) -> tuple[Column, ...]:
    """`titles`: each board or model -> the title of its column."""
    return (
        Column("Case", ("case",)),
        Column("Baseline", ("baseline",)),
        Column("Quantity", ("metric", "inverse")),
        *(Column(title, estimate_fields(group), numeric=True) for group, title in titles.items()),
        Column(f"p ({groups} equal)", ("p_value",), numeric=True),
        Column("Holm's p", ("p_adjusted",), numeric=True),
    )


def _rows(found: Sequence[BoardEffects], titles: Mapping[str, str]) -> tuple[tuple[Cell, ...], ...]:
    names = varying_factors([case for one in found for case in (one.pair.case, one.pair.baseline)])
    return tuple(
        (
            *(Cell(case_text(case, names), csv=(case.id,)) for case in (one.pair.case, one.pair.baseline)),
            Cell(
                comparison_label(one.metric, one.metric.scale, inverse=one.inverse),
                csv=(one.metric.name, str(one.inverse).lower()),
            ),
            *(estimate_cell(one.by_board.get(group), signed=one.metric.scale == "difference") for group in titles),
            p_cell(one.p_value),
            p_cell(one.p_adjusted),
        )
        for one in found
    )
