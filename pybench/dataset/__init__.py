# SPDX-License-Identifier: Apache-2.0
"""A campaign's directory as tidy polars frames, with no run of the plan dropped and nothing judged.

One row a (run, metric); a run without metrics keeps one row whose metric is null, so that a failed run is never
invisible. The attempt that counts is the latest complete one (docs/formats/rundir.md). Runs that the plan does not ask
for (any more) are read, counted and left out: a plan cut short would else be analysed with runs that `run` says do not
count. Every corrupt run is named, at once.

This module computes no statistic and decides nothing about validity: that is `pybench.analysis`. What a plan asks of
stored iterations (service levels) is evaluated here, because analysis opens no file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

import polars as pl

from pybench.campaign.directory import CampaignDirectory, KnownCase, RunDirectory, open_campaign
from pybench.campaign.hashed import CheckedFiles, HashedRuns
from pybench.campaign.layout import ITERATIONS, LEARNING_CURVE, MAKING, PREDICTIONS, VALIDITIES
from pybench.campaign.resolved_plan import ResolvedPlan, read_resolved_plan
from pybench.case import Case, case_to_json
from pybench.case.factors import FACTORS
from pybench.catalogue.metrics import METRICS
from pybench.dataset.energy import RunEnergy, board_energy
from pybench.dataset.predictions import read_predictions
from pybench.dataset.service_levels import evaluate
from pybench.dataset.software import Software, read_software
from pybench.errors import CorruptError

_DTYPES = {
    "choice": pl.String,
    "text": pl.String,
    "file": pl.String,
    "integer": pl.Int64,
    "number": pl.Float64,
    "boolean": pl.Boolean,
}
_FACTOR_SCHEMA = {name: _DTYPES[factor.kind] for name, factor in FACTORS.items()}
_RUN_SCHEMA: dict[str, Any] = {
    "case_id": pl.String,
    "block": pl.Int64,
    "attempt": pl.Int64,
    "outcome": pl.String,
    **{f"valid_{name}": pl.Boolean for name in VALIDITIES},
}
_METRIC_SCHEMA: dict[str, Any] = {
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
_STORED_COLUMNS = tuple(_METRIC_SCHEMA)[1:]
_METRICS_STORED: dict[str, Any] = {
    "run": pl.UInt32,
    **{name: pl.Categorical if kind == pl.String else kind for name, kind in _METRIC_SCHEMA.items()},
}
_CHUNK_ROWS = 20_000  # of metrics put into a frame at once: as Python objects they take ten times the space
_RUNS_SCHEMA: dict[str, Any] = {
    **_RUN_SCHEMA,
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
_CAUTION_SCHEMA: dict[str, Any] = {
    "case_id": pl.String,
    "block": pl.Int64,
    "code": pl.String,
    "detail": pl.String,
    "metric": pl.String,
    "advice": pl.String,
}
_NO_METRIC: Mapping[None, Mapping[str, Any]] = {None: {}}  # of a run without any
_NAMED_AT_ONCE = 10  # corrupt runs named in one error; the rest is counted


@dataclass(frozen=True, slots=True)
class Environment:
    """One machine and set of versions, as stored, and the runs that it served."""

    content: Mapping[str, Any]
    runs: int


@dataclass(frozen=True, slots=True)
class ArtefactRecord:
    """The making of one artefact: what was asked for (`kind`, `parameters`), how it went, what was found.

    `metrics`: as stored, by name; `labels`: facts that are no numbers; `precision`: the verdict's value.
    """

    digest: str
    kind: str
    parameters: Mapping[str, Any]
    outcome: str
    detail: str | None
    duration_s: float | None
    precision: bool | None
    metrics: Mapping[str, Any]
    labels: Mapping[str, Any]
    guarded: bool
    """Whether the making finished with digests of its files."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """Everything that a campaign's directory holds of its plan, read once.

    `runs`: one row a run, in the order of case ids and blocks; `folder` is relative to the campaign; `guarded`: the run
    finished with digests of its files. `predictions`: one row an (accuracy run, unit); a
    run whose file repeats an earlier one of the same case byte for byte is left out and counted in `prediction_runs`
    (case id -> {file's sha256: blocks}).
    `unfinished`: (case id, block) that has a folder but no complete attempt. `labels`: (case id, block) -> labels.
    `energies`: (case id, block) -> what the run stored of its GPU board's energy, where it sampled one.
    `orphans`: case id -> complete runs of a case that the plan does not hold; `beyond`: complete runs of its cases in
    blocks beyond its repetitions. Neither are in the tables.
    """

    campaign: CampaignDirectory
    plan: ResolvedPlan
    plan_text: str
    cases: Mapping[str, Case]
    runs: pl.DataFrame
    metrics: pl.DataFrame
    """One row a (run, metric): `run` is the row of `runs`. A run without metrics has one row, whose metric is null."""
    cautions: pl.DataFrame
    predictions: pl.DataFrame
    prediction_runs: Mapping[str, Mapping[str, tuple[int, ...]]]
    labels: Mapping[tuple[str, int], Mapping[str, Any]]
    energies: Mapping[tuple[str, int], RunEnergy]
    environments: tuple[Environment, ...]
    software: Mapping[str, Mapping[int, Software]]
    """Case id -> block -> what that `ok` run ran with."""
    artefacts: tuple[ArtefactRecord, ...]
    unfinished: frozenset[tuple[str, int]]
    orphans: Mapping[str, int]
    beyond: int

    @property
    def frame(self) -> pl.DataFrame:
        """One row a (run, metric), columns as in `pybench.load`. Made when asked for: the factors are its largest part,
        and the same for all rows of a case."""
        schema = _FACTOR_SCHEMA | {
            name: _DTYPES[factor.kind]
            for case in self.cases.values()
            for name, factor in case.own_factors().items()
            if name not in FACTORS
        }
        values = {case_id: case.factors() for case_id, case in self.cases.items()}
        factors = [[values[case_id].get(name) for name in schema] for case_id in self.runs["case_id"]]
        heads = pl.DataFrame(factors, schema=schema, orient="row", strict=False)
        heads = heads.hstack(self.runs.select(list(_RUN_SCHEMA)))
        return _beside(heads, self.metrics)

    def metric_rows(self, *columns: str) -> pl.DataFrame:
        """`metrics` with the named columns of `runs` before them."""
        return _beside(self.runs.select(columns), self.metrics)

    @property
    def finished(self) -> int:
        """How many finished runs the tables rest on, the makings of artefacts among them."""
        return self.runs.height + len(self.artefacts)

    @property
    def unguarded(self) -> int:
        """How many of them an older pybench left without digests: nobody can tell whether their files changed."""
        return int((~self.runs["guarded"]).sum()) + sum(not making.guarded for making in self.artefacts)


@dataclass(frozen=True, slots=True)
class _LoadedRun:
    """One complete run as read."""

    directory: RunDirectory
    case: Case
    run: Mapping[str, Any]
    summary: Mapping[str, Any]
    environment: Mapping[str, Any]
    guarded: bool
    energy: RunEnergy | None = None
    levels: Mapping[str, Any] = field(default_factory=dict)
    """Metrics at the bounds that the plan asks about, in the stored form."""


def _beside(heads: pl.DataFrame, metrics: pl.DataFrame) -> pl.DataFrame:
    """The row of each metric's run in front of it."""
    return heads[metrics["run"]].hstack(
        metrics.select(pl.col(name).cast(_METRIC_SCHEMA[name]) for name in _METRIC_SCHEMA)
    )


class _Tables:
    """What is kept of runs: a run's files are read, put into columns, and let go, because a campaign's JSON is many
    times its numbers."""

    def __init__(self, campaign: CampaignDirectory) -> None:
        self._campaign = campaign
        self._metric_rows: list[list[Any]] = []
        self._chunks: list[pl.DataFrame] = []
        self._shared: dict[str, Any] = {}
        self._environments: dict[str, list[Any]] = {}
        self.rows: list[list[Any]] = []
        self.cautions: list[list[Any]] = []
        self.labels: dict[tuple[str, int], Mapping[str, Any]] = {}
        self.energies: dict[tuple[str, int], RunEnergy] = {}
        self.software: dict[str, dict[int, Software]] = {}

    def add(self, run: _LoadedRun) -> None:
        key = _key(run)
        number = len(self.rows)
        metrics: dict[str, Any] = {**run.summary["metrics"], **run.levels}
        for name, metric in metrics.items() or _NO_METRIC.items():
            self._metric_rows.append([number, name, *(metric.get(column) for column in _STORED_COLUMNS)])
        if len(self._metric_rows) >= _CHUNK_ROWS:
            self._flush()
        self.rows.append(_run_row(run, self._campaign))
        self.cautions += _caution_rows(run)
        self.labels[key] = self._share(run.summary["labels"])
        if run.energy is not None:
            self.energies[key] = replace(run.energy, sensor=self._share(run.energy.sensor))
        if run.run["outcome"] == "ok":
            self.software.setdefault(key[0], {})[key[1]] = self._share(read_software(run.environment))
        self._count_environment(run.environment)

    def metrics(self) -> pl.DataFrame:
        self._flush()
        return pl.concat([pl.DataFrame(schema=_METRICS_STORED), *self._chunks])

    def environments(self) -> tuple[Environment, ...]:
        """Distinct environments in the order of their first run. Equality is of the stored content."""
        return tuple(Environment(content, count) for content, count in self._environments.values())

    def _count_environment(self, content: Mapping[str, Any]) -> None:
        found = self._environments.setdefault(repr(content), [None, 0])
        found[1] += 1
        if found[0] is None:
            found[0] = self._with_shared_parts(content)

    def _with_shared_parts(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """Environments of runs differ in load and clocks; their large parts are equal and kept once."""
        parts = {
            name: self._with_shared_parts(part) if isinstance(part, dict) else part for name, part in content.items()
        }
        return {name: self._share(part) if isinstance(part, dict | list) else part for name, part in parts.items()}

    def _share(self, value: Any) -> Any:
        return self._shared.setdefault(repr(value), value)

    def _flush(self) -> None:
        if self._metric_rows:
            self._chunks.append(pl.DataFrame(self._metric_rows, schema=_METRICS_STORED, orient="row", strict=False))
            self._metric_rows = []


def load(directory: str | PathLike[str], *, hash_all: bool = False) -> Dataset:
    """Reads a campaign. Raises `UsageError` when `directory` is none, `CorruptError` naming every finished run that is
    unreadable or not as it was when it finished.

    Runs that changed since they were hashed last are hashed. `hash_all`: every byte of every finished run is, also of
    attempts that do not count.
    """
    campaign = open_campaign(directory)
    plan = read_resolved_plan(campaign)
    planned = {case.id: case for case in plan.cases}
    blocks = {case.id: plan.repetitions.asked(case) for case in plan.cases}
    hashed = HashedRuns(campaign.path, hash_all=hash_all)
    tables = _Tables(campaign)
    found, artefacts = _read_finished(campaign, plan, hashed, tables, hash_all=hash_all)
    hashed.store()
    asked = [run for run in found if run.case_id in planned]
    runs = [run for run in asked if run.block <= blocks[run.case_id]]
    table = pl.DataFrame(tables.rows, schema=_RUNS_SCHEMA, orient="row")
    ok = [run for run, outcome in zip(runs, table["outcome"], strict=True) if outcome == "ok"]
    predictions, prediction_runs = read_predictions(ok)
    started = set(campaign.started())
    return Dataset(
        campaign=campaign,
        plan=plan,
        plan_text=campaign.read_plan_text(),
        cases=planned,
        runs=table,
        metrics=tables.metrics(),
        cautions=pl.DataFrame(tables.cautions, schema=_CAUTION_SCHEMA, orient="row"),
        predictions=predictions,
        prediction_runs=prediction_runs,
        labels=tables.labels,
        energies=tables.energies,
        environments=tables.environments(),
        software=tables.software,
        artefacts=tuple(artefacts),
        unfinished=frozenset(started - {(run.case_id, run.block) for run in found}),
        orphans=Counter(run.case_id for run in found if run.case_id not in planned),
        beyond=len(asked) - len(runs),
    )


# --- reading ---------------------------------------------------------------------------------------------------------


def _read_finished(
    campaign: CampaignDirectory, plan: ResolvedPlan, hashed: HashedRuns, tables: _Tables, *, hash_all: bool
) -> tuple[list[RunDirectory], list[ArtefactRecord]]:
    """The runs that count and the makings, each checked before it is read; with `hash_all` the other finished attempts
    are checked, too. What the plan asks for is put into the tables."""
    runs: list[RunDirectory] = []
    artefacts: list[ArtefactRecord] = []
    broken: list[str] = []
    known = {case.id: KnownCase(case, case_to_json(case)) for case in plan.cases}
    blocks = {case.id: plan.repetitions.asked(case) for case in plan.cases}
    finished = list(campaign.finished())
    counting = {(one.case_id, one.block): one for one in finished}  # of a run's attempts the last one stays
    for directory in finished:
        try:
            if directory.block == MAKING:
                artefacts.append(_read_artefact(directory, directory.check_files(hashed).is_guarded))
            elif counting[directory.case_id, directory.block] is directory:
                run = _read_run(directory, directory.check_files(hashed), known)
                runs.append(directory)
                if directory.block <= blocks.get(directory.case_id, 0):
                    tables.add(run)
            elif hash_all:
                directory.check_files(hashed)
        except CorruptError as error:
            broken.append(error.message)
    if broken:
        rest = len(broken) - _NAMED_AT_ONCE
        more = [f"and {rest} more"] if rest > 0 else []
        raise CorruptError(
            "\n".join([*broken[:_NAMED_AT_ONCE], *more]),
            hint="restore these files and remove added files; or remove the folders of these runs and run again",
        )
    return runs, artefacts


def _read_run(directory: RunDirectory, checked: CheckedFiles, known: Mapping[str, KnownCase]) -> _LoadedRun:
    files = directory.with_contents(checked)
    run = _LoadedRun(
        directory,
        files.read_case(known),
        files.read_run(),
        files.read_summary(),
        files.read_environment(),
        checked.is_guarded,
    )
    _check_run(run)
    _check_tables(run, files)
    content = files.read_energy()
    energy = None if content is None else board_energy(directory, content, run.summary["windows"], run.environment)
    if directory.case_id not in known or run.run["outcome"] != "ok":
        return replace(run, energy=energy)
    levels = evaluate(known[directory.case_id].case, directory, run.summary["metrics"])
    return replace(run, energy=energy, levels=levels)


def _read_artefact(making: RunDirectory, guarded: bool) -> ArtefactRecord:
    recipe, run, summary = making.read_recipe(), making.read_run(), making.read_summary()
    return ArtefactRecord(
        digest=making.case_id,
        kind=str(recipe.get("kind")),
        parameters=recipe.get("parameters", {}),
        outcome=run["outcome"],
        detail=run.get("detail"),
        duration_s=run.get("duration_s"),
        precision=run["valid"]["precision"].get("value"),
        metrics=summary["metrics"],
        labels=summary["labels"],
        guarded=guarded,
    )


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
    over_units = (name for name, row in METRICS.items() if row.is_over_units)
    stored = run.summary["metrics"]
    units = next((stored[name].get("samples") for name in over_units if name in stored), None)
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
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _key(run: _LoadedRun) -> tuple[str, int]:
    return run.directory.case_id, run.directory.block


# --- tables ----------------------------------------------------------------------------------------------------------


def _run_head(run: _LoadedRun) -> list[Any]:
    valid = [_verdict(run, name).get("value") for name in VALIDITIES]
    return [run.directory.case_id, run.directory.block, run.directory.attempt, run.run["outcome"], *valid]


def _verdict(run: _LoadedRun, name: str) -> Mapping[str, Any]:
    stored: Mapping[str, Any] = run.run["valid"].get(name, {})
    return stored


def _run_row(run: _LoadedRun, campaign: CampaignDirectory) -> list[Any]:
    return [
        *_run_head(run),
        *(list(_verdict(run, name).get("reasons", ())) for name in VALIDITIES),
        *(run.run.get(name) for name in ("reason", "detail", "started_utc", "finished_utc", "duration_s")),
        _text_or_none(run.summary["labels"].get("device")),
        _text_or_none(run.summary["labels"].get("ids_sha256")),
        str(run.directory.path.relative_to(campaign.path)),
        run.guarded,
    ]


def _text_or_none(value: object) -> str | None:
    return None if value is None else str(value)


def _caution_rows(run: _LoadedRun) -> list[list[Any]]:
    names = ("code", "detail", "metric", "advice")
    return [[*_key(run), *(caution.get(name) for name in names)] for caution in run.run.get("cautions", ())]
