# SPDX-License-Identifier: Apache-2.0
"""Cautions of runs, with advice."""

from __future__ import annotations

import polars as pl

from pybench.catalogue.cautions import CautionCode
from pybench.dataset import Dataset
from pybench.report.tables import Column, Table, number_cell, text_cell

_ADVICE = {member.code: member for member in CautionCode}


def cautions_table(dataset: Dataset) -> Table:
    """Every kind of doubt that a run stored, with how often, an example and what to do."""
    grouped = dataset.cautions.group_by("code", maintain_order=True).agg(
        pl.len().alias("times"),
        pl.struct("case_id", "block").n_unique().alias("runs"),
        pl.col("case_id").n_unique().alias("cases"),
        pl.col("detail").first(),
        pl.col("advice").first(),
    )
    rows = []
    for row in grouped.sort("runs", "code", descending=[True, False]).iter_rows(named=True):
        known = _ADVICE.get(row["code"])
        meaning = known.meaning if known is not None else "this version of pybench does not support this caution"
        rows.append(
            (
                text_cell(row["code"], tone="neutral"),
                number_cell(row["runs"]),
                number_cell(row["cases"]),
                text_cell(meaning),
                text_cell(row["detail"]),
                text_cell(row["advice"]),
            )
        )
    columns = (
        Column("Caution", ("caution",)),
        Column("Runs", ("runs",), numeric=True),
        Column("Cases", ("cases",), numeric=True),
        Column("Meaning", ("meaning",)),
        Column("Example", ("example",)),
        Column("What to do", ("advice",)),
    )
    return Table("cautions", "Cautions", columns, tuple(rows))
