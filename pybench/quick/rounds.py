# SPDX-License-Identifier: Apache-2.0
"""Blocks of a campaign, one after the other, until every ranking is decided or the time is over.

Each block is a call of the campaign's own runner, so that claims, order, artefacts and interruption are the same as in
`pybench run`. In the first block every run is a call of its own, because nobody knows yet how long it takes. The case
with the least to make for it goes first, so that a number appears before conversions and engines are made. A block that
would end after the deadline is not begun.

A run that failed in an earlier call is repeated: what ended it may be gone. In one call, a case is given up when a run
fails and no run of it has a time, or when a second run fails. The times that it has stay in the table.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pybench import runner
from pybench.analysis.statistics.ranking import Ranking, rank
from pybench.campaign import layout
from pybench.campaign.directory import CampaignDirectory, RunDirectory
from pybench.campaign.recipe import in_making_order
from pybench.campaign.resolved_plan import ResolvedPlan
from pybench.case import Case
from pybench.case.repetitions import looks_until
from pybench.machine import Machine
from pybench.quick.candidates import is_baseline
from pybench.runner.call import Listener
from pybench.runner.schedule import block_order

METRIC = "latency_mean_ms"
MOST_BLOCKS = 20
LOOKS = looks_until(MOST_BLOCKS)
MOST_FAILURES = 2  # runs of a case in one call, after which it is given up: one may be an accident

StoppedBy = Literal["decided", "time", "looks", "interrupted", "failed"]


@dataclass(slots=True)
class Rounds:
    """What was done.

    blocks: whole ones
    groups: batch -> case id -> block -> mean latency in ms, of the cases that ran
    failures: case id -> why, of each run that has no time
    failed: case id -> why, of the cases that have no time at all
    made_in_vain: digests of artefacts whose making failed in this call
    rankings: batch -> ranking at the last look
    stopped_by: why no further block was run
    """

    blocks: int = 0
    groups: dict[int, dict[str, dict[int, float]]] = field(default_factory=dict)
    failures: dict[str, list[str]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    made_in_vain: set[str] = field(default_factory=set)
    rankings: dict[int, Ranking] = field(default_factory=dict)
    stopped_by: StoppedBy = "looks"

    @property
    def is_decided(self) -> bool:
        return bool(self.rankings) and all(ranking.is_decided for ranking in self.rankings.values())

    def is_live(self, case: Case) -> bool:
        """Whether the case is still run."""
        return case.id not in self.failed and len(self.failures.get(case.id, ())) < MOST_FAILURES


@dataclass(frozen=True, slots=True)
class RoundsSetup:
    """What the blocks are run with.

    deadline_s: when the time is over, on the clock of `time.monotonic`
    as_it_is: the file is in another type than FP32, and the cases called so run it as it is
    """

    campaign: CampaignDirectory
    plan: ResolvedPlan
    machine: Machine
    listener: Listener
    deadline_s: float
    as_it_is: bool = False


def run_rounds(setup: RoundsSetup) -> Rounds:
    """Runs blocks; what is there from before counts and is not run again."""
    rounds, block_s = Rounds(), 0.0
    for block in range(1, MOST_BLOCKS + 1):
        live = [case for case in setup.plan.cases if rounds.is_live(case)]
        if block > 1 and _is_pending(setup, live, block) and time.monotonic() + block_s > setup.deadline_s:
            rounds.stopped_by = "time"
            break
        begin_s = time.monotonic()
        stopped = _first_block(setup, live, rounds) if block == 1 else _block(setup, live, block, rounds)
        if stopped is not None:
            rounds.stopped_by = stopped
            break
        block_s = time.monotonic() - begin_s if block > 1 else 0.0  # the first has artefacts to make
        rounds.blocks = block
        if not any(map(rounds.is_live, setup.plan.cases)):
            rounds.stopped_by = "failed"
            _look(setup.plan.cases, rounds)
            break
        if block in LOOKS:
            _look(setup.plan.cases, rounds)
            if rounds.is_decided:
                rounds.stopped_by = "decided"
                break
    return rounds


def _first_block(setup: RoundsSetup, cases: Sequence[Case], rounds: Rounds) -> StoppedBy | None:
    """Run by run. The first of them runs in any case: one number is better than none."""
    for case in _first_order(cases, setup):
        has_number = any(rounds.groups.values())
        if has_number and _is_pending(setup, [case], 1) and time.monotonic() > setup.deadline_s:
            return "time"
        stopped = _block(setup, [case], 1, rounds)
        if stopped is not None:
            return stopped
    return None


def _first_order(cases: Sequence[Case], setup: RoundsSetup) -> list[Case]:
    """The order of the first block, with the case in front that needs the fewest artefacts, at the smallest batch."""
    ordered = block_order(cases, setup.plan.seed, 1)
    first = min(ordered, key=lambda case: (len(in_making_order(setup.machine.recipes(case))), case.batch))
    return [first, *(case for case in ordered if case is not first)]


def _block(setup: RoundsSetup, cases: Sequence[Case], block: int, rounds: Rounds) -> StoppedBy | None:
    failed_before = _failed_makings(setup, cases)
    options = _options(cases, block, retry_failed=failed_before.isdisjoint(rounds.made_in_vain))
    result = runner.run_campaign(setup.campaign, setup.plan, options, setup.machine, setup.listener)
    if result.interrupted or result.checkpointed:
        return "interrupted"
    rounds.made_in_vain |= _failed_makings(setup, cases)
    for case in cases:
        _keep(setup, case, block, rounds)
    return None


def _failed_makings(setup: RoundsSetup, cases: Sequence[Case]) -> set[str]:
    """Digests of the artefacts of these cases whose last making failed, in this call or before."""
    digests = {recipe.digest for case in cases for recipe in in_making_order(setup.machine.recipes(case))}
    folders = [RunDirectory(setup.campaign.artefact(digest), digest, layout.MAKING, 1) for digest in digests]
    made = [folder for folder in folders if folder.is_complete]
    return {folder.case_id for folder in made if folder.read_run()["outcome"] not in layout.COVERING}


def _keep(setup: RoundsSetup, case: Case, block: int, rounds: Rounds) -> None:
    """Puts what a run found where it belongs."""
    found = _time_of(setup, case, block)
    if isinstance(found, float):
        rounds.groups.setdefault(case.batch, {}).setdefault(case.id, {})[block] = found
        return
    rounds.failures.setdefault(case.id, []).append(found)
    if not any(isinstance(_time_of(setup, case, other), float) for other in range(1, MOST_BLOCKS + 1)):
        rounds.failed[case.id] = found


def _time_of(setup: RoundsSetup, case: Case, block: int) -> float | str:
    """The mean latency in ms that a run found, or why there is none."""
    latest = setup.campaign.latest(case.id, block)
    if latest is None:
        return "another runner was at it"
    why = _why_not(latest.read_run(), setup.as_it_is and is_baseline(case))
    return why or latest_value(latest.read_summary()["metrics"]) or "it has no time"


def is_repeated(why: str) -> bool:
    """Whether running again may help a run without a time: it ended as nobody wanted, or never began.

    A run that is not valid is not repeated, and would be no other.
    """
    outcome, colon, _ = why.partition(":")
    return not colon or (outcome in layout.OUTCOMES and outcome not in layout.COVERING)


def _why_not(record: Mapping[str, Any], as_it_is: bool) -> str | None:
    """Why a run's time does not count; None: it does. `as_it_is`: no precision was asked for."""
    if record["outcome"] != "ok":
        return f"{record['outcome']}: {record.get('detail') or record.get('reason') or 'no reason is known'}"
    for name in ("timing", "precision"):
        verdict = record["valid"][name]
        if verdict["value"] is False and not (as_it_is and name == "precision"):
            return f"its {name} is not valid: {', '.join(verdict['reasons'])}"
    return None


def latest_value(metrics: Mapping[str, Mapping[str, object]]) -> float | None:
    """The mean latency among a run's metrics, in ms; None where it has none."""
    value = metrics.get(METRIC, {}).get("value")
    return value if isinstance(value, float) and value > 0 else None


def _look(cases: Sequence[Case], rounds: Rounds) -> None:
    """Ranks the cases that are still run, or, where none is, those that have times. Those of a batch are ranked if
    they have a block in common."""
    ranked = [case for case in cases if rounds.is_live(case)] or cases
    groups: dict[int, dict[str, dict[int, float]]] = {}
    for case in ranked:
        times = rounds.groups.get(case.batch, {}).get(case.id)
        if times:
            groups.setdefault(case.batch, {})[case.id] = times
    groups = {batch: group for batch, group in groups.items() if set.intersection(*map(set, group.values()))}
    rounds.rankings = dict(zip(groups, rank(list(groups.values()), len(LOOKS)), strict=True))


def _is_pending(setup: RoundsSetup, cases: Sequence[Case], block: int) -> bool:
    return bool(runner.pending_runs(setup.campaign, setup.plan, _options(cases, block, retry_failed=True)))


def _options(cases: Sequence[Case], block: int, retry_failed: bool) -> runner.Options:
    shard = runner.Shard(block, MOST_BLOCKS)  # one block each
    return runner.Options(shard=shard, selected=frozenset(case.id for case in cases), retry_failed=retry_failed)
