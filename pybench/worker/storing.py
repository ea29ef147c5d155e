# SPDX-License-Identifier: Apache-2.0
"""A workload's result as the files of its run directory (docs/formats/rundir.md)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pybench.campaign import layout, storage
from pybench.catalogue.metrics import Metric
from pybench.kernels.profile import profile_to_json
from pybench.measurement.result import Result

TABLES = {
    "iterations": layout.ITERATIONS,
    "iterations_depth1": layout.ITERATIONS_ALONE,
    "core_probes": layout.CORE_PROBES,
    "predictions": layout.PREDICTIONS,
    "sensitivity": layout.SENSITIVITY,
    "tensor_errors": layout.TENSOR_ERRORS,
    "learning_curve": layout.LEARNING_CURVE,
    "power_samples": layout.POWER_SAMPLES,
    "power_polled": layout.POWER_POLLED,
    "power_drains": layout.POWER_DRAINS,
    "energy_counter": layout.ENERGY_COUNTER,
    "clocks": layout.CLOCKS,
    "gpu_processes": layout.GPU_PROCESSES,
    "power_rails": layout.POWER_RAILS,
}


def store(result: Result, folder: Path, metrics: Mapping[str, Metric]) -> None:
    """Writes every table, then summary.json, energy.json and profile.json. `metrics`: the rows of the metrics.

    Raises KeyError for a table that is not of the closed list, UnknownNameError for a metric without a row.
    """
    for stem, columns in result.tables.items():
        storage.write_text(folder / TABLES[stem], csv_text(columns))
    summary = {
        "schema_version": layout.SCHEMA_VERSION,
        "metrics": {
            name: _finite(measured.as_json(metrics[name].unit), name) for name, measured in result.metrics.items()
        },
        "windows": result.windows,
        "labels": result.labels,
    }
    storage.write_json(folder / layout.SUMMARY, summary)
    if result.energy_budget is not None:
        stored = {"schema_version": layout.SCHEMA_VERSION, **result.energy_budget}
        storage.write_json(folder / layout.ENERGY, stored)
    if result.profile is not None:
        stored = {"schema_version": layout.SCHEMA_VERSION, **profile_to_json(result.profile)}
        storage.write_json(folder / layout.PROFILE, stored)


def csv_text(columns: Mapping[str, np.ndarray[Any, Any]]) -> str:
    """Columns of equal length as CSV with a header. NaN, the arrays' way to say missing, becomes an empty field."""
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        raise ValueError(f"columns of {sorted(lengths)} rows in one table: {', '.join(columns)}")
    fields = [_fields(column) for column in columns.values()]
    lines = [",".join(columns), *map(",".join, zip(*fields, strict=True))]
    return "\n".join(lines) + "\n"


def _fields(column: np.ndarray[Any, Any]) -> list[str]:
    if column.dtype.kind == "f":
        return ["" if value != value else repr(value) for value in column.tolist()]
    if column.dtype.kind == "b":
        return ["1" if value else "0" for value in column.tolist()]
    return [_quoted(str(value)) for value in column.tolist()]


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\n\r') else text


def _finite(stored: dict[str, Any], name: str) -> dict[str, Any]:
    """A number that is not finite is a defect of the workload, not a missing value: it must not pass for one."""
    for key in ("value", "u_standard", "u_absolute", "lower", "upper"):
        if stored[key] is not None and not np.isfinite(stored[key]):
            raise ValueError(f"{name}: {key} is {stored[key]}")
    if stored["value"] is None and stored["lower"] is None and stored["reason"] is None:
        raise ValueError(f"{name} has neither a value nor a reason")
    return stored
