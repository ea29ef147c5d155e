# SPDX-License-Identifier: Apache-2.0
"""Finished runs read and put into tables, some hundred at a time, so that several processes can do it.

A task is read whole by one process. What is kept of its runs travels back: columns and shared parts, no JSON.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from pybench.campaign import storage
from pybench.campaign.directory import CampaignDirectory, KnownCase, RunDirectory
from pybench.campaign.hashed import CheckedFiles, HashedRuns
from pybench.campaign.layout import ITERATIONS, LEARNING_CURVE, PREDICTIONS
from pybench.case import Case
from pybench.catalogue.metrics import METRICS
from pybench.catalogue.validities import VALIDITIES
from pybench.collector import no_collection
from pybench.dataset.energy import BoardEnergies, CheckedEnergy, check_energy
from pybench.dataset.environments import EnvironmentFacts
from pybench.dataset.service_levels import evaluate
from pybench.dataset.software import Software, read_software
from pybench.errors import CorruptError

RUN_SCHEMA: dict[str, Any] = {
    "case_id": pl.String,
    "block": pl.Int64,
    "attempt": pl.Int64,
    "outcome": pl.String,
    **{f"valid_{name}": pl.Boolean for name in VALIDITIES},
}
METRIC_SCHEMA: dict[str, Any] = {
    "metric": pl.String,
    "unit": pl.String,
    "window": pl.String,
    "value": pl.Float64,
    "u_standard": pl.Float64,
    "u_absolute": pl.Float64,
    "lower": pl.Float64,
    "upper": pl.Float64,
    "samples": pl.Int64,
    "method": pl.String,
    "reason": pl.String,
}
_STORED_COLUMNS = tuple(METRIC_SCHEMA)[1:]
_METRICS_STORED: dict[str, Any] = {
    "run": pl.UInt32,
    **{name: pl.Categorical if kind == pl.String else kind for name, kind in METRIC_SCHEMA.items()},
}
DECODE = msgspec.json.Decoder().decode  # a third of the time of `json`, and the same values where it reads at all
_PLAIN = 2  # version of marshal: later ones write an object that was there before as a reference
_TASK_RUNS = 200  # read at once by one process: their metrics take ten times the space until they are in a frame
RUNS_SCHEMA: dict[str, Any] = {
    **RUN_SCHEMA,
    **{f"reasons_{name}": pl.List(pl.String) for name in VALIDITIES},
    "reason": pl.String,
    "detail": pl.String,
    "started_utc": pl.String,
    "finished_utc": pl.String,
    "duration_s": pl.Float64,
    "device": pl.String,
    "ids_sha256": pl.String,
    "folder": pl.String,
    "guarded": pl.Boolean,
}
CAUTION_SCHEMA: dict[str, Any] = {
    "case_id": pl.String,
    "block": pl.Int64,
    "code": pl.String,
    "detail": pl.String,
    "metric": pl.String,
    "advice": pl.String,
}
_OVER_UNITS = tuple(name for name, row in METRICS.items() if row.is_over_units)
_NUMBER_OR_NONE = frozenset({int, float, type(None)})
_NO_METRIC: Mapping[None, Mapping[str, Any]] = {None: {}}  # of a run without any


@dataclass(slots=True)
class _LoadedRun:
    """One complete run as read."""

    directory: RunDirectory
    case: Case
    run: Mapping[str, Any]
    summary: Mapping[str, Any]
    environment: Mapping[str, Any]
    guarded: bool
    predicts: bool
    energy: CheckedEnergy | None = None
    levels: Mapping[str, Any] = field(default_factory=dict)
    """Metrics at the bounds that the plan asks about, in the stored form."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What reading any run needs."""

    campaign: CampaignDirectory
    known: Mapping[str, KnownCase]
    blocks: Mapping[str, int]
    """Case id -> how many blocks the plan asks for."""


@dataclass(frozen=True, slots=True)
class RunsToRead:
    """Some finished runs to read, and to check only."""

    counting: Sequence[RunDirectory]
    others: Sequence[RunDirectory]
    hashed: HashedRuns


@dataclass(frozen=True, slots=True)
class ReadRuns:
    """Runs that were read; those that the plan asks for are in `tables`. `predicting`: those of them that are `ok` and
    stored predictions."""

    runs: list[RunDirectory]
    predicting: list[RunDirectory]
    tables: RunTables
    hashed: HashedRuns
    broken: list[str]


class RunTables:
    """What is kept of runs: a run's files are read, put into columns, and let go, because a campaign's JSON is many
    times its numbers."""

    def __init__(self, campaign: CampaignDirectory) -> None:
        self._campaign = campaign
        self._metrics: list[tuple[int, str | None, Mapping[str, Any]]] = []
        """(number of its run, name, as stored)"""
        self._run_rows: list[list[Any]] = []
        self._chunks: list[pl.DataFrame] = []
        self._run_chunks: list[pl.DataFrame] = []
        self._shared: dict[bytes, Any] = {}
        self._count = 0
        self.cautions: list[list[Any]] = []
        self.labels: dict[tuple[str, int], Mapping[str, Any]] = {}
        self.energies = BoardEnergies(campaign)
        self.environments = EnvironmentFacts()
        self.software: dict[str, dict[int, Software]] = {}

    def add(self, run: _LoadedRun) -> None:
        key = _key(run)
        number, self._count = self._count, self._count + 1
        metrics: dict[str, Any] = {**run.summary["metrics"], **run.levels}
        self._metrics += [(number, name, metric) for name, metric in metrics.items() or _NO_METRIC.items()]
        self._run_rows.append(_run_row(run, self._campaign.path))
        self.cautions += _caution_rows(run)
        self.labels[key] = self._share(run.summary["labels"])
        if run.energy is not None:
            self.energies.add(run.directory, run.energy, self._share(run.energy.sensor))
        if run.run["outcome"] == "ok":
            self.software.setdefault(key[0], {})[key[1]] = self._software_of(run.environment)
        self.environments.add(run.environment)

    def finish(self) -> RunTables:
        """Metrics as columns, and without what only helps to add runs: ready for another process."""
        if self._metrics:
            numbers, names, stored = zip(*self._metrics, strict=True)
            # By columns: polars takes three times as long for rows.
            columns = [numbers, names, *([metric.get(name) for metric in stored] for name in _STORED_COLUMNS)]
            named = zip(_METRICS_STORED.items(), columns, strict=True)
            self._chunks.append(
                pl.DataFrame([pl.Series(name, column, kind, strict=False) for (name, kind), column in named])
            )
            self._run_chunks.append(pl.DataFrame(self._run_rows, schema=RUNS_SCHEMA, orient="row"))
        self._metrics, self._run_rows, self._shared = [], [], {}
        self.environments.finish()
        return self

    def extend(self, other: RunTables) -> None:
        """Adds the runs of other tables, which are finished, after those that are here."""
        shift = pl.col("run") + pl.lit(self._count, dtype=pl.UInt32)
        self._chunks += [chunk.with_columns(shift) for chunk in other._chunks]
        self._run_chunks += other._run_chunks
        self._count += other._count
        self.cautions += other.cautions
        self.labels |= other.labels
        self.energies.extend(other.energies)
        for case_id, found in other.software.items():
            self.software.setdefault(case_id, {}).update(found)
        self.environments.extend(other.environments)

    def metrics(self) -> pl.DataFrame:
        return pl.concat([pl.DataFrame(schema=_METRICS_STORED), *self._chunks])

    def runs(self) -> pl.DataFrame:
        """One row a run."""
        return pl.concat([pl.DataFrame(schema=RUNS_SCHEMA), *self._run_chunks])

    def _software_of(self, environment: Mapping[str, Any]) -> Software:
        software = read_software(environment)
        text = _text_of((software.facts, software.packages, software.board_model))
        shared: Software = self._shared.setdefault(text, software)
        return shared

    def _share(self, value: Any) -> Any:
        """One object for all equal values of JSON, and for equal parts of those that differ."""
        text = _text_of(value)
        if text not in self._shared:
            inner = value.items() if isinstance(value, dict) else ()
            parts = {name: self._share(part) if isinstance(part, dict | list) else part for name, part in inner}
            self._shared[text] = parts if isinstance(value, dict) else value
        return self._shared[text]


def _text_of(value: Any) -> bytes:
    """The same bytes for values of JSON that are equal with their types and orders; a fifth of the time of `repr`."""
    return marshal.dumps(value, _PLAIN)


# --- reading ---


def tasks_of(attempts: Iterable[RunDirectory], hashed: HashedRuns, *, hash_all: bool) -> Iterator[RunsToRead]:
    """Of a run's attempts, which follow each other, the last one counts; the others are only checked, and only with
    `hash_all`."""
    counting: list[RunDirectory] = []
    others: list[RunDirectory] = []
    for _, same in groupby(attempts, key=attrgetter("case_id", "block")):
        *earlier, latest = same
        counting.append(latest)
        others += earlier if hash_all else []
        if len(counting) + len(others) >= _TASK_RUNS:
            yield _task(counting, others, hashed)
            counting, others = [], []
    if counting:
        yield _task(counting, others, hashed)


def _task(counting: list[RunDirectory], others: list[RunDirectory], hashed: HashedRuns) -> RunsToRead:
    return RunsToRead(counting, others, hashed.part(one.path for one in (*counting, *others)))


@no_collection()
def read_runs(reading: Reading, task: RunsToRead) -> ReadRuns:
    read = ReadRuns([], [], RunTables(reading.campaign), task.hashed, [])
    for directory in task.counting:
        try:
            run = _read_run(directory, directory.check_files(task.hashed), reading.known)
        except CorruptError as error:
            read.broken.append(error.message)
            continue
        read.runs.append(directory)
        if directory.block <= reading.blocks.get(directory.case_id, 0):
            read.tables.add(run)
            if run.run["outcome"] == "ok" and run.predicts:
                read.predicting.append(directory)
    for directory in task.others:
        try:
            directory.check_files(task.hashed)
        except CorruptError as error:
            read.broken.append(error.message)
    read.tables.finish()
    return read


def _read_run(directory: RunDirectory, checked: CheckedFiles, known: Mapping[str, KnownCase]) -> _LoadedRun:
    files = directory.with_contents(checked, DECODE)
    run = _LoadedRun(
        directory,
        files.read_case(known),
        files.read_run(),
        files.read_summary(),
        files.read_environment(),
        checked.is_guarded,
        files.has(PREDICTIONS),
    )
    _check_run(run)
    _check_tables(run, files)
    content = files.read_energy()
    if content is not None:
        run.energy = check_energy(directory, content, run.summary["windows"], run.environment)
    if directory.case_id in known and run.run["outcome"] == "ok":
        run.levels = evaluate(known[directory.case_id].case, directory, run.summary["metrics"])
    return run


def _check_run(run: _LoadedRun) -> None:
    """Whether stored values have the shape that the tables rely on; raises `CorruptError`."""
    place = run.directory.path
    stored = (run.run["case_id"], run.run["block"])
    if stored != _key(run):
        raise CorruptError(f"{place}: run.json is of case {str(stored[0])[:12]}, block {stored[1]}")
    if not isinstance(run.run["valid"], dict) or not isinstance(run.summary["metrics"], dict):
        raise CorruptError(f"{place}: `valid` and `metrics` must be objects")
    cautions = run.run.get("cautions", [])
    if not isinstance(cautions, list) or not all(isinstance(caution, dict) for caution in cautions):
        raise CorruptError(f"{place}: `cautions` must be a list of objects")
    if not isinstance(run.summary["labels"], dict):
        raise CorruptError(f"{place}: `labels` must be an object")
    windows = run.summary["windows"]
    if not isinstance(windows, dict) or not all(isinstance(window, dict) for window in windows.values()):
        raise CorruptError(f"{place}: `windows` must be an object of objects")
    for name, metric in run.summary["metrics"].items():
        if not isinstance(metric, dict) or not _is_number_or_none(metric.get("value")):
            raise CorruptError(f"{place}: metric {name} is malformed in summary.json")
    for name, verdict in run.run["valid"].items():
        if not isinstance(verdict, dict) or verdict.get("value") not in (True, False, None):
            raise CorruptError(f"{place}: validity {name} is malformed in run.json")


def _check_tables(run: _LoadedRun, files: RunDirectory) -> None:
    """Whether the tables of an `ok` run hold what its summary counts; raises `CorruptError`. A file cut at the end of a
    line would otherwise pass for a shorter measurement."""
    if run.run["outcome"] != "ok":
        return
    stored = run.summary["metrics"]
    units = next((stored[name].get("samples") for name in _OVER_UNITS if name in stored), None)
    timed = run.summary["windows"].get("timing", {}).get("iterations")
    epochs = (run.summary["labels"].get("fit") or {}).get("epochs")
    for name, rows in ((ITERATIONS, timed), (PREDICTIONS, units), (LEARNING_CURVE, epochs)):
        if rows is not None:
            _check_rows(files, name, rows)


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


def _key(run: _LoadedRun) -> tuple[str, int]:
    return run.directory.case_id, run.directory.block


# --- tables ----------------------------------------------------------------------------------------------------------


def _run_head(run: _LoadedRun) -> list[Any]:
    valid = [_verdict(run, name).get("value") for name in VALIDITIES]
    return [run.directory.case_id, run.directory.block, run.directory.attempt, run.run["outcome"], *valid]


def _verdict(run: _LoadedRun, name: str) -> Mapping[str, Any]:
    stored: Mapping[str, Any] = run.run["valid"].get(name, {})
    return stored


def _run_row(run: _LoadedRun, campaign: Path) -> list[Any]:
    return [
        *_run_head(run),
        *(list(_verdict(run, name).get("reasons", ())) for name in VALIDITIES),
        *(run.run.get(name) for name in ("reason", "detail", "started_utc", "finished_utc", "duration_s")),
        _text_or_none(run.summary["labels"].get("device")),
        _text_or_none(run.summary["labels"].get("ids_sha256")),
        storage.relative(run.directory.path, campaign),
        run.guarded,
    ]


def _text_or_none(value: object) -> str | None:
    return None if value is None else str(value)


def _caution_rows(run: _LoadedRun) -> list[list[Any]]:
    names = ("code", "detail", "metric", "advice")
    return [[*_key(run), *(caution.get(name) for name in names)] for caution in run.run.get("cautions", ())]
