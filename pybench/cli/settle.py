# SPDX-License-Identifier: Apache-2.0
"""`pybench settle`."""

from __future__ import annotations

from pybench.campaign.directory import open_campaign
from pybench.campaign.resolved_plan import read_resolved_plan
from pybench.cli.batch_jobs import name_of
from pybench.cli.options import DirectoryArgument, JsonOption
from pybench.cli.show import print_json
from pybench.words import counted


def settle(directory: DirectoryArgument, as_json: JsonOption = False) -> None:
    """Close runs that a Slurm job left open when it ended.

    The reason is what Slurm says of the job. Running jobs are left alone.
    """
    from pybench.cluster.ending import close_ended, open_attempts

    campaign = open_campaign(directory)
    plan = read_resolved_plan(campaign)
    closed = close_ended(campaign, plan)
    left = len(open_attempts(campaign, plan))
    if as_json:
        rows = [
            {
                "run": str(one.attempt.path),
                "job": one.job,
                "outcome": one.outcome.name,
                "reason": one.outcome.reason and one.outcome.reason.stored_code,
            }
            for one in closed
        ]
        print_json({"closed": rows, "open": left})
        return
    for one in closed:
        print(f"{name_of(one.attempt.path, campaign)}  {one.outcome.name}: {one.outcome.why}")
    print(f"{counted(len(closed), 'run')} closed, {left} open")
