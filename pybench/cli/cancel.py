# SPDX-License-Identifier: Apache-2.0
"""`pybench cancel`."""

from __future__ import annotations

from pybench.campaign.directory import open_campaign
from pybench.cli.options import DirectoryArgument
from pybench.cli.show import say
from pybench.errors import ClusterError


def cancel(directory: DirectoryArgument) -> None:
    """Cancel a campaign's jobs in Slurm's queue.

    Finished runs are kept. Jobs of another cluster are named and left alone.
    """
    from pybench.cluster import slurm
    from pybench.cluster.submission import of_this_cluster, submissions

    found = submissions(open_campaign(directory))
    here = of_this_cluster(found)
    for other in (submission for submission in found if submission not in here):
        say(f"submission {other.number:02d} is of the cluster {other.cluster}: cancel it there")
    jobs = [job.id for submission in here for job in submission.jobs]
    states = slurm.queue(jobs)
    alive = sorted({name.partition("_")[0] for name, state in states.items() if not state.has_ended}, key=int)
    refused: dict[str, ClusterError] = {}
    for job in reversed(alive):  # the check first: it may begin as soon as the arrays have ended
        try:
            slurm.cancel(job)
        except ClusterError as error:
            refused[job] = error
    cancelled = [job for job in alive if job not in refused]
    if cancelled or not alive:
        print(f"cancelled {', '.join(cancelled)}" if cancelled else "nothing in the queue")
    if refused:
        raise ClusterError("; ".join(error.message for error in refused.values()))
