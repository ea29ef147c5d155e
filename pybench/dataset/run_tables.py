# SPDX-License-Identifier: Apache-2.0
"""Finished runs read and put into tables, some hundred at a time, so that several processes can do it.

A task is read whole by one process. What is kept of its runs travels back: columns and shared parts, no JSON.
"""

from __future__ import annotations

import contextlib
import marshal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import polars as pl

from pybench.campaign import extract, storage
from pybench.campaign.directory import CampaignDirectory, KnownCase, RunDirectory
from pybench.campaign.extract import METRIC_KINDS, caution_values, run_values
from pybench.campaign.finished_run import FinishedRun, read_finished_run
from pybench.campaign.hashed import CheckedFiles, HashedRuns
from pybench.case.service_levels import rows_of
from pybench.catalogue.validities import VALIDITIES
from pybench.collector import no_collection
from pybench.dataset.energy import BoardEnergies
from pybench.dataset.environments import EnvironmentFacts
from pybench.dataset.service_levels import evaluate
from pybench.dataset.software import SOFTWARE_PARTS, Software, read_software, read_software_parts
from pybench.errors import CorruptError

RUN_SCHEMA: dict[str, Any] = {
    "case_id": pl.String,
    "block": pl.Int64,
    "attempt": pl.Int64,
    "outcome": pl.String,
    **{f"valid_{name}": pl.Boolean for name in VALIDITIES},
}
_KINDS = {str: pl.String, float: pl.Float64, int: pl.Int64}
METRIC_SCHEMA: dict[str, Any] = {
    "metric": pl.String,
    **{name: _KINDS[kind] for name, kind in METRIC_KINDS.items()},
}
_METRICS_STORED: dict[str, Any] = {
    "run": pl.UInt32,
    **{name: pl.Categorical if kind == pl.String else kind for name, kind in METRIC_SCHEMA.items()},
}
_OF_LINES = {name: kind for name, kind in _METRICS_STORED.items() if name != "run"}
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
_NO_METRIC: Mapping[None, Mapping[str, Any]] = {None: {}}  # of a run without any
_NO_LINE = b"," * len(METRIC_KINDS) + b"\n"


class Extract(msgspec.Struct, array_like=True):
    """The JSON of `pybench.campaign.extract`, of which equal parts are decoded once.

    case_id, block, attempt: as run.json has them
    values: `run_values`
    cautions: `caution_values`
    environment: name -> what environment.json has of it
    energy: windows, spans and limit, as `CheckedEnergy` has them; None where `sensor` is null
    metrics: how many lines of metrics follow
    """

    case_id: str
    block: int
    attempt: int
    values: list[Any]
    cautions: list[list[Any]]
    labels: msgspec.Raw
    environment: dict[str, msgspec.Raw]
    sensor: msgspec.Raw
    energy: list[Any] | None
    metrics: int
    predicts: bool


_DECODE_EXTRACT = msgspec.json.Decoder(Extract).decode


@dataclass(frozen=True, slots=True)
class Reading:
    """What reading any run needs."""

    campaign: CampaignDirectory
    known: Mapping[str, KnownCase]
    blocks: Mapping[str, int]
    """Case id -> how many blocks the plan asks for."""
    takes_extracts: bool
    """Whether what was stored when a run ended stands for its files."""


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
        self._lines: list[tuple[int, int, bytes]] = []
        """(number of a run, how many lines, its metrics as lines of an extract)"""
        self._run_rows: list[list[Any]] = []
        self._chunks: list[pl.DataFrame] = []
        self._run_chunks: list[pl.DataFrame] = []
        self._shared: dict[bytes, Any] = {}
        self._shared_texts: dict[bytes, Any] = {}
        self._read_software: dict[tuple[bytes, ...], Software] = {}
        self._count = 0
        self.cautions: list[list[Any]] = []
        self.labels: dict[tuple[str, int], Mapping[str, Any]] = {}
        self.energies = BoardEnergies(campaign)
        self.environments = EnvironmentFacts()
        self.software: dict[str, dict[int, Software]] = {}

    def add(self, run: FinishedRun, levels: Mapping[str, Any], guarded: bool) -> None:
        """`levels`: metrics at the bounds that the plan asks about, in the stored form."""
        self._end_lines()
        directory = run.directory
        number = self._add_run(directory, run_values(run), caution_values(run), guarded)
        metrics: dict[str, Any] = {**run.summary["metrics"], **levels}
        self._metrics += [(number, name, metric) for name, metric in metrics.items() or _NO_METRIC.items()]
        self.labels[directory.case_id, directory.block] = self._share(run.summary["labels"])
        if run.energy is not None:
            energy = run.energy
            rest = [energy.windows, energy.spans, energy.power_limit_w]
            self.energies.add(directory, self._share(energy.sensor), rest)
        if run.run["outcome"] == "ok":
            self._add_software(directory, read_software(run.environment))
        self.environments.add(run.environment)

    def add_extract(self, directory: RunDirectory, stored: Extract, lines: bytes) -> None:
        """`add`, of what was kept when the run ended."""
        self._end_metrics()
        number = self._add_run(directory, stored.values, stored.cautions, True)
        self._lines.append((number, stored.metrics, lines) if stored.metrics else (number, 1, _NO_LINE))
        self.labels[directory.case_id, directory.block] = self._share_text(stored.labels)
        if stored.energy is not None:
            self.energies.add(directory, self._share_text(stored.sensor), stored.energy)
        if stored.values[0] == "ok":
            self._add_software(directory, self._software_of(stored.environment))
        self.environments.add_parts(stored.environment)

    def _add_run(self, directory: RunDirectory, values: list[Any], cautions: list[list[Any]], guarded: bool) -> int:
        """Returns the run's number."""
        key = directory.case_id, directory.block
        folder = storage.relative(directory.path, self._campaign.path)
        self._run_rows.append([*key, directory.attempt, *values, folder, guarded])
        self.cautions += [[*key, *caution] for caution in cautions]
        number, self._count = self._count, self._count + 1
        return number

    def _add_software(self, directory: RunDirectory, software: Software) -> None:
        text = _text_of((software.facts, software.packages, software.board_model))
        shared: Software = self._shared.setdefault(text, software)
        self.software.setdefault(directory.case_id, {})[directory.block] = shared

    def _software_of(self, environment: Mapping[str, msgspec.Raw]) -> Software:
        parts = tuple(bytes(environment.get(name, b"")) for name in SOFTWARE_PARTS)
        if parts not in self._read_software:
            named = {name: DECODE(part) for name, part in zip(SOFTWARE_PARTS, parts, strict=True) if part}
            self._read_software[parts] = read_software_parts(named)
        return self._read_software[parts]

    def finish(self) -> RunTables:
        """Metrics as columns, and without what only helps to add runs: ready for another process."""
        self._end_metrics()
        self._end_lines()
        if self._run_rows:
            self._run_chunks.append(pl.DataFrame(self._run_rows, schema=RUNS_SCHEMA, orient="row"))
        self._run_rows, self._shared, self._shared_texts, self._read_software = [], {}, {}, {}
        self.environments.finish()
        return self

    def _end_metrics(self) -> None:
        """Puts the metrics of runs without extracts into columns."""
        if self._metrics:
            numbers, names, stored = zip(*self._metrics, strict=True)
            # By columns: polars takes three times as long for rows.
            columns = [numbers, names, *([metric.get(name) for metric in stored] for name in METRIC_KINDS)]
            named = zip(_METRICS_STORED.items(), columns, strict=True)
            self._chunks.append(
                pl.DataFrame([pl.Series(name, column, kind, strict=False) for (name, kind), column in named])
            )
        self._metrics = []

    def _end_lines(self) -> None:
        """`_end_metrics` of the runs with extracts: ten times as quick, because no metric becomes an object."""
        if self._lines:
            numbers, counts, lines = zip(*self._lines, strict=True)
            read = pl.read_csv(b"".join(lines), has_header=False, schema=_OF_LINES)
            runs = pl.Series("run", np.repeat(np.array(numbers, np.uint32), counts))
            self._chunks.append(pl.DataFrame([runs, *read.get_columns()]))
        self._lines = []

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

    def _share_text(self, text: msgspec.Raw) -> Any:
        """`_share` of a value as JSON."""
        found = bytes(text)
        if found not in self._shared_texts:
            self._shared_texts[found] = self._share(DECODE(found))
        return self._shared_texts[found]

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
            if _add_run(read, reading, directory, directory.check_files(task.hashed)):
                read.predicting.append(directory)
        except CorruptError as error:
            read.broken.append(error.message)
            continue
        read.runs.append(directory)
    for directory in task.others:
        try:
            directory.check_files(task.hashed)
        except CorruptError as error:
            read.broken.append(error.message)
    read.tables.finish()
    return read


def _add_run(read: ReadRuns, reading: Reading, directory: RunDirectory, checked: CheckedFiles) -> bool:
    """Adds the run where the plan asks for it. Returns whether it was added, is `ok` and stored predictions."""
    known = reading.known.get(directory.case_id)
    is_asked = directory.block <= reading.blocks.get(directory.case_id, 0)
    has_bounds = known is not None and bool(rows_of(known.case))
    files = directory.with_contents(checked, DECODE)
    if reading.takes_extracts and checked.is_guarded and is_asked and not has_bounds:
        found = _read_extract(files)
        if found is not None:
            stored, lines = found
            read.tables.add_extract(directory, stored, lines)
            return stored.predicts and stored.values[0] == "ok"
    run = read_finished_run(files, reading.known)
    if not reading.takes_extracts:
        extract.check(run)
    is_ok = run.run["outcome"] == "ok"
    levels = evaluate(known.case, directory, run.summary["metrics"]) if known is not None and is_ok else {}
    if is_asked:
        read.tables.add(run, levels, checked.is_guarded)
    return is_asked and is_ok and run.predicts


def _read_extract(files: RunDirectory) -> tuple[Extract, bytes] | None:
    """None where a run has no extract, or one that is not of this run: its folder was moved."""
    parts = extract.read(files)
    if parts is None:
        return None
    line, lines = parts
    with contextlib.suppress(msgspec.MsgspecError):
        stored = _DECODE_EXTRACT(line)
        of_run = (stored.case_id, stored.block, stored.attempt)
        if of_run == (files.case_id, files.block, files.attempt):
            return stored, lines
    return None
