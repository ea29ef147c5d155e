# SPDX-License-Identifier: Apache-2.0
"""What sensitivity runs stored: the loss of each node and the error of each pair of Q/DQ, one table a case."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from pybench.campaign.directory import RunDirectory
from pybench.campaign.layout import SENSITIVITY, TENSOR_ERRORS
from pybench.case import Case
from pybench.dataset import Dataset
from pybench.errors import CorruptError

_NODES: dict[str, Any] = {
    "node": pl.String,
    "operator": pl.String,
    "only_relative_error": pl.Float64,
    "only_top1_agreement_ratio": pl.Float64,
    "only_top1_percent": pl.Float64,
    "all_but_relative_error": pl.Float64,
    "all_but_top1_agreement_ratio": pl.Float64,
    "all_but_top1_percent": pl.Float64,
}
_TENSORS: dict[str, Any] = {
    "tensor": pl.String,
    "is_weight": pl.Int64,
    "scales": pl.Int64,
    "rms": pl.Float64,
    "rounding_ratio": pl.Float64,
    "clipping_ratio": pl.Float64,
    "clipped_ratio": pl.Float64,
}


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """Of one case.

    nodes: one row a node, the largest error of it alone first
    tensors: one row a pair, in running order, weights first
    whole: what all of them together do, and on how many samples
    """

    case: Case
    nodes: pl.DataFrame
    tensors: pl.DataFrame
    whole: Mapping[str, Any]


def read_sensitivities(dataset: Dataset) -> tuple[Sensitivity, ...]:
    """Of each case with such a run; runs do not differ, so the first one counts. Raises CorruptError."""
    found: dict[str, Sensitivity] = {}
    rows = dataset.runs.filter(dataset.runs["outcome"] == "ok").select("case_id", "folder", "block", "attempt")
    for case_id, folder, block, attempt in rows.iter_rows():
        whole = dataset.labels.get((case_id, block), {}).get("sensitivity")
        if case_id in found or whole is None:
            continue
        run = RunDirectory(dataset.campaign.path / folder, case_id, block, attempt)
        nodes = _read(run.file(SENSITIVITY), _NODES)
        tensors = _read(run.file(TENSOR_ERRORS), _TENSORS)
        found[case_id] = Sensitivity(
            dataset.cases[case_id],
            nodes.sort("only_relative_error", descending=True, nulls_last=False, maintain_order=True),
            tensors.sort("is_weight", descending=True, maintain_order=True),
            whole,
        )
    return tuple(found[case.id] for case in dataset.plan.cases if case.id in found)


def _read(file: Path, schema: Mapping[str, Any]) -> pl.DataFrame:
    try:
        frame = pl.read_csv(io.BytesIO(file.read_bytes()), schema_overrides=dict(schema), infer_schema_length=None)
        return frame.select(pl.col(name).cast(kind) for name, kind in schema.items())
    except (OSError, pl.exceptions.PolarsError, UnicodeDecodeError) as error:
        raise CorruptError(f"{file} cannot be read: {str(error).splitlines()[0]}") from error
