# SPDX-License-Identifier: Apache-2.0
"""A campaign from its resolved plan to complete run directories, however often it is interrupted on the way.

Nothing is remembered outside the directory: what is missing, killed or interrupted is found by looking, so running
again continues, and any number of runners may work on one campaign.
"""

from __future__ import annotations

import shutil
import signal
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from pybench.campaign import layout, storage
from pybench.campaign.batch_job import SLURM
from pybench.campaign.claims import Claimant, claim, is_alive, read_claimant, this_process, touch
from pybench.campaign.directory import CampaignDirectory, RunDirectory, not_a_campaign
from pybench.campaign.recipe import Recipe, in_making_order
from pybench.campaign.resolved_plan import ResolvedPlan, parse_resolved_plan, read_resolved_plan
from pybench.case import Case, case_to_json, catalogue_of
from pybench.catalogue.causes import Cause
from pybench.catalogue.plugins import Plugin, refuse_change
from pybench.catalogue.reasons import Reason
from pybench.errors import UnsupportedError, UsageError
from pybench.launcher import FileAccess
from pybench.machine import Machine
from pybench.runner.interruption import Interruption
from pybench.runner.outcome import Outcome, judge, no_result, run_record
from pybench.runner.prepare import Maker, prepare
from pybench.runner.process import run_worker
from pybench.runner.schedule import WHOLE, PlannedRun, Shard, planned_runs
from pybench.runner.sensors import SensorSource, prepare_sensors
from pybench.runner.whole_blocks import done_elsewhere

AGAIN = frozenset({"killed", "interrupted"})  # not the case's fault: running again does these without being asked


@dataclass(frozen=True, slots=True)
class Options:
    """What one call of `run` was asked for."""

    shard: Shard = WHOLE
    selected: frozenset[str] | None = None
    """Ids of cases; None for all."""
    rerun: frozenset[str] = frozenset()
    """Ids of cases whose runs are done once more."""
    timeout_s: float = 3600.0
    max_failures: int | None = None
    retry_failed: bool = False
    whole_blocks: bool = False
    """A block that another machine began, and that is not done, is done here from its beginning."""
    may_measure_sensors: bool = True
    """False: a board whose power sensor was never measured stays unmeasured."""


class Listener(Protocol):
    """Who is told what happens, in the order it happens. `done`: outcomes of the runs that are not done again."""

    def begin(self, pending: int, done: Mapping[str, int]) -> None: ...
    def preparing(self, recipe: Recipe) -> None: ...
    def running(self, planned: PlannedRun) -> None: ...
    def finished(self, planned: PlannedRun, outcome: Outcome, wall_s: float) -> None: ...
    def skipped(self) -> None: ...
    def stopping(self) -> None: ...
    def note(self, text: str) -> None: ...


@dataclass(slots=True)
class Tally:
    """What the selected part of a campaign looks like after running.

    outcomes: outcome -> runs
    uncovered: runs without an outcome that covers their cell
    invalid: part of a run that is required and not true -> runs
    interrupted: whether the user or a signal stopped it
    checkpointed: whether SIGUSR1 stopped it, as batch jobs do
    too_many_failures: whether it ended itself for its failures
    busy: runs that another runner has claimed and not done yet
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    uncovered: int = 0
    invalid: Counter[str] = field(default_factory=Counter)
    interrupted: bool = False
    checkpointed: bool = False
    too_many_failures: bool = False
    busy: int = 0

    @property
    def is_success(self) -> bool:
        return self.uncovered == 0 and self.outcomes["ok"] > 0 and not self.invalid

    def add(self, other: Tally) -> None:
        """Counts the runs of another part of the campaign, too."""
        self.outcomes += other.outcomes
        self.uncovered += other.uncovered
        self.invalid += other.invalid

    @property
    def left(self) -> int:
        return sum(self.outcomes[name] for name in ("missing", *AGAIN))


def open_for_running(
    campaign: CampaignDirectory, content: Mapping[str, Any], plan_text: str
) -> tuple[list[Case], list[Case]]:
    """Creates the directory or continues it with a plan that may have changed.

    Returns the cases that the plan adds and those it orphans (their runs stay and no longer count). Raises UsageError
    where the directory is of a plan with another name. So it does where a package that adds rows has changed since the
    campaign began: its runs are others of the same cases.
    """
    plan = parse_resolved_plan(content)
    storage.make_folder(campaign.path, exist_ok=True)
    # Looked at before the plan is looked for, which a runner that starts beside this one writes before all else.
    holds_files = any(not entry.name.endswith(storage.TEMPORARY_SUFFIX) for entry in campaign.path.iterdir())
    known = read_resolved_plan(campaign) if campaign.plan_resolved.exists() else None
    if holds_files and known is None:
        raise not_a_campaign(campaign)
    if known is not None and known.name != plan.name:
        raise UsageError(
            f"{campaign.path} is the campaign `{known.name}`, and this plan is `{plan.name}`",
            hint=f"give another folder with --out, or name the plan `{known.name}` to change that campaign",
        )
    former = known.cases if known else None
    refuse_change(_plugins(former or ()), _plugins(plan.cases))
    storage.write_json(campaign.plan_resolved, content)
    storage.write_text(campaign.plan, plan_text)
    storage.make_folder(campaign.artefacts, exist_ok=True)
    if former is None:
        return [], []
    old, new = {case.id for case in former}, {case.id for case in plan.cases}
    return [case for case in plan.cases if case.id not in old], [case for case in former if case.id not in new]


def _plugins(cases: Iterable[Case]) -> list[Plugin]:
    return list(dict.fromkeys(plugin for case in cases for plugin in case.plugins()))


def run_campaign(
    campaign: CampaignDirectory, plan: ResolvedPlan, options: Options, machine: Machine, listener: Listener
) -> Tally:
    """Does everything that is missing and selected; returns how the selected part then stands."""
    claimant = this_process()
    planned = [
        run for run in planned_runs(plan.cases, plan.seed, plan.repetitions, options.shard) if _selected(run, options)
    ]
    pending = [run for run in planned if _is_wanted(campaign, run, options)]
    again: frozenset[tuple[str, int]] = frozenset()
    if options.whole_blocks:
        again = done_elsewhere(campaign, planned, pending, claimant, machine)
        wanted = {(run.case.id, run.block) for run in pending} | again
        pending = [run for run in planned if (run.case.id, run.block) in wanted]
    with _interruption(claimant) as interruption:
        to_do = {(run.case.id, run.block) for run in pending}
        kept = [run for run in planned if (run.case.id, run.block) not in to_do]
        listener.begin(len(pending), _outcomes(campaign, kept))
        unsupported = {run.case.id: machine.unsupported(run.case) for run in pending}
        maker = _maker(campaign, plan, options, machine, claimant, interruption, listener)
        runnable = {run.case.id: run.case for run in pending if unsupported[run.case.id] is None}
        made = prepare(_recipes(list(runnable.values()), machine), maker)
        if runnable and not interruption.asked:
            source = SensorSource(machine, options.may_measure_sensors, listener.note, lambda: interruption.asked)
            prepare_sensors(campaign, machine.boards(list(runnable.values())), source)
        runner = _Runner(campaign, plan, options, machine, claimant, interruption, unsupported, made, listener, again)
        runner.run_all(pending)
        result = tally(campaign, plan, planned)
    # After the context, so that no signal that it took is lost.
    result.interrupted = interruption.asked
    result.checkpointed = interruption.asked_by == signal.SIGUSR1 and not interruption.job_is_ending
    result.busy = sum(campaign.latest(run.case.id, run.block) is None for run in runner.busy)
    result.too_many_failures = runner.too_many_failures
    return result


def make_artefacts(
    campaign: CampaignDirectory, plan: ResolvedPlan, options: Options, machine: Machine, listener: Listener
) -> tuple[dict[str, Outcome], signal.Signals | None]:
    """Makes what the selected cases that this machine can run need, and starts no run.

    Returns digest -> outcome, and the signal that interrupted it. Several callers with filters of their own share the
    work.
    """
    selected = [case for case in plan.cases if options.selected is None or case.id in options.selected]
    runnable = [case for case in selected if machine.unsupported(case) is None]
    claimant = this_process()
    with _interruption(claimant) as interruption:
        maker = _maker(campaign, plan, options, machine, claimant, interruption, listener)
        return prepare(_recipes(runnable, machine), maker), interruption.asked_by


def pending_runs(campaign: CampaignDirectory, plan: ResolvedPlan, options: Options) -> list[PlannedRun]:
    """What `run_campaign` would do with these options, in its order."""
    planned = planned_runs(plan.cases, plan.seed, plan.repetitions, options.shard)
    return [run for run in planned if _selected(run, options) and _is_wanted(campaign, run, options)]


def tally(campaign: CampaignDirectory, plan: ResolvedPlan, planned: Sequence[PlannedRun]) -> Tally:
    """Reads how each planned run stands."""
    result = Tally()
    for run in planned:
        latest = campaign.latest(run.case.id, run.block)
        record = latest.read_run() if latest else None
        result.outcomes[record["outcome"] if record else "missing"] += 1
        if record is None or record["outcome"] not in layout.COVERING:
            result.uncovered += 1
        elif record["outcome"] == "ok":
            applicable = [name for name in plan.require if _applies(name, run.case)]
            result.invalid.update(name for name in applicable if record["valid"][name]["value"] is not True)
    return result


def uncounted(campaign: CampaignDirectory, plan: ResolvedPlan) -> int:
    """How many runs of the plan's cases lie in blocks that the plan does not have: it had more repetitions before."""
    blocks = {case.id: plan.repetitions.of(case) for case in plan.cases}
    return sum(attempt.block > blocks.get(attempt.case_id, attempt.block) for attempt in campaign.runs())


@dataclass(slots=True)
class _Runner:
    """One pass over the pending runs."""

    campaign: CampaignDirectory
    plan: ResolvedPlan
    options: Options
    machine: Machine
    claimant: Claimant
    interruption: Interruption
    unsupported: Mapping[str, UnsupportedError | None]
    made: Mapping[str, Outcome]
    listener: Listener
    again: frozenset[tuple[str, int]]
    failures: int = 0
    busy: list[PlannedRun] = field(default_factory=list)
    too_many_failures: bool = False
    said_stopping: bool = False

    def run_all(self, pending: Sequence[PlannedRun]) -> None:
        for planned in pending:
            if self.interruption.asked:
                return
            if self.options.max_failures is not None and self.failures >= self.options.max_failures:
                self.too_many_failures = True
                return
            attempt = self._claim(planned)
            if attempt is None:
                self.listener.skipped()
            else:
                self._run(planned, attempt)

    def _claim(self, planned: PlannedRun) -> RunDirectory | None:
        """The next attempt at a run, claimed; None when another runner is at it, or has done it meanwhile."""
        claims = self.campaign.claims(planned.case.id, planned.block)
        last = claims[-1] if claims else None
        if last and not last.is_complete and is_alive(last.claim, self.claimant):
            self._warn_of_neighbour(last)
            self.busy.append(planned)
            return None
        attempt = self.campaign.attempt(planned.case.id, planned.block, last.attempt + 1 if last else 1)
        is_wanted = (planned.case.id, planned.block) in self.again or _is_wanted(self.campaign, planned, self.options)
        if not is_wanted or not claim(attempt.claim, self.claimant):
            return None
        return attempt

    def _warn_of_neighbour(self, attempt: RunDirectory) -> None:
        """Says once that another process measures on this machine at the same time."""
        other = read_claimant(attempt.claim)
        if other is None or other.boot_id != self.claimant.boot_id or self.busy:
            return
        self.listener.note(
            f"process {other.pid} runs this campaign on this machine, too, and each disturbs the times of the other: "
            "stop one of them, unless each has a GPU and CPUs of its own"
        )

    def _run(self, planned: PlannedRun, attempt: RunDirectory) -> None:
        self.listener.running(planned)
        outcome, wall_s = self._attempt(planned, attempt)
        if outcome.name not in layout.COVERING:
            self.failures += 1
        self.listener.finished(planned, outcome, wall_s)

    def _attempt(self, planned: PlannedRun, attempt: RunDirectory) -> tuple[Outcome, float]:
        storage.make_folder(attempt.path)
        storage.write_json(attempt.file(layout.CASE), self._request(planned, attempt))
        outcome = self._known_beforehand(planned.case)
        end = None
        if outcome is None:
            arguments = [str(attempt.path.absolute()), "--campaign", str(self.campaign.path.absolute())]
            end = run_worker(
                self.machine.launcher,
                arguments,
                attempt.path,
                self._access(planned.case, attempt),
                self.options.timeout_s,
                self.interruption,
                lambda: self._beat(attempt),
            )
            error = no_result(end)
            if error:
                shutil.rmtree(attempt.path)
                attempt.claim.unlink()
                raise error
            outcome = judge(end)
            if self._is_for_batch_system_to_say(outcome):
                said = "the batch system ended this job; the reason is added after the job"
                return Outcome("interrupted", Reason(Cause.JOB_ENDING, said)), end.wall_s
        attempt.complete(run_record(planned.case.id, planned.block, attempt.attempt, outcome, end))
        return outcome, end.wall_s if end else 0.0

    def _is_for_batch_system_to_say(self, outcome: Outcome) -> bool:
        """Whether a Slurm job is being ended around this run.

        Only Slurm knows whether for its time, for a preemption or because somebody cancelled it. So the attempt stays
        open and `pybench.cluster.ending` closes it.

        The worker gets SIGTERM when the runner does, and may be seen to end before the runner's own arrives.
        """
        if outcome.name not in AGAIN or self.claimant.job is None or self.claimant.job.scheduler != SLURM:
            return False
        killed = Outcome("killed", Reason(Cause.SIGNAL, names=("SIGTERM",)))
        return self.interruption.job_is_ending or outcome == killed

    def _access(self, case: Case, attempt: RunDirectory) -> FileAccess:
        """A worker writes nothing of the campaign but its own run's folder."""
        factors = case.factors()
        files = tuple(Path(self.plan.files[factors[name]]) for name, _ in case.sources)
        return FileAccess(writes=(attempt.path.absolute(),), reads=(self.campaign.path.absolute(), *files))

    def _beat(self, attempt: RunDirectory) -> None:
        """Each time the wait for a worker wakes up: the heartbeat, and the answer to whoever asked to stop."""
        touch(attempt.claim)
        if self.interruption.asked and not self.said_stopping:
            self.said_stopping = True
            self.listener.stopping()

    def _known_beforehand(self, case: Case) -> Outcome | None:
        """What needs no worker to be known: the machine cannot do it, or an artefact could not be made."""
        refusal = self.unsupported[case.id]
        if refusal is not None:
            return Outcome("unsupported", replace(refusal.reason, detail=refusal.in_one_line()))
        for role, recipe in self.machine.recipes(case).items():
            made = self.made[recipe.digest]
            if made.name != "ok":
                said = f"{role}: {recipe.title()}: {(made.reason and made.reason.detail) or made.name}"
                return replace(made, reason=made.reason and replace(made.reason, detail=said))
        return None

    def _request(self, planned: PlannedRun, attempt: RunDirectory) -> dict[str, Any]:
        """The content of case.json; paths of artefacts are relative to the campaign's folder."""
        made = {
            role: self.campaign.artefact(recipe.digest) / recipe.file
            for role, recipe in self.machine.recipes(planned.case).items()
        }
        factors = planned.case.factors()
        return {
            "schema_version": layout.SCHEMA_VERSION,
            "case": case_to_json(planned.case),
            "block": planned.block,
            "attempt": attempt.attempt,
            "seed": planned.seed,
            "artefacts": {role: str(path.relative_to(self.campaign.path)) for role, path in made.items()},
            "files": {name: self.plan.files[factors[name]] for name, _ in planned.case.sources},
        }


def _interruption(claimant: Claimant) -> Interruption:
    return Interruption(sigterm_ends_job=claimant.job is not None and claimant.job.scheduler == SLURM)


def _selected(run: PlannedRun, options: Options) -> bool:
    return options.selected is None or run.case.id in options.selected


def _is_wanted(campaign: CampaignDirectory, run: PlannedRun, options: Options) -> bool:
    """Whether a run is still to be done: missing, or ended in a way that this call repeats."""
    latest = campaign.latest(run.case.id, run.block)
    if latest is None or run.case.id in options.rerun:
        return True
    outcome = latest.read_run()["outcome"]
    return outcome in AGAIN or (options.retry_failed and outcome not in layout.COVERING)


def _outcomes(campaign: CampaignDirectory, planned: Sequence[PlannedRun]) -> Counter[str]:
    found = [campaign.latest(run.case.id, run.block) for run in planned]
    return Counter(latest.read_run()["outcome"] for latest in found if latest)


def _maker(
    campaign: CampaignDirectory,
    plan: ResolvedPlan,
    options: Options,
    machine: Machine,
    claimant: Claimant,
    interruption: Interruption,
    listener: Listener,
) -> Maker:
    return Maker(
        campaign,
        claimant,
        interruption,
        options.timeout_s,
        options.retry_failed,
        plan.files,
        listener.preparing,
        machine.launcher,
        catalogue_of(plan.cases).added(),
    )


def _recipes(cases: Sequence[Case], machine: Machine) -> list[Recipe]:
    """Everything these cases need, each once, needs first."""
    unique = {case.id: case for case in cases}
    named = {f"{case.id}/{role}": recipe for case in unique.values() for role, recipe in machine.recipes(case).items()}
    return in_making_order(named)


def _applies(validity: str, case: Case) -> bool:
    """Whether a required validity has a meaning for a case: accuracy is asked of accuracy runs only, and so on."""
    if validity == "accuracy":
        return case.workload_row.judges is not None
    if validity == "precision":
        return case.model is not None
    return case.workload_row.timed
