# SPDX-License-Identifier: Apache-2.0
"""A campaign's directory as tidy polars frames, with no run of the plan dropped and nothing judged.

One row a (run, metric); a run without metrics keeps one row whose metric is null, so that a failed run is never
invisible. The attempt that counts is the latest complete one (docs/formats/rundir.md). Runs that the plan does not ask
for (any more) are read, counted and left out. Else a plan cut short would be analysed with runs that `run` says do not
count. Every corrupt run is named, at once.

This module computes no statistic and decides nothing about validity: that is `pybench.analysis`. What a plan asks of
stored iterations (service levels) is evaluated here, because analysis opens no file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from os import PathLike
from typing import Any

import polars as pl

from pybench.campaign.directory import CampaignDirectory, KnownCase, RunDirectory, open_campaign
from pybench.campaign.extract import EXTRACT
from pybench.campaign.hashed import HashedRuns
from pybench.campaign.layout import COMPLETE
from pybench.campaign.resolved_plan import ResolvedPlan, check_plan_text, read_planned, read_resolved_plan
from pybench.case import Case, case_to_json
from pybench.case.factors import FACTORS
from pybench.case.repetitions import Stop
from pybench.collector import no_collection
from pybench.dataset.energy import BoardEnergies
from pybench.dataset.environments import EnvironmentFacts
from pybench.dataset.predictions import read_predictions
from pybench.dataset.run_tables import (
    CAUTION_SCHEMA,
    METRIC_SCHEMA,
    RUN_SCHEMA,
    Reading,
    ReadRuns,
    RunTables,
    read_runs,
    tasks_of,
)
from pybench.dataset.software import Software
from pybench.errors import CorruptError
from pybench.processes import Processes

_DTYPES = {
    "choice": pl.String,
    "text": pl.String,
    "file": pl.String,
    "integer": pl.Int64,
    "number": pl.Float64,
    "boolean": pl.Boolean,
}
_FACTOR_SCHEMA = {name: _DTYPES[factor.kind] for name, factor in FACTORS.items()}
_MOST_PROCESSES = 4  # that begin to read before all tasks are known
_NAMED_AT_ONCE = 10  # corrupt runs named in one error; the rest is counted


@dataclass(frozen=True, slots=True)
class ArtefactRecord:
    """The making of one artefact.

    kind, parameters: what was asked for
    outcome: how it ended
    detail: why it ended so; None: nothing is to be said
    duration_s: None: it was not stored
    precision: whether the precision is the one asked for; None: it was not audited
    metrics: name -> as stored
    labels: facts that are no numbers
    guarded: whether the making finished with digests of its files
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


@dataclass(frozen=True, slots=True)
class Dataset:
    """Everything that a campaign's directory holds of its plan, read once.

    `runs`: one row a run, in the order of case ids and blocks; `folder` is relative to the campaign; `guarded`: the run
    finished with digests of its files.
    `predictions`: one row an (accuracy run, unit). Where the file of a run repeats an earlier one of the same case byte
    for byte, the run is left out. It is counted in `prediction_runs` (case id -> {file's sha256: blocks}).
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
    energies: BoardEnergies
    environments: EnvironmentFacts
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
        heads = heads.hstack(self.runs.select(list(RUN_SCHEMA)))
        return _beside(heads, self.metrics)

    def metric_rows(self, *columns: str) -> pl.DataFrame:
        """`metrics` with the named columns of `runs` before them."""
        return _beside(self.runs.select(columns), self.metrics)

    @property
    def finished(self) -> int:
        """How many finished runs the tables rest on, the makings of artefacts among them."""
        return self.runs.height + len(self.artefacts)

    def digests_of(self, cases: Iterable[Case]) -> list[str]:
        """The digests of the files of each `ok` run of some cases; empty for a run of an older pybench. Equal ones are
        of one run, whose folder was copied."""
        is_meant = self.runs["case_id"].is_in([case.id for case in cases]) & (self.runs["outcome"] == "ok")
        folders = self.runs.filter(is_meant)["folder"]
        return [(self.campaign.path / folder / COMPLETE).read_text(encoding="utf-8") for folder in folders]

    @property
    def unguarded(self) -> int:
        """How many of them an older pybench left without digests: nobody can tell whether their files changed."""
        return int((~self.runs["guarded"]).sum()) + sum(not making.guarded for making in self.artefacts)


def _beside(heads: pl.DataFrame, metrics: pl.DataFrame) -> pl.DataFrame:
    """The row of each metric's run in front of it."""
    return heads[metrics["run"]].hstack(
        metrics.select(pl.col(name).cast(METRIC_SCHEMA[name]) for name in METRIC_SCHEMA)
    )


@no_collection()
def load(
    directory: str | PathLike[str],
    *,
    hash_all: bool = False,
    processes: Processes | None = None,
    stop: Stop | None = None,
) -> Dataset:
    """Reads a campaign. Raises `UsageError` when `directory` is none, `CorruptError` naming every finished run that is
    unreadable or not as it was when it finished.

    Runs that changed since they were hashed last are hashed. `hash_all`: every byte of every finished run is, also of
    attempts that do not count. `processes`: which read the runs; None: this one alone. `stop`: reads a campaign that
    stops when it is decided as if it had stopped there.
    """
    campaign = open_campaign(directory)
    plan = read_resolved_plan(campaign) if stop is None else read_planned(campaign).stopped(stop)
    check_plan_text(campaign, plan)
    planned = {case.id: case for case in plan.cases}
    blocks = {case.id: plan.repetitions.asked(case) for case in plan.cases}
    hashed = HashedRuns(campaign.path, hash_all=hash_all)
    read, artefacts = _read_finished(campaign, plan, hashed, processes or Processes(1), hash_all=hash_all)
    hashed.store()
    tables, found = read.tables, read.runs
    asked = [run for run in found if run.case_id in planned]
    runs = [run for run in asked if run.block <= blocks[run.case_id]]
    predictions, prediction_runs = read_predictions(read.predicting)
    started = set(campaign.started())
    return Dataset(
        campaign=campaign,
        plan=plan,
        plan_text=campaign.read_plan_text(),
        cases=planned,
        runs=tables.runs(),
        metrics=tables.metrics(),
        cautions=pl.DataFrame(tables.cautions, schema=CAUTION_SCHEMA, orient="row"),
        predictions=predictions,
        prediction_runs=prediction_runs,
        labels=tables.labels,
        energies=tables.energies,
        environments=tables.environments,
        software=tables.software,
        artefacts=tuple(artefacts),
        unfinished=frozenset(started - {(run.case_id, run.block) for run in found}),
        orphans=Counter(run.case_id for run in found if run.case_id not in planned),
        beyond=len(asked) - len(runs),
    )


# --- reading ---------------------------------------------------------------------------------------------------------


def _read_finished(
    campaign: CampaignDirectory, plan: ResolvedPlan, hashed: HashedRuns, processes: Processes, *, hash_all: bool
) -> tuple[ReadRuns, list[ArtefactRecord]]:
    """The runs that count and the makings, each checked before it is read; with `hash_all` the other finished attempts
    are checked, too."""
    reading = Reading(
        campaign,
        {
            case.id: KnownCase(case, (stored, case_to_json(case)))
            for case, stored in zip(plan.cases, plan.content["cases"], strict=True)
        },
        {case.id: plan.repetitions.asked(case) for case in plan.cases},
        takes_extracts=not hash_all,
    )
    tasks = tasks_of(campaign.finished_runs(), hashed, hash_all=hash_all)
    first = list(islice(tasks, _MOST_PROCESSES))
    begun = processes.open(partial(read_runs, reading), most=len(first))
    begun.add(first)
    for task in tasks:
        begun.add([task])  # the others read it while this process looks for more runs
    whole = ReadRuns([], [], RunTables(campaign), hashed, [])
    for part in begun.finish():
        whole.runs.extend(part.runs)
        whole.predicting.extend(part.predicting)
        whole.tables.extend(part.tables)
        whole.broken.extend(part.broken)
        hashed.add(part.hashed)
    artefacts: list[ArtefactRecord] = []
    for making in campaign.made():
        try:
            artefacts.append(_read_artefact(making, making.check_files(hashed).is_guarded))
        except CorruptError as error:
            whole.broken.append(error.message)
    if whole.broken:
        rest = len(whole.broken) - _NAMED_AT_ONCE
        more = [f"and {rest} more"] if rest > 0 else []
        damaged = "restore these files and remove added files; or remove the folders of these runs and run again"
        are_extracts = all(EXTRACT in line for line in whole.broken)  # each says what to do
        raise CorruptError("\n".join([*whole.broken[:_NAMED_AT_ONCE], *more]), hint=None if are_extracts else damaged)
    return whole, artefacts


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
