# SPDX-License-Identifier: Apache-2.0
"""A workload's result as the files of its run directory (docs/formats/rundir.md).

What readers of a campaign would refuse is refused here, so that the run fails and not the whole campaign.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pybench.campaign import layout, storage
from pybench.campaign.finished_run import counted_rows
from pybench.case import Case
from pybench.case.yields import metrics_of
from pybench.catalogue.metrics import Metric
from pybench.catalogue.workloads import LATENCY, RECORDED
from pybench.errors import UnknownNameError
from pybench.kernels.profile import profile_to_json
from pybench.measure.quantity import Quantity
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


def store(result: Result, folder: Path, metrics: Mapping[str, Metric], case: Case | None = None) -> None:
    """Writes every table, then summary.json, energy.json and profile.json.

    metrics: the rows of the metrics
    case: of a run, whose tables have the rows that its summary counts; the making of an artefact keeps no tables

    Raises UnknownNameError for a table that is not of the closed list, or a metric without a row. Raises TypeError or
    ValueError, naming the metric, window, label or table, for what is no such thing. Raises ValueError, too, where a
    package returns other metrics than its row yields.
    """
    if not isinstance(result, Result):
        raise TypeError(f"what the workload returned is {_kind(result)}, not a Result")
    if case is not None and case.workload_row.plugin is not None:
        _check_yields(result.metrics, case)
    rows = {}
    for stem, columns in result.tables.items():
        file = TABLES.get(stem)
        if file is None:
            raise UnknownNameError("table of a run", stem, TABLES)
        storage.write_text(folder / file, csv_text(columns))
        rows[file] = max(map(len, columns.values()), default=0)
    summary = {
        "schema_version": layout.SCHEMA_VERSION,
        "metrics": {name: _stored(measured, name, metrics[name].unit) for name, measured in result.metrics.items()},
        "windows": _objects(result.windows),
        "labels": _labels(result.labels),
    }
    for name, counted in counted_rows(summary).items() if case is not None else ():
        if rows.get(name) != counted:
            raise ValueError(f"{name} has {rows.get(name, 'no')} rows, but the result counts {counted}")
    storage.write_json(folder / layout.SUMMARY, summary)
    if result.energy_budget is not None:
        stored = {"schema_version": layout.SCHEMA_VERSION, **result.energy_budget}
        storage.write_json(folder / layout.ENERGY, stored)
    if result.profile is not None:
        stored = {"schema_version": layout.SCHEMA_VERSION, **profile_to_json(result.profile)}
        storage.write_json(folder / layout.PROFILE, stored)


def _check_yields(returned: Collection[str], case: Case) -> None:
    """A column of a report must not be absent without a reason, and what no row yields is in no report.

    What pybench measures by itself may be more than a row yields, or less where a sensor is missing.
    """
    row, metrics = case.workload_row, case.catalogue.metrics
    unnamed = sorted(set(returned) - {*row.metrics(), *RECORDED})
    if unnamed:
        raise ValueError(f"{row.name} returned {unnamed[0]}, which its row does not yield: name it in `yields`")
    promised = metrics_of(case).intersection(row.metrics())
    sensed = {name for name in promised if metrics[name].of is not None or metrics[name].energy is not None}
    lacking = sorted(promised - sensed - (RECORDED - set(LATENCY)) - set(returned))
    if lacking:
        advice = "return it, or a Quantity with the reason why it has no value"
        raise ValueError(f"{row.name} yields {lacking[0]}, and its result does not have it: {advice}")


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


def _stored(measured: object, name: str, unit: str) -> dict[str, Any]:
    """The stored form of a metric. A number that is not finite is a defect of the workload, not a missing value: it
    must not pass for one."""
    if not isinstance(measured, Quantity):
        raise TypeError(f"metric {name} is {_kind(measured)}, not a Quantity")
    stored = measured.as_json(unit)
    for key in ("value", "u_standard", "u_absolute", "lower", "upper"):
        if stored[key] is not None:
            stored[key] = _number(stored[key], f"{name}: {key}")
    if stored["value"] is None and stored["lower"] is None and stored["reason"] is None:
        raise ValueError(f"{name} has neither a value nor a reason")
    return stored


def _number(value: object, what: str) -> float:
    """As JSON has it: also of numpy's scalars, but of no array, text or truth value."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"{what} is {_kind(value)}, not a number")
    number: float = value.item() if isinstance(value, np.generic) else value
    if not math.isfinite(number):
        raise ValueError(f"{what} is {number}")
    return number


def _objects(windows: Mapping[str, Any]) -> Mapping[str, Any]:
    for name, window in windows.items():
        if not isinstance(window, dict):
            raise TypeError(f"window {name} is {_kind(window)}, not a dict of begin_ns, end_ns and iterations")
    return windows


def _labels(labels: Mapping[str, Any]) -> Mapping[str, Any]:
    for name, label in labels.items():
        try:
            json.dumps(label, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise type(error)(f"label {name}: {error}") from error
    return labels


def _kind(value: object) -> str:
    return f"of type {type(value).__name__}"
