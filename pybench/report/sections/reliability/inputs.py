# SPDX-License-Identifier: Apache-2.0
"""What the models were fed with: kinds of inputs, and whether tokenizer paths gave the same ids."""

from __future__ import annotations

from pybench.analysis import Analysis
from pybench.dataset import Dataset
from pybench.report.tables import Column, Table, number_cell, text_cell


def fed_table(dataset: Dataset) -> Table:
    """What was fed to the models: values alone change the power of a GPU by tens of percent."""
    fed: dict[str, list[str]] = {}
    for (case_id, _), labels in dataset.labels.items():
        if labels.get("inputs") is not None:
            fed.setdefault(str(labels["inputs"]), []).append(case_id)
    rows = [
        (text_cell(what), number_cell(len(set(case_ids))), number_cell(len(case_ids))) for what, case_ids in fed.items()
    ]
    columns = (
        Column("Inputs", ("inputs",)),
        Column("Cases", ("cases",), numeric=True),
        Column("Runs", ("runs",), numeric=True),
    )
    notes = ("Input values change the power of a GPU. Compare energies of cases that were fed alike.",)
    return Table("fed", "What was fed to the models", columns, tuple(rows), notes)


def token_table(analysis: Analysis) -> Table:
    """Whether all paths of one text gave the same ids."""
    rows = []
    for finding in analysis.token_paths:
        text, tone = {
            True: ("equal ids", "good"),
            False: ("DIFFERENT IDS", "bad"),
            None: ("not comparable", "neutral"),
        }[finding.equal]
        where = ", ".join(
            f"{name.replace('_', ' ')} {value}" for name, value in finding.shared.items() if value is not None
        )
        note = f"blocks {', '.join(map(str, finding.differing))} differ" if finding.differing else None
        rows.append(
            (
                text_cell(where),
                text_cell(", ".join(finding.digests)),
                number_cell(finding.blocks),
                text_cell(text, tone=tone, note=note),
            )
        )
    columns = (
        Column("Text and shape", ("text",)),
        Column("Paths", ("paths",)),
        Column("Blocks compared", ("blocks",), numeric=True),
        Column("Ids", ("ids",)),
    )
    return Table("token-paths", "Equality of the ids of tokenizer paths", columns, tuple(rows))
