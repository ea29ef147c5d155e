# SPDX-License-Identifier: Apache-2.0
"""One finished run as its files tell it, checked: what is stored has the shape that readers rely on.

Whether the files are those that the run left is for `RunDirectory.check_files` to say. Who refuses more here counts
`pybench.campaign.extract.FORMAT` up, because runs with an extract are not looked at again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pybench.campaign.directory import KnownCase, RunDirectory
from pybench.campaign.energy import CheckedEnergy, check_energy
from pybench.campaign.layout import ITERATIONS, LEARNING_CURVE, PREDICTIONS
from pybench.case import Case
from pybench.catalogue.metrics import METRICS
from pybench.errors import CorruptError

_OVER_UNITS = tuple(name for name, row in METRICS.items() if row.is_over_units)
_NUMBER_OR_NONE = frozenset({int, float, type(None)})


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """One complete run as read.

    run, summary, environment: the objects of these files
    predicts: whether it stored predictions
    energy: None where no GPU was sampled
    """

    directory: RunDirectory
    case: Case
    run: Mapping[str, Any]
    summary: Mapping[str, Any]
    environment: Mapping[str, Any]
    predicts: bool
    energy: CheckedEnergy | None


def read_finished_run(files: RunDirectory, known: Mapping[str, KnownCase] | None = None) -> FinishedRun:
    """Raises CorruptError. `known`: as in `RunDirectory.read_case`."""
    case, run, summary = files.read_case(known), files.read_run(), files.read_summary()
    environment = files.read_environment()
    _check_run(files, run, summary)
    _check_tables(files, run, summary)
    content = files.read_energy()
    energy = None if content is None else check_energy(files, content, summary["windows"], environment)
    return FinishedRun(files, case, run, summary, environment, files.has(PREDICTIONS), energy)


def _check_run(files: RunDirectory, run: Mapping[str, Any], summary: Mapping[str, Any]) -> None:
    """Whether stored values have the shape that the tables rely on; raises `CorruptError`."""
    place = files.path
    stored = (run["case_id"], run["block"], run["attempt"])
    if stored != (files.case_id, files.block, files.attempt):
        what = f"case {str(stored[0])[:12]}, block {stored[1]}, attempt {stored[2]}"
        raise CorruptError(f"{place}: run.json is of {what}")
    if not isinstance(run["valid"], dict) or not isinstance(summary["metrics"], dict):
        raise CorruptError(f"{place}: `valid` and `metrics` must be objects")
    cautions = run.get("cautions", [])
    if not isinstance(cautions, list) or not all(isinstance(caution, dict) for caution in cautions):
        raise CorruptError(f"{place}: `cautions` must be a list of objects")
    if not isinstance(summary["labels"], dict):
        raise CorruptError(f"{place}: `labels` must be an object")
    windows = summary["windows"]
    if not isinstance(windows, dict) or not all(isinstance(window, dict) for window in windows.values()):
        raise CorruptError(f"{place}: `windows` must be an object of objects")
    for name, metric in summary["metrics"].items():
        if not isinstance(metric, dict) or not _is_number_or_none(metric.get("value")):
            raise CorruptError(f"{place}: metric {name} is malformed in summary.json")
    for name, verdict in run["valid"].items():
        if not isinstance(verdict, dict) or verdict.get("value") not in (True, False, None):
            raise CorruptError(f"{place}: validity {name} is malformed in run.json")


def _check_tables(files: RunDirectory, run: Mapping[str, Any], summary: Mapping[str, Any]) -> None:
    """Whether the tables of an `ok` run hold what its summary counts; raises `CorruptError`. A file cut at the end of a
    line would otherwise pass for a shorter measurement."""
    if run["outcome"] != "ok":
        return
    for name, rows in counted_rows(summary).items():
        _check_rows(files, name, rows)


def counted_rows(summary: Mapping[str, Any]) -> dict[str, int]:
    """File of a table -> how many rows the summary says that it has."""
    stored, fit = summary["metrics"], summary["labels"].get("fit")
    counts = {
        ITERATIONS: summary["windows"].get("timing", {}).get("iterations"),
        PREDICTIONS: next((stored[name].get("samples") for name in _OVER_UNITS if name in stored), None),
        LEARNING_CURVE: fit.get("epochs") if isinstance(fit, Mapping) else None,
    }
    return {name: rows for name, rows in counts.items() if rows is not None}


def _check_rows(files: RunDirectory, name: str, rows: int) -> None:
    """Whether a table is there and has `rows` whole lines below its header."""
    file = files.file(name)
    try:
        found = files.read(name).count(b"\n") - 1
    except OSError as error:
        raise CorruptError(f"{file} cannot be read: {error.strerror}") from error
    if found != rows:
        raise CorruptError(f"{file} has {max(found, 0)} complete rows, but summary.json counts {rows}")


def _is_number_or_none(value: object) -> bool:
    return type(value) in _NUMBER_OR_NONE  # JSON has no other kinds of numbers, and a bool is none
