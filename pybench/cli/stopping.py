# SPDX-License-Identifier: Apache-2.0
"""Plans that stop when they are decided: which block is the last, and what commands say of that.

The runner asks for the last block between two of them. The answer follows from the runs on disk alone, look by look
from the first, so whoever continues a campaign finds the same. It is stored in stopped.json, by which all readers know
how many blocks the campaign has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pybench.campaign.directory import CampaignDirectory, RunDirectory, restore_hint
from pybench.campaign.resolved_plan import ResolvedPlan, is_stored, read_resolved_plan, store_stop
from pybench.case import Repetitions
from pybench.case.repetitions import Stop, StoppingRule
from pybench.errors import CorruptError, UsageError
from pybench.runner.standing import AGAIN

Attempts = tuple[tuple[int, ...], ...]  # block -> the attempts that count


@dataclass(slots=True)
class LastBlock:
    """`note`: is told what each look found. `looked`: the attempts of all blocks of a look -> whether they decide."""

    campaign: CampaignDirectory
    plan: ResolvedPlan
    rule: StoppingRule
    note: Callable[[str], None]
    looked: dict[Attempts, bool] = field(default_factory=dict)

    def __call__(self) -> int | None:
        """The last block that is wanted; None: more may be. Raises CorruptError for runs that cannot be read."""
        stop = self.stop()
        store_stop(self.campaign, stop)
        return None if stop is None else stop.after_block

    def stop(self) -> Stop | None:
        """Where the runs on disk end the campaign; None: they do not. Stores nothing."""
        attempts: Attempts = ()
        spent_s = 0.0
        for block in range(1, self.rule.at_most + 1):
            runs = _ended(self.campaign, self.plan, block)
            if runs is None:
                return None
            attempts = (*attempts, tuple(run.attempt for run in runs))
            if self.rule.within_s is not None:
                spent_s += sum(run.read_run().get("duration_s") or 0.0 for run in runs)
            is_late = self.rule.within_s is not None and spent_s >= self.rule.within_s
            if (block in self.rule.looks or is_late) and self._is_decided(attempts):
                return Stop(block, "decided")
            if is_late:
                return Stop(block, "time")
        return Stop(self.rule.at_most, "blocks")

    def _is_decided(self, attempts: Attempts) -> bool:
        if attempts not in self.looked:
            from pybench.analysis import declared
            from pybench.analysis.decision import decide
            from pybench.dataset import load

            dataset = load(self.campaign.path, stop=Stop(len(attempts), "blocks"))
            found = decide(dataset, declared(dataset))
            self.looked[attempts] = found.is_decided
            self.note(f"after block {len(attempts)} of at most {self.rule.at_most}: {found.text}")
        return self.looked[attempts]


def check_stop(campaign: CampaignDirectory, plan: ResolvedPlan) -> None:
    """Raises CorruptError where stopped.json says something else than the runs: it would leave runs out. Where one of
    its blocks lacks a run, the runs say nothing, and what is missing is told elsewhere.

    plan: as the campaign's readers have it, with what stopped.json says
    """
    rule, stored = plan.repetitions.rule, plan.repetitions.stop
    if rule is None or stored is None:
        return
    if any(_ended(campaign, plan, block) is None for block in range(1, stored.after_block + 1)):
        return
    found = LastBlock(campaign, plan.stopped(None), rule, lambda _: None).stop()
    if found != stored:
        by_runs = "not stopped" if found is None else rule.told(found)
        what = f"{campaign.stopped} says `{rule.told(stored)}`, but the runs say `{by_runs}`"
        raise CorruptError(what, hint=restore_hint(campaign.stopped))


def _ended(campaign: CampaignDirectory, plan: ResolvedPlan, block: int) -> list[RunDirectory] | None:
    """The runs of a block that count; None where one of them has not ended, or is to be done again."""
    cases = [case for case in plan.cases if plan.repetitions.of(case) >= block]
    found = [run for case in cases if (run := campaign.latest(case.id, block)) is not None]
    is_whole = len(found) == len(cases) and not any(run.read_run()["outcome"] in AGAIN for run in found)
    return found if is_whole else None


def refuse_parts(filters: list[str] | None, shard: str) -> None:
    """Parts of a campaign decide nothing: cases are compared, and looks are in the order of blocks."""
    hint = "remove it; or give a number of blocks, as in `pybench run PLAN --repetitions 10`"
    if filters:
        raise UsageError(f"--filter {filters[0]}: the plan stops when all of its comparisons are decided", hint=hint)
    if shard != "1/1":
        what = "the plan stops when it is decided, so its blocks follow each other"
        raise UsageError(f"--shard {shard}: {what}", hint=hint)


def refuse_jobs() -> None:
    what = "the plan stops when it is decided, so its blocks follow each other, and jobs cannot share them"
    raise UsageError(what, hint="give a number of blocks, as in `--repetitions 10`; or call `pybench run` in one job")


def as_stopped(campaign: CampaignDirectory, plan: ResolvedPlan) -> ResolvedPlan:
    """The plan with the stop of its campaign, if that is one of this very plan."""
    return read_resolved_plan(campaign) if is_stored(campaign, plan.content) else plan


def rule_text(rule: StoppingRule) -> str:
    looks = ", ".join(map(str, rule.looks))
    within = "" if rule.within_s is None else f", or when the runs have taken {rule.within_s:g} s"
    return f"stops when decided; looks after blocks {looks}{within}"


def progress_text(campaign: CampaignDirectory, plan: ResolvedPlan, rule: StoppingRule) -> str:
    """Whether it is decided, by what was stored."""
    if plan.repetitions.stop is not None:
        return rule.told(plan.repetitions.stop)
    blocks = 0
    while blocks < rule.at_most and _ended(campaign, plan, blocks + 1) is not None:
        blocks += 1
    ahead = next((look for look in rule.looks if look > blocks), None)
    then = "" if ahead is None else f"; the next look is after block {ahead}"
    return f"not decided so far: {blocks} of at most {rule.at_most} blocks complete{then}"


def stopping_json(repetitions: Repetitions) -> Mapping[str, Any]:
    """Nothing for a plan without a rule."""
    rule, stop = repetitions.rule, repetitions.stop
    if rule is None:
        return {}
    after, reason = (None, None) if stop is None else (stop.after_block, stop.reason)
    return {"stopping": {**rule.as_json(), "looks": list(rule.looks), "after_block": after, "reason": reason}}
