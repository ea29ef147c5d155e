# SPDX-License-Identifier: Apache-2.0
"""What trainings to an accuracy stored: for each run, what was known at the end of each epoch."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from pybench.campaign.directory import RunDirectory
from pybench.campaign.layout import LEARNING_CURVE
from pybench.case import Case
from pybench.dataset import Dataset
from pybench.errors import CorruptError

_COLUMNS: dict[str, Any] = {
    "epoch": pl.Int64,
    "images": pl.Int64,
    "elapsed_s": pl.Float64,
    "training_loss_nats": pl.Float64,
    "held_out_loss_nats": pl.Float64,
    "top1_percent": pl.Float64,
}
_LOSSES = ("training_loss_nats", "held_out_loss_nats")


@dataclass(frozen=True, slots=True)
class LearningCurves:
    """Of one case.

    runs: block -> one row an epoch; a loss that is NaN or infinite is null
    reached: block -> whether that run reached the target
    """

    case: Case
    runs: Mapping[int, pl.DataFrame]
    reached: Mapping[int, bool]

    @property
    def diverged(self) -> int:
        """How many runs lost their weights: they end with a held-out loss that is null."""
        return sum(frame["held_out_loss_nats"][-1] is None for frame in self.runs.values())


def read_learning_curves(dataset: Dataset) -> tuple[LearningCurves, ...]:
    """Of each case that trains to an accuracy, in the order of the plan. Raises CorruptError."""
    found: dict[str, LearningCurves] = {}
    rows = dataset.runs.filter(dataset.runs["outcome"] == "ok").select("case_id", "folder", "block", "attempt")
    for case_id, folder, block, attempt in rows.sort("case_id", "block").iter_rows():
        label = dataset.labels.get((case_id, block), {}).get("fit")
        if label is None:
            continue
        run = RunDirectory(dataset.campaign.path / folder, case_id, block, attempt)
        one = found.setdefault(case_id, LearningCurves(dataset.cases[case_id], {}, {}))
        found[case_id] = LearningCurves(
            one.case,
            {**one.runs, block: _read(run.file(LEARNING_CURVE))},
            {**one.reached, block: bool(label["reached"])},
        )
    return tuple(found[case.id] for case in dataset.plan.cases if case.id in found)


def _read(file: Path) -> pl.DataFrame:
    try:
        frame = pl.read_csv(io.BytesIO(file.read_bytes()), schema_overrides=_COLUMNS, infer_schema_length=None)
        told = frame.select(pl.col(name).cast(kind) for name, kind in _COLUMNS.items())
        return told.with_columns(pl.when(pl.col(name).is_finite()).then(pl.col(name)).alias(name) for name in _LOSSES)
    except (OSError, pl.exceptions.PolarsError, UnicodeDecodeError) as error:
        raise CorruptError(f"{file} cannot be read: {str(error).splitlines()[0]}") from error
