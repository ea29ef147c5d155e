# SPDX-License-Identifier: Apache-2.0
"""What accuracy runs predicted for each image, as one table."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable
from typing import Any

import polars as pl

from pybench.campaign.directory import RunDirectory
from pybench.campaign.layout import PREDICTIONS
from pybench.errors import CorruptError

_PREDICTION_COLUMNS = {"image_id": pl.String, "label": pl.Int64, "top1": pl.Int64, "top5_hit": pl.Boolean}
_PREDICTION_SCHEMA: dict[str, Any] = {"case_id": pl.String, "block": pl.Int64, **_PREDICTION_COLUMNS}


def read_predictions(runs: Iterable[RunDirectory]) -> tuple[pl.DataFrame, dict[str, dict[str, tuple[int, ...]]]]:
    """Predictions of accuracy runs, each of them `ok`, and case id -> {file's sha256: blocks}.

    A deterministic model repeats itself, so equal files are parsed once.
    """
    blocks: dict[str, dict[str, tuple[int, ...]]] = {}
    frames = [pl.DataFrame(schema=_PREDICTION_SCHEMA)]
    for run in runs:
        file = run.file(PREDICTIONS)
        if not file.exists():
            continue
        content = file.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        seen = blocks.setdefault(run.case_id, {})
        if digest not in seen:
            frames.append(_parse_predictions(content, run))
        seen[digest] = (*seen.get(digest, ()), run.block)
    return pl.concat(frames), blocks


def _parse_predictions(content: bytes, run: RunDirectory) -> pl.DataFrame:
    file = run.file(PREDICTIONS)
    try:
        read = pl.read_csv(io.BytesIO(content), schema_overrides={"image_id": pl.String}, infer_schema_length=None)
        frame = read.select(
            pl.lit(run.case_id).alias("case_id"),
            pl.lit(run.block, dtype=pl.Int64).alias("block"),
            pl.col("image_id"),
            pl.col("label").cast(pl.Int64),
            pl.col("top1").cast(pl.Int64),
            _as_boolean(read["top5_hit"]).alias("top5_hit"),
        )
    except (pl.exceptions.PolarsError, UnicodeDecodeError) as error:
        raise CorruptError(f"{file} cannot be read: {str(error).splitlines()[0]}") from error
    if frame["image_id"].n_unique() != frame.height or frame.null_count().row(0) != (0,) * frame.width:
        raise CorruptError(f"{file}: image ids repeat or cells are empty")
    return frame


def _as_boolean(column: pl.Series) -> pl.Series:
    """true/false or 1/0."""
    return (
        column.cast(pl.Boolean)
        if column.dtype != pl.String
        else column.str.to_lowercase().replace_strict({"true": True, "false": False})
    )
