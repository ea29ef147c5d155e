# SPDX-License-Identifier: Apache-2.0
"""How the runs of a campaign stand: what is done, what is still to do, and what has to be repeated.

All of it is read from the directory each time it is asked for; nothing is remembered elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pybench.campaign import layout
from pybench.campaign.directory import CampaignDirectory
from pybench.campaign.resolved_plan import ResolvedPlan
from pybench.case.yields import is_required
from pybench.runner.call import Options
from pybench.runner.schedule import PlannedRun, planned_runs

AGAIN = frozenset({"killed", "interrupted"})  # not the case's fault: running again does these without being asked


@dataclass(slots=True)
class Tally:
    """What the selected part of a campaign looks like after running.

    outcomes: outcome -> runs
    uncovered: runs without an outcome that covers their cell
    invalid: part of a run that is required and not true -> runs
    reasons: (such a part, reason as stored) -> runs
    interrupted: whether the user or a signal stopped it
    checkpointed: whether SIGUSR1 stopped it, as batch jobs do
    too_many_failures: whether it ended itself for its failures
    busy: runs that another runner has claimed and not done yet
    unrepeated: runs that it was to repeat, and did not: they have an outcome of before, which `outcomes` counts
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    uncovered: int = 0
    invalid: Counter[str] = field(default_factory=Counter)
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)
    interrupted: bool = False
    checkpointed: bool = False
    too_many_failures: bool = False
    busy: int = 0
    unrepeated: int = 0

    @property
    def is_success(self) -> bool:
        return self.uncovered == 0 and self.outcomes["ok"] > 0 and not self.invalid

    def add(self, other: Tally) -> None:
        """Counts the runs of another part of the campaign, too."""
        self.outcomes += other.outcomes
        self.uncovered += other.uncovered
        self.invalid += other.invalid
        self.reasons += other.reasons

    @property
    def left(self) -> int:
        return sum(self.outcomes[name] for name in ("missing", *AGAIN)) + self.unrepeated


def pending_runs(campaign: CampaignDirectory, plan: ResolvedPlan, options: Options) -> list[PlannedRun]:
    """What `run_campaign` would do with these options, in its order."""
    planned = planned_runs(plan.cases, plan.seed, plan.repetitions, options.shard)
    return [run for run in planned if is_selected(run, options) and is_wanted(campaign, run, options)]


def tally(campaign: CampaignDirectory, plan: ResolvedPlan, planned: Sequence[PlannedRun]) -> Tally:
    """Reads how each planned run stands."""
    result = Tally()
    for run in planned:
        latest = campaign.latest(*run.cell)
        record = latest.read_run() if latest else None
        result.outcomes[record["outcome"] if record else "missing"] += 1
        if record is None or record["outcome"] not in layout.COVERING:
            result.uncovered += 1
        elif record["outcome"] == "ok":
            applicable = [name for name in plan.require if is_required(name, run.case)]
            invalid = {name: record["valid"][name] for name in applicable if record["valid"][name]["value"] is not True}
            result.invalid.update(invalid.keys())
            result.reasons.update(
                (name, reason) for name, found in invalid.items() for reason in found.get("reasons") or ()
            )
    return result


def failures(outcomes: Mapping[str, int]) -> int:
    """How many ended in a way that only `--retry-failed` repeats. `outcomes`: of runs or of artefacts, with counts."""
    return sum(count for name, count in outcomes.items() if name not in {*layout.COVERING, *AGAIN, "missing"})


def uncounted(campaign: CampaignDirectory, plan: ResolvedPlan) -> int:
    """How many runs of the plan's cases lie in blocks that the plan does not have: it had more repetitions before."""
    blocks = {case.id: plan.repetitions.of(case) for case in plan.cases}
    return sum(attempt.block > blocks.get(attempt.case_id, attempt.block) for attempt in campaign.runs())


def is_selected(run: PlannedRun, options: Options) -> bool:
    return options.selected is None or run.case.id in options.selected


def is_wanted(campaign: CampaignDirectory, run: PlannedRun, options: Options) -> bool:
    """Whether a run is still to be done: missing, or ended in a way that this call repeats."""
    latest = campaign.latest(*run.cell)
    if latest is None or run.case.id in options.rerun:
        return True
    outcome = latest.read_run()["outcome"]
    return outcome in AGAIN or (options.retry_failed and outcome not in layout.COVERING)


def has_settled(campaign: CampaignDirectory, run: PlannedRun) -> bool:
    """Whether a run has an outcome that no later call replaces without being asked."""
    latest = campaign.latest(*run.cell)
    return latest is not None and latest.read_run()["outcome"] not in AGAIN


def outcomes_of(campaign: CampaignDirectory, planned: Sequence[PlannedRun]) -> Counter[str]:
    found = [campaign.latest(*run.cell) for run in planned]
    return Counter(latest.read_run()["outcome"] for latest in found if latest)
