# SPDX-License-Identifier: Apache-2.0
"""`pybench cancel`."""

from __future__ import annotations

from pybench.campaign.directory import open_campaign
from pybench.cli.options import DirectoryArgument


def cancel(directory: DirectoryArgument) -> None:
    """Cancel a campaign's jobs in Slurm's queue.

    Finished runs are kept.
    """
    from pybench.cluster import slurm
    from pybench.cluster.submission import submissions

    campaign = open_campaign(directory)
    jobs = [job.id for submission in submissions(campaign) for job in submission.jobs]
    states = slurm.queue(jobs)
    alive = sorted({name.partition("_")[0] for name, state in states.items() if not state.has_ended}, key=int)
    slurm.cancel(alive)
    print(f"cancelled {', '.join(alive)}" if alive else "nothing in the queue")
