# SPDX-License-Identifier: Apache-2.0
"""What accuracy runs predicted for each unit of their data, or how well, as one table: columns that a task lacks are
null."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable
from typing import Any

import polars as pl

from pybench.campaign.directory import RunDirectory
from pybench.campaign.layout import PREDICTIONS
from pybench.catalogue.metrics import METRICS
from pybench.errors import CorruptError

_UNIT_NAMES = ("unit_id", "image_id")  # of the same column: images had ids before other units had
_SCORES = tuple(dict.fromkeys(row.score_column for row in METRICS.values() if row.score_column is not None))
_OWN_SCHEMA: dict[str, Any] = {
    "unit_id": pl.String,
    "group": pl.String,
    "label": pl.Int64,
    "top1": pl.Int64,
    "top5_hit": pl.Boolean,
    **dict.fromkeys(_SCORES, pl.Float64),
}
_PREDICTION_SCHEMA: dict[str, Any] = {"case_id": pl.String, "block": pl.Int64, **_OWN_SCHEMA}
_OF_CLASSES = ("label", "top1", "top5_hit")


def read_predictions(runs: Iterable[RunDirectory]) -> tuple[pl.DataFrame, dict[str, dict[str, tuple[int, ...]]]]:
    """Predictions of runs that stored them, each of them `ok`, and case id -> {file's sha256: blocks}.

    A deterministic model repeats itself, so equal files are parsed once.
    """
    blocks: dict[str, dict[str, tuple[int, ...]]] = {}
    frames = [pl.DataFrame(schema=_PREDICTION_SCHEMA)]
    for run in runs:
        content = run.read(PREDICTIONS)
        digest = hashlib.sha256(content).hexdigest()
        seen = blocks.setdefault(run.case_id, {})
        if digest not in seen:
            frames.append(_parse_predictions(content, run))
        seen[digest] = (*seen.get(digest, ()), run.block)
    return pl.concat(frames), blocks


def _parse_predictions(content: bytes, run: RunDirectory) -> pl.DataFrame:
    file = run.file(PREDICTIONS)
    texts = dict.fromkeys((*_UNIT_NAMES, "group"), pl.String)
    try:
        read = pl.read_csv(io.BytesIO(content), schema_overrides=texts, infer_schema_length=None)
        named = read.rename({name: _UNIT_NAMES[0] for name in _UNIT_NAMES if name in read.columns})
        if "top5_hit" in named.columns:
            named = named.with_columns(_as_boolean(named["top5_hit"]).alias("top5_hit"))
        present = [name for name in _OWN_SCHEMA if name in named.columns]
        needed = _OF_CLASSES if set(_SCORES).isdisjoint(present) else ()
        own = named.select(["unit_id", *needed, *(name for name in present if name not in ("unit_id", *needed))])
        frame = own.select(pl.col(name).cast(_OWN_SCHEMA[name]) for name in own.columns)
    except (pl.exceptions.PolarsError, UnicodeDecodeError) as error:
        raise CorruptError(f"{file} cannot be read: {str(error).splitlines()[0]}") from error
    told = frame.drop(_SCORES, strict=False)  # a score that is no number is an empty cell
    if frame["unit_id"].n_unique() != frame.height or any(told.null_count().row(0)):
        raise CorruptError(f"{file}: ids repeat or cells are empty")
    whole = frame.with_columns(pl.lit(run.case_id).alias("case_id"), pl.lit(run.block, dtype=pl.Int64).alias("block"))
    return whole.select(
        pl.col(name) if name in whole.columns else pl.lit(None, dtype=kind).alias(name)
        for name, kind in _PREDICTION_SCHEMA.items()
    )


def _as_boolean(column: pl.Series) -> pl.Series:
    """true/false or 1/0."""
    return (
        column.cast(pl.Boolean)
        if column.dtype != pl.String
        else column.str.to_lowercase().replace_strict({"true": True, "false": False})
    )
