# SPDX-License-Identifier: Apache-2.0
"""A campaign of 40 runs on a Slurm cluster of three nodes on this machine, disturbed in two ways.

    python bench/cluster/forty_runs.py

Ten blocks of four runs that idle for 3 s are submitted as four array tasks of one minute each. Slurm asks a task to
checkpoint 20 s before its time is over, or earlier, and it is queued again, until its share of the runs is done. The
node n2 dies once a run has ended on it and another is under way there, with every task that it has: two at most.

Prints when these things happened, the state of each task and how often it was started again, and the attempts by
outcome. Prints how many runs count, how many of those differ, and how many were done again. Prints the nodes of each
block, and what the logs say of checkpoints. Exits with the code of `pybench check`, or with 1 where there is no Slurm.
Needs root and Debian's slurmctld, slurmd, slurm-client and munge.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
sys.path.append(str(REPOSITORY))

from pybench.campaign import layout  # noqa: E402
from pybench.campaign.claims import read_claimant  # noqa: E402
from pybench.cli import main  # noqa: E402
from tests.cluster.conftest import Batch, batch  # noqa: E402
from tests.cluster.slurm_cluster import SlurmCluster, missing  # noqa: E402

SHARDS, BLOCKS, CASES, IDLE_S = 4, 10, 4, 3.0
# One minute is the least that Slurm takes; it looks at limits every 30 s and may ask a minute early.
JOB = 'cpus_per_task = 4\noptions = ["--time=1", "--signal=B:USR1@20"]'
LIMIT_S = 480


def show() -> int:
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    why_not = missing()
    if why_not:
        print(f"no Slurm here: {why_not}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "slurm").mkdir()
        cluster = SlurmCluster(Path(folder) / "slurm")
        try:
            cluster.start()
            os.environ["SLURM_CONF"] = cluster.environment["SLURM_CONF"]
            return run(cluster, Path(folder))
        finally:
            cluster.stop()


def run(cluster: SlurmCluster, folder: Path) -> int:
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {text}", flush=True)

    one = batch(folder / "forty", cluster, repetitions=BLOCKS, cases=CASES, idle_s=IDLE_S, job=JOB)
    say(f"submit: {BLOCKS * CASES} runs, {SHARDS} shards; exit code {one.submit('--shards', str(SHARDS))}")
    victim = wait_for_work_on("n2", one, cluster)
    say(f"task {victim} is at work on n2, which dies")
    cluster.lose_node("n2")
    cluster.wait_for(one.check_job, "COMPLETED", "FAILED", seconds=LIMIT_S)
    say("the check job has ended")
    report(one, cluster)
    return main(["check", str(one.campaign.path)])


def wait_for_work_on(node: str, one: Batch, cluster: SlurmCluster) -> str:
    """A task that is at work on a node where a run has ended already."""
    found: list[str] = []

    def is_at_work() -> bool:
        for attempt in one.attempts():
            claimant = None if attempt.is_complete else read_claimant(attempt.claim)
            if claimant and claimant.job and claimant.machine == node and attempt.file(layout.STDERR).exists():
                found.append(claimant.job.id)
        done = [read_claimant(attempt.claim) for attempt in one.attempts() if attempt.is_complete]
        return bool(found) and any(claimant and claimant.machine == node for claimant in done)

    cluster.wait_until(is_at_work, LIMIT_S)
    return found[-1]


def report(one: Batch, cluster: SlurmCluster) -> None:
    fields = "--Format=JobArrayID:10,State:12,RestartCnt:4"
    states = cluster.ask("squeue", "--noheader", "--array", "--states=all", fields)
    print("task, state, times started again:")
    print("\n".join(f"  {line}" for line in states.splitlines()))
    complete = [attempt for attempt in one.attempts() if attempt.is_complete]
    outcomes = Counter(f"{run['outcome']} {run['reason'] or ''}".strip() for run in (a.read_run() for a in complete))
    print(f"attempts: {len(one.attempts())}, complete {len(complete)}: {dict(outcomes)}")
    counting = [(run.case_id, run.block) for run in one.campaign.runs()]
    ok = Counter((run.case_id, run.block) for run in complete if run.read_run()["outcome"] == "ok")
    again = sum(count > 1 for count in ok.values())
    print(f"runs that count: {len(counting)}, of them different: {len(set(counting))}")
    print(f"done again because their block had changed its node: {again}; of these the latest counts")
    blocks: dict[int, set[str]] = {}
    for run in one.campaign.runs():
        claimant = read_claimant(run.claim)
        blocks.setdefault(run.block, set()).add(claimant.machine if claimant else "?")
    print(f"blocks by their nodes: { {block: sorted(nodes) for block, nodes in sorted(blocks.items())} }")
    for line in one.log("check.out").splitlines()[:3]:
        print(f"check.out: {line}")
    words = ("asked to checkpoint", "is queued again", "start ")
    for number in range(1, SHARDS + 1):
        for line in one.log(f"shards-1-{number}.out").splitlines():
            if any(word in line for word in words):
                print(f"shard {number}: {line}")


if __name__ == "__main__":
    raise SystemExit(show())
