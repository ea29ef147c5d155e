# SPDX-License-Identifier: Apache-2.0
"""Closes what jobs left open: attempts that were claimed and never completed, with Slurm's own word for why.

A runner cannot write down how it died. Its claim names the job; once Slurm says that this start of the job is over,
the attempt gets a run.json whose `reason` is Slurm's word. A running job's attempts are never touched. Two that close
the same attempt at once write the same.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pybench.campaign import extract, layout, storage
from pybench.campaign.batch_job import SLURM, BatchJob
from pybench.campaign.claims import STALE_S, heartbeat_age_s, read_claimant
from pybench.campaign.directory import CampaignDirectory, RunDirectory
from pybench.campaign.resolved_plan import ResolvedPlan
from pybench.case import case_to_json
from pybench.catalogue.causes import Cause
from pybench.catalogue.reasons import Reason
from pybench.cluster.slurm import AccountedStart, JobState, cluster_name, history, queue, start_at
from pybench.runner.outcome import Outcome, run_record
from pybench.runner.schedule import run_seed

OUTCOMES = {  # by Slurm's word; what is not here is `killed`
    "OUT_OF_MEMORY": "oom",
    "TIMEOUT": "timeout",
    "DEADLINE": "timeout",
    "PREEMPTED": "interrupted",
    "CANCELLED": "interrupted",
    "REVOKED": "interrupted",
    "NODE_FAIL": "killed",
}
RESTARTED = Cause.REQUEUED.value  # the state that sacct gives a start that was followed by another, whatever ended it


@dataclass(frozen=True, slots=True)
class ClosedAttempt:
    """An attempt that was open and is complete now."""

    attempt: RunDirectory
    job: str
    outcome: Outcome


def close_ended(campaign: CampaignDirectory, plan: ResolvedPlan) -> list[ClosedAttempt]:
    """Closes every open attempt whose Slurm job is over. ClusterError where Slurm does not answer."""
    left = open_attempts(campaign, plan)
    cluster = cluster_name() if left else None
    left = {attempt: job for attempt, job in left.items() if job.cluster in (None, cluster)}
    if not left:
        return []
    ids = {job.id for job in left.values()}
    now, past = queue(ids), history(ids)
    closed = []
    for attempt, job in left.items():
        age_s = heartbeat_age_s(attempt.claim)
        account = None if age_s is None else start_at(past.get(job.id, ()), time.time() - age_s)
        outcome = outcome_of(job, now.get(job.id), account, age_s)
        if outcome is not None and not attempt.is_complete:
            _close(attempt, outcome, plan)
            closed.append(ClosedAttempt(attempt, job.id, outcome))
    return closed


def open_attempts(campaign: CampaignDirectory, plan: ResolvedPlan) -> dict[RunDirectory, BatchJob]:
    """Attempts at runs of the plan that a Slurm job claimed and that are not complete."""
    planned = {case.id for case in plan.cases}
    found = {}
    for case_id, block in campaign.started():
        for attempt in campaign.claims(case_id, block) if case_id in planned else ():
            claimant = None if attempt.is_complete else read_claimant(attempt.claim)
            if claimant and claimant.job and claimant.job.scheduler == SLURM:
                found[attempt] = claimant.job
    return found


def outcome_of(
    job: BatchJob, now: JobState | None, account: AccountedStart | None, age_s: float | None
) -> Outcome | None:
    """What became of one start of a job, None while it may still run. `age_s`: of the claim's last heartbeat;
    `account`: of the start that was running then."""
    was_restarted = now is not None and now.restarts > job.restart
    if now is not None and not was_restarted and not now.has_ended:
        return None
    if account is not None and account.has_ended:
        return _outcome(job, account)
    if was_restarted or (account is not None and account.state == RESTARTED):
        detail = f"Slurm started job {job.id} again" + (f"; it had been on {job.node}" if job.node else "")
        return Outcome("killed", Reason(Cause.REQUEUED, f"{detail}; why, it does not say"))
    if now is not None:
        return _outcome(job, now)
    if account is not None or age_s is None or age_s < STALE_S:
        return None
    said = f"job {job.id} has ended, and Slurm no longer knows how"
    return Outcome("killed", Reason(Cause.JOB_FORGOTTEN, said))


def _outcome(job: BatchJob, state: JobState | AccountedStart) -> Outcome:
    where = f" on {state.node or job.node}" if state.node or job.node else ""
    why = f" ({state.why})" if state.why else ""
    said = f"Slurm says {state.state} of job {job.id}{where}{why}"
    return Outcome(OUTCOMES.get(state.state, "killed"), Reason(Cause.STATE, said, (state.state,)))


def _close(attempt: RunDirectory, outcome: Outcome, plan: ResolvedPlan) -> None:
    storage.make_folder(attempt.path, exist_ok=True)
    if not attempt.file(layout.CASE).exists():  # its runner had claimed it, and no more
        storage.write_json(attempt.file(layout.CASE), _request(attempt, plan))
    extract.finish(attempt, run_record(attempt.case_id, attempt.block, attempt.attempt, outcome, None))


def _request(attempt: RunDirectory, plan: ResolvedPlan) -> Mapping[str, Any]:
    """case.json of a run that never got as far as to be given anything."""
    case = next(case for case in plan.cases if case.id == attempt.case_id)
    return {
        "schema_version": layout.SCHEMA_VERSION,
        "case": case_to_json(case),
        "block": attempt.block,
        "attempt": attempt.attempt,
        "seed": run_seed(plan.seed, case.id, attempt.block),
        "artefacts": {},
        "artefacts_sha256": {},
        "files": {},
    }
