# SPDX-License-Identifier: Apache-2.0
"""Blocks of a campaign, one after the other, until every ranking is decided or the time is over.

Each block is a call of the campaign's own runner, so that claims, order, artefacts and interruption are the same as in
`pybench run`. In the first block every run is a call of its own, because nobody knows yet how long it takes. The case
with the least to make for it goes first, so that a number appears before conversions and engines are made. Cases that
fail once are not run again. A block that would end after the deadline is not begun.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pybench import runner
from pybench.analysis.statistics.ranking import LOOKS, Ranking, is_look, rank
from pybench.campaign.directory import CampaignDirectory
from pybench.campaign.recipe import in_making_order
from pybench.campaign.resolved_plan import ResolvedPlan
from pybench.case import Case
from pybench.machine import Machine
from pybench.runner.campaign import Listener
from pybench.runner.schedule import block_order

METRIC = "latency_mean_ms"
BASELINE = "fp32"
MOST_BLOCKS = LOOKS[-1]

StoppedBy = Literal["decided", "time", "looks", "interrupted", "failed"]


@dataclass(slots=True)
class Rounds:
    """What was done.

    blocks: whole ones
    groups: batch -> case id -> block -> mean latency in ms, of the cases that ran
    failed: case id -> why
    rankings: batch -> ranking at the last look
    stopped_by: why no further block was run
    """

    blocks: int = 0
    groups: dict[int, dict[str, dict[int, float]]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    rankings: dict[int, Ranking] = field(default_factory=dict)
    stopped_by: StoppedBy = "looks"

    @property
    def is_decided(self) -> bool:
        return bool(self.rankings) and all(ranking.is_decided for ranking in self.rankings.values())


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
        live = [case for case in setup.plan.cases if case.id not in rounds.failed]
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
        if len(rounds.failed) == len(setup.plan.cases):
            rounds.stopped_by = "failed"
            break
        if is_look(block):
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
    result = runner.run_campaign(setup.campaign, setup.plan, _options(cases, block), setup.machine, setup.listener)
    if result.interrupted or result.checkpointed:
        return "interrupted"
    for case in cases:
        _keep(setup, case, block, rounds)
    return None


def _keep(setup: RoundsSetup, case: Case, block: int, rounds: Rounds) -> None:
    """Puts what a run found where it belongs."""
    latest = setup.campaign.latest(case.id, block)
    if latest is None:
        rounds.failed[case.id] = "another runner was at it"
        return
    record, metrics = latest.read_run(), latest.read_summary()["metrics"]
    why = _why_not(record, setup.as_it_is and case.precision == BASELINE)
    value = latest_value(metrics) if why is None else None
    if value is None:
        rounds.failed[case.id] = why or "it has no time"
        rounds.groups.get(case.batch, {}).pop(case.id, None)
    else:
        rounds.groups.setdefault(case.batch, {}).setdefault(case.id, {})[block] = value


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
    batches = [batch for batch in dict.fromkeys(case.batch for case in cases) if rounds.groups.get(batch)]
    rankings = rank([rounds.groups[batch] for batch in batches])
    rounds.rankings = dict(zip(batches, rankings, strict=True))


def _is_pending(setup: RoundsSetup, cases: Sequence[Case], block: int) -> bool:
    return bool(runner.pending_runs(setup.campaign, setup.plan, _options(cases, block)))


def _options(cases: Sequence[Case], block: int) -> runner.Options:
    shard = runner.Shard(block, MOST_BLOCKS)  # one block each
    return runner.Options(shard=shard, selected=frozenset(case.id for case in cases))
