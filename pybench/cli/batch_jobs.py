# SPDX-License-Identifier: Apache-2.0
"""What the commands say of a campaign's batch jobs. Without Slurm's commands here they say what the directories say."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from pybench.campaign.directory import CampaignDirectory
from pybench.campaign.layout import RUNS
from pybench.campaign.resolved_plan import ResolvedPlan
from pybench.cli.show import say
from pybench.errors import ClusterError
from pybench.words import counted


def close_ended_quietly(campaign: CampaignDirectory, plan: ResolvedPlan) -> None:
    """Before a run: closes what earlier jobs left open, so that it counts as what it was. Where Slurm does not answer,
    those attempts stay open, and are done again once their claims are old."""
    from pybench.cluster.ending import close_ended

    try:
        for closed in close_ended(campaign, plan):
            say(f"closed {name_of(closed.attempt.path, campaign)}: {closed.outcome.why}")
    except ClusterError as error:
        say(f"runs of earlier jobs stay open: {error.message}")


def print_queue(campaign: CampaignDirectory, plan: ResolvedPlan) -> None:
    """A line a submission that still has jobs, and what ended jobs left open."""
    from pybench.cluster.ending import open_attempts

    for found in _submissions(campaign):
        states = ", ".join(f"{count} {state}" for state, count in found["states"].items()) or "nothing in the queue"
        waits = f" ({'; '.join(found['waits'])})" if found["waits"] else ""
        print(f"submission {found['number']:02d} ({found['scheduler']}): {found['unknown'] or states + waits}")
    left = open_attempts(campaign, plan)
    if left:
        print(
            f"begun by jobs and not finished: {counted(len(left), 'run')}; "
            "those of running jobs go on, and `pybench settle` closes those of jobs that have ended"
        )


def queue_json(campaign: CampaignDirectory) -> dict[str, Any]:
    found = _submissions(campaign)
    return {"submissions": found} if found else {}


def name_of(path: Path, campaign: CampaignDirectory) -> str:
    """`<case>/block-003/attempt-01`, with the id as short as everywhere."""
    case, *rest = path.relative_to(campaign.path / RUNS).parts
    return "/".join([case[:12], *rest])


def _submissions(campaign: CampaignDirectory) -> list[dict[str, Any]]:
    """Each submission with its tasks counted by Slurm's state, and the reasons for which tasks wait. `unknown`: why
    Slurm does not say, or None. Jobs of another cluster are not asked about: here their numbers are of other jobs."""
    from pybench.cluster import slurm
    from pybench.cluster.submission import of_this_cluster, submissions

    found = []
    for submission in submissions(campaign):
        states: Counter[str] = Counter()
        waits: dict[str, None] = {}
        known, unknown = {}, None
        try:
            if of_this_cluster([submission]):
                known = slurm.queue(job.id for job in submission.jobs)
            else:
                unknown = f"on the cluster {submission.cluster}, which is not asked here"
        except ClusterError as error:
            unknown = error.message
        for job in submission.jobs:
            for name in job.tasks():
                if state := known.get(name):
                    states[state.state] += 1
                    if state.state == "PENDING" and state.why:
                        waits[state.why] = None
        found.append(
            {
                "number": submission.number,
                "scheduler": submission.scheduler,
                "states": dict(states),
                "waits": list(waits),
                "unknown": unknown,
                "jobs": [{"role": job.role, "id": job.id} for job in submission.jobs],
            }
        )
    return found
