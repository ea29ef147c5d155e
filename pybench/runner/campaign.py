# SPDX-License-Identifier: Apache-2.0
"""A campaign from its resolved plan to complete run directories, however often it is interrupted on the way.

Nothing is remembered outside the directory: what is missing, killed or interrupted is found by looking, so running
again continues, and any number of runners may work on one campaign.
"""

from __future__ import annotations

import itertools
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pybench.campaign import layout
from pybench.campaign.batch_job import SLURM
from pybench.campaign.claims import Claimant, claim, is_alive, owner_text, read_claimant, this_process, touch
from pybench.campaign.directory import CampaignDirectory, RunDirectory
from pybench.campaign.environments import keep_environments
from pybench.campaign.hashed import hash_ended
from pybench.campaign.recipe import Recipe, in_making_order
from pybench.campaign.resolved_plan import ResolvedPlan
from pybench.case import Case, catalogue_of
from pybench.machine import Machine
from pybench.runner.attempt import known_beforehand, perform
from pybench.runner.call import Listener, Options, RunnerCall
from pybench.runner.interruption import Interruption
from pybench.runner.outcome import Outcome
from pybench.runner.prepare import Maker, prepare
from pybench.runner.schedule import PlannedRun, planned_runs
from pybench.runner.sensors import SensorSource, prepare_sensors
from pybench.runner.standing import Tally, has_settled, is_selected, is_wanted, outcomes_of, tally
from pybench.runner.whole_blocks import at_work_elsewhere, done_elsewhere, torn_text


def run_campaign(
    campaign: CampaignDirectory, plan: ResolvedPlan, options: Options, machine: Machine, listener: Listener
) -> Tally:
    """Does everything that is missing and selected; returns how the selected part then stands."""
    keep_environments(campaign, machine.known_environments())
    claimant = this_process()
    every = list(planned_runs(plan.cases, plan.seed, plan.repetitions, options.shard))
    planned = [run for run in every if is_selected(run, options)]
    pending = [run for run in planned if is_wanted(campaign, run, options)]
    torn, selected = done_elsewhere(campaign, every, pending, claimant, machine), {run.cell for run in planned}
    again = torn & selected if options.whole_blocks else frozenset()
    if torn - again:
        listener.note(torn_text(torn - again, are_selected=torn <= selected))
    if again:
        wanted = {run.cell for run in pending} | again
        pending = [run for run in planned if run.cell in wanted]
    if pending and _is_beyond(options, pending[0].block):
        pending = []
    with _interruption(claimant) as interruption:
        call = RunnerCall(campaign, plan, options, machine, listener, claimant, interruption)
        to_do = {run.cell for run in pending}
        kept = [run for run in planned if run.cell not in to_do]
        listener.begin(len(pending), outcomes_of(campaign, kept))
        runner = _Runner(call, _prepared(call, pending), every)
        too_many_failures = runner.run_all(pending)
        # Now, because no run of this pass is disturbed.
        hash_ended(campaign.path, itertools.takewhile(lambda _: not interruption.asked, runner.ended))
        last = None if options.last_block is None else options.last_block()
        result = tally(campaign, plan, _until(last, planned))
        left = [run for run in pending if run.cell not in runner.begun]
        result.unrepeated = sum(has_settled(campaign, run) for run in _until(last, left))
    # After the context, so that no signal that it took is lost.
    result.interrupted = interruption.asked
    result.checkpointed = interruption.asked_by == signal.SIGUSR1 and not interruption.job_is_ending
    result.busy = sum(campaign.latest(*run.cell) is None for run in runner.busy)
    result.too_many_failures = too_many_failures
    return result


def make_artefacts(
    campaign: CampaignDirectory, plan: ResolvedPlan, options: Options, machine: Machine, listener: Listener
) -> tuple[dict[str, Outcome], signal.Signals | None]:
    """Makes what the selected cases that this machine can run need, and starts no run.

    Returns digest -> outcome, and the signal that interrupted it. Several callers with filters of their own share the
    work.
    """
    keep_environments(campaign, machine.known_environments())
    selected = [case for case in plan.cases if options.selected is None or case.id in options.selected]
    runnable = [case for case in selected if machine.unsupported(case) is None]
    claimant = this_process()
    with _interruption(claimant) as interruption:
        call = RunnerCall(campaign, plan, options, machine, listener, claimant, interruption)
        return _made(call, runnable), interruption.asked_by


def _is_beyond(options: Options, block: int) -> bool:
    """Whether a block that is about to begin is no longer wanted."""
    last = None if options.last_block is None else options.last_block()
    return last is not None and block > last


def _until(last: int | None, runs: Sequence[PlannedRun]) -> list[PlannedRun]:
    """Those of no later block."""
    return [run for run in runs if last is None or run.block <= last]


def _interruption(claimant: Claimant) -> Interruption:
    return Interruption(sigterm_ends_job=claimant.job is not None and claimant.job.scheduler == SLURM)


def _prepared(call: RunnerCall, pending: Sequence[PlannedRun]) -> dict[str, Outcome]:
    """Makes what the pending runs need. Returns case id -> outcome of the cases that need no worker."""
    cases = {run.case.id: run.case for run in pending}
    asked = {case.id: call.machine.unsupported(case) for case in cases.values()}
    unsupported = {name: refusal for name, refusal in asked.items() if refusal is not None}
    runnable = [case for case in cases.values() if case.id not in unsupported]
    return known_beforehand(cases.values(), unsupported, _made(call, runnable), call.machine)


def _made(call: RunnerCall, cases: Sequence[Case]) -> dict[str, Outcome]:
    """Digest -> outcome of everything that these cases need, each made once, needs first. Power sensors are known
    before, because making an engine has an energy, too."""
    _know_sensors(call, cases)
    needed = [(case, call.machine.recipes(case)) for case in cases]
    named: dict[str, Recipe] = {f"{case.id}/{role}": each for case, found in needed for role, each in found.items()}
    maker = Maker(
        call.campaign,
        call.claimant,
        call.interruption,
        call.options.timeout_s,
        call.options.retry_failed,
        call.plan.files,
        call.listener.preparing,
        call.listener.note,
        call.machine.launcher_in,
        catalogue_of(call.plan.cases).added(),
    )
    return prepare(in_making_order(named), maker)


def _know_sensors(call: RunnerCall, cases: Sequence[Case]) -> None:
    if cases:
        source = SensorSource(
            call.machine, call.options.may_measure_sensors, call.listener.note, lambda: call.interruption.asked
        )
        prepare_sensors(call.campaign, call.machine.boards(cases), source)


@dataclass(slots=True)
class _Runner:
    """One pass over the pending runs.

    known: case id -> the outcome of a case that needs no worker
    every: the runs of the call's shard, selected or not
    block: the runs of the block at hand where it is to stay whole, else nothing
    again: (case id, block) of those that are done and are done again
    failures: runs of this pass that do not cover their cell
    begun: (case id, block) of the pending runs that were done, or left to another runner
    taken: the block that this pass has begun last
    left: the block that it has left to another place last
    busy: runs that another runner was at
    ended: folders of the runs of this pass
    """

    call: RunnerCall
    known: Mapping[str, Outcome]
    every: Sequence[PlannedRun]
    block: Sequence[PlannedRun] = ()
    again: frozenset[tuple[str, int]] = frozenset()
    failures: int = 0
    begun: set[tuple[str, int]] = field(default_factory=set)
    taken: int = 0
    left: int = 0
    busy: list[PlannedRun] = field(default_factory=list)
    ended: list[Path] = field(default_factory=list)
    said_stopping: bool = False

    def run_all(self, pending: Sequence[PlannedRun]) -> bool:
        """Returns whether it ended itself for its failures."""
        most, first = self.call.options.max_failures, pending[0].block if pending else 0
        for block, runs in itertools.groupby(pending, lambda run: run.block):
            if block > first and (self._is_asked_to_stop() or _is_beyond(self.call.options, block)):
                return False
            for planned in self._of_block(block, list(runs)):
                if self._is_asked_to_stop():
                    return False
                if most is not None and self.failures >= most:
                    return True
                self.begun.add(planned.cell)
                attempt = self._claim(planned)
                if attempt is None:
                    self.call.listener.skipped()
                else:
                    self._run(planned, attempt)
        return False

    def _is_asked_to_stop(self) -> bool:
        return self.call.interruption.asked

    def _of_block(self, block: int, pending: Sequence[PlannedRun]) -> Sequence[PlannedRun]:
        """The runs to do of a block that begins now. For whole blocks, what is done elsewhere is looked for again."""
        call = self.call
        if not call.options.whole_blocks:
            return pending
        self.block = [run for run in self.every if run.block == block]
        if self._leaves_block():
            return pending
        wanted = [run for run in pending if is_wanted(call.campaign, run, call.options)]
        self.again = done_elsewhere(call.campaign, self.block, wanted, call.claimant, call.machine)
        to_do = {run.cell for run in pending} | self.again
        return [run for run in self.block if run.cell in to_do and is_selected(run, call.options)]

    def _leaves_block(self) -> bool:
        """Whether a process in another place is at the block at hand, which is left to it then."""
        other = at_work_elsewhere(self.call.campaign, self.block, self.call.claimant, self.call.machine)
        if other is None:
            return False
        self.left = other.block
        self.call.listener.note(
            f"block {other.block} is left to {owner_text(other.claim, self.call.claimant)}: "
            "cases are compared within a block, and one machine and GPU measure all of it"
        )
        return True

    def _claim(self, planned: PlannedRun) -> RunDirectory | None:
        """The next attempt at a run, claimed; None when another runner is at it or its block, or has done it since."""
        campaign, claimant = self.call.campaign, self.call.claimant
        if planned.block == self.left:
            self.busy.append(planned)
            return None
        claims = campaign.claims(planned.case.id, planned.block)
        last = claims[-1] if claims else None
        if last and not last.is_complete and is_alive(last.claim, claimant):
            self._warn_of_neighbour(last)
            self.busy.append(planned)
            self._leaves_block()
            return None
        attempt = campaign.attempt(planned.case.id, planned.block, last.attempt + 1 if last else 1)
        is_to_do = planned.cell in self.again or is_wanted(campaign, planned, self.call.options)
        if not is_to_do or not claim(attempt.claim, claimant):
            return None
        # After each claim, because either runner may have come while the other one was between two runs.
        if self._leaves_block():
            attempt.claim.unlink(missing_ok=True)
            self.busy.append(planned)
            return None
        if planned.block != self.taken:  # from now on nobody elsewhere begins a run of this block
            self.taken = planned.block
            self.again |= done_elsewhere(campaign, self.block, [planned], claimant, self.call.machine)
        return attempt

    def _warn_of_neighbour(self, attempt: RunDirectory) -> None:
        """Says once that another process measures on this machine at the same time."""
        other = read_claimant(attempt.claim)
        if other is None or other.boot_id != self.call.claimant.boot_id or self.busy:
            return
        self.call.listener.note(
            f"process {other.pid} runs this campaign on this machine, too, and each disturbs the times of the other: "
            "stop one of them, unless each has a GPU and CPUs of its own"
        )

    def _run(self, planned: PlannedRun, attempt: RunDirectory) -> None:
        self.call.listener.running(planned)
        known = self.known.get(planned.case.id)
        outcome, wall_s = perform(planned, attempt, known, self.call, lambda: self._beat(attempt))
        self.ended.append(attempt.path)
        if outcome.name not in layout.COVERING:
            self.failures += 1
        self.call.listener.finished(planned, outcome, wall_s)

    def _beat(self, attempt: RunDirectory) -> None:
        """Each time the wait for a worker wakes up: the heartbeat, and the answer to whoever asked to stop."""
        touch(attempt.claim)
        if self.call.interruption.asked and not self.said_stopping:
            self.said_stopping = True
            self.call.listener.stopping()
