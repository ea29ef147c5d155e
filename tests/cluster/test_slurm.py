# SPDX-License-Identifier: Apache-2.0
"""Campaigns on a real Slurm cluster.

Slurm's clocks are slow: it looks at time limits every 30 s. So the campaigns of this file run at the same time:
`campaigns` starts them all and sees each to its end.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pybench.campaign import layout
from pybench.campaign.claims import read_claimant
from tests.cluster.conftest import CHECK, JOB, Batch, batch
from tests.cluster.slurm_cluster import MEMORY_CGROUP, SlurmCluster, can_bound_memory
from tests.support.gate import Gate

pytestmark = pytest.mark.slow

LONG_S = 1000.0  # idles for longer than the tests last: something has to end it
ELSEWHERE = {"exclude": "n3"}  # n3 is the node that dies

# Joins the job's cgroup and takes memory until the kernel ends whom it would end first, then goes on till the job ends.
HOG = """
import os, sys, time
open(sys.argv[1], 'w').write(str(os.getpid()))
kept = []
for _ in range(64):
    kept.append(bytearray(os.urandom(4096) * 4096))
    time.sleep(0.02)
"""


@pytest.fixture(scope="module")
def campaigns(running_cluster: SlurmCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Batch]]:
    cluster, folder = running_cluster, tmp_path_factory.mktemp("campaigns 100%")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", cluster.environment["SLURM_CONF"])
        gates = {"moved": Gate(folder / "moved gate", lets_one_pass=True), "checkpoint": Gate(folder / "gate")}
        found = _campaigns(folder, cluster, gates)
        for name in ("timeout", "cancelled", "preempted", "lost", "moved", "oom", "checkpoint", "whole"):
            assert found[name].submit() == 0, name
            if found[name].is_doomed:
                cluster.ask("scancel", found[name].check_job)  # a report that says nothing new takes seconds
        _disturb(found, cluster, gates)
        yield found
        for one in found.values():
            one.main("cancel")


def _campaigns(folder: Path, cluster: SlurmCluster, gates: dict[str, Gate]) -> dict[str, Batch]:
    on_n3 = {"exclude": "n1,n2"}
    deaf = {"options": ["--signal=B:CONT@1"]}  # the script knows no such signal, so it is not queued again in time
    # Queued again it may start on another node, and would do the block that it began from its beginning.
    there = {"nodelist": "n1"}
    return {
        "timeout": batch(folder / "timeout", cluster, idle_s=LONG_S, job={**ELSEWHERE, **deaf}),
        "cancelled": batch(folder / "cancelled", cluster, idle_s=LONG_S, job=ELSEWHERE),
        "preempted": batch(folder / "preempted", cluster, idle_s=LONG_S, job={"nodelist": "n2", "cpus_per_task": 8}),
        "lost": batch(folder / "lost", cluster, idle_s=LONG_S, job={**on_n3, "options": ["--no-requeue"]}),
        "moved": batch(folder / "moved", cluster, cases=2, job=on_n3, gate=gates["moved"]),
        "oom": batch(folder / "oom", cluster, idle_s=LONG_S, job=ELSEWHERE),
        "checkpoint": batch(folder / "checkpoint", cluster, cases=3, job=there, gate=gates["checkpoint"]),
        "whole": batch(
            folder / "whole", cluster, repetitions=4, cases=2, job={**ELSEWHERE, "array_max": 3, "throttle": 2}
        ),
    }


def _disturb(found: dict[str, Batch], cluster: SlurmCluster, gates: dict[str, Gate]) -> None:
    cluster.wait_until(lambda: all(found[name].began() for name in found if name != "whole"), 180)
    soon = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + 10))  # a time that is past is refused
    cluster.ask("scontrol", "update", f"jobid={found['timeout'].task}", f"EndTime={soon}")
    cluster.ask("scancel", "--batch", "--signal=USR1", found["checkpoint"].task)
    assert found["cancelled"].main("cancel") == 0
    urgent = cluster.ask(
        "sbatch",
        "--parsable",
        "--partition=urgent",
        "--nodelist=n2",
        "--exclusive",
        "--wrap=true",
        "--output=/dev/null",
    )
    cluster.wait_until(lambda: [one.is_complete for one in found["moved"].attempts()].count(True) == 1, 180)
    cluster.wait_until(found["moved"].began, 180)
    cluster.lose_node("n3")
    cluster.wait_for(found["moved"].task, "PENDING")
    gates["moved"].open()
    cluster.ask("scontrol", "update", f"jobid={found['moved'].task}", "ExcNodeList=")
    _take_memory(found["oom"], cluster)
    cluster.wait_until(lambda: "stopping after the current run" in found["checkpoint"].log(), 180)
    gates["checkpoint"].open()
    cluster.wait_for(urgent, "COMPLETED")


def _take_memory(one: Batch, cluster: SlurmCluster) -> None:
    """Has the kernel end the runner for memory: it is made the first choice, its worker dies with it."""
    if not can_bound_memory():
        return
    claimant = read_claimant(one.attempts()[0].claim)
    assert claimant is not None
    assert claimant.job is not None
    Path(f"/proc/{claimant.pid}/oom_score_adj").write_text("1000")
    lines = Path(f"/proc/{claimant.pid}/cgroup").read_text().splitlines()
    inside = next(line.split(":", 2)[2] for line in lines if ":memory:" in line)
    procs = MEMORY_CGROUP / inside.lstrip("/") / "cgroup.procs"
    subprocess.run([sys.executable, "-c", HOG, str(procs)], check=False, timeout=60)  # it may end with the job


def check_word(one: Batch, state: str, outcome: str) -> None:
    """Waits for the job's end, settles, and looks at the campaign's only run."""
    assert one.cluster is not None
    one.cluster.wait_for(one.task, state, seconds=180)
    assert one.main("settle") == 0
    (attempt,) = one.attempts()
    record = attempt.read_run()
    assert (record["outcome"], record["reason"]) == (outcome, state)
    assert f"Slurm says {state} of job {one.task}" in record["detail"]


@pytest.mark.parametrize(
    ("name", "state", "outcome"),
    [
        ("cancelled", "CANCELLED", "interrupted"),
        ("preempted", "PREEMPTED", "interrupted"),
        ("lost", "NODE_FAIL", "killed"),
    ],
)
def test_a_run_that_died_with_its_job_gets_slurms_word(
    campaigns: dict[str, Batch], cluster: SlurmCluster, name: str, state: str, outcome: str
) -> None:
    check_word(campaigns[name], state, outcome)


@pytest.mark.skipif(not can_bound_memory(), reason="no memory cgroup (version 1) that Slurm could bound a job with")
def test_a_job_that_ran_out_of_memory_is_an_oom(campaigns: dict[str, Batch], cluster: SlurmCluster) -> None:
    check_word(campaigns["oom"], "OUT_OF_MEMORY", "oom")


def test_an_image_that_changed_in_the_queue_runs_nothing(
    campaigns: dict[str, Batch], tmp_path: Path, cluster: SlurmCluster
) -> None:
    image = tmp_path / "image.sif"
    image.write_bytes(b"the image")
    sha256 = hashlib.sha256(b"the image").hexdigest()
    one = batch(tmp_path / "image", cluster, job={**ELSEWHERE, "options": ["--hold"]})
    one.write_site(image={"path": str(image), "sha256": sha256}, scratch={"stage_image": True})
    assert one.submit() == 0
    image.write_bytes(b"another")
    cluster.ask("scontrol", "release", one.task)
    cluster.wait_for(one.task, "FAILED")
    assert "the image is not the one that was submitted" in one.log()
    assert one.attempts() == []
    one.main("cancel")


def _queued(cluster: SlurmCluster) -> set[str]:
    return set(cluster.ask("squeue", "--noheader", "--array", "--format=%i").split())


def test_what_slurm_refuses_leaves_nothing(
    campaigns: dict[str, Batch], tmp_path: Path, cluster: SlurmCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """The array is accepted, the check is not: the array goes again."""
    # Held: what has begun to run is in the queue for a while after it was cancelled.
    one = batch(tmp_path / "refused", cluster, job={"options": ["--hold"]}, check={"partition": "nope"})
    before = _queued(cluster)
    assert one.submit() == 1
    assert "error: sbatch refused check.sbatch: " in capsys.readouterr().err
    assert _queued(cluster) <= before  # those of other tests come to their ends
    assert one.campaign.submissions() == []
    one.write_site(check=CHECK)
    assert one.submit("--json") == 0
    assert json.loads(capsys.readouterr().out)["shards"] == [1]
    assert one.main("cancel") == 0


def test_a_job_of_another_cluster_with_the_same_number_is_not_cancelled(
    campaigns: dict[str, Batch], tmp_path: Path, cluster: SlurmCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    one = batch(tmp_path / "copied", cluster, job={"options": ["--hold"]})
    assert one.submit() == 0
    task, path = one.task, one.latest.folder / layout.SUBMISSION
    stored = path.read_text()
    path.write_text(stored.replace('"pybenchtest"', '"elsewhere"'))
    capsys.readouterr()
    assert one.main("cancel") == 0
    assert "submission 01 is of the cluster elsewhere" in capsys.readouterr().err
    assert cluster.state(task) == "PENDING"
    path.write_text(stored)
    assert one.main("cancel") == 0
    assert cluster.state(task) == "CANCELLED"


def test_two_arrays_of_one_campaign_do_each_run_once(
    campaigns: dict[str, Batch], tmp_path: Path, cluster: SlurmCluster
) -> None:
    one = batch(tmp_path / "twice", cluster, repetitions=2, cases=2, idle_s=0.3, job=ELSEWHERE)
    assert one.submit("--dry-run") == 0
    script = str(one.campaign.cluster / "dry-run" / "shards-1.sbatch")
    jobs = [cluster.ask("sbatch", "--parsable", script) for _ in range(2)]
    for task in (f"{job}_{index}" for job in jobs for index in (1, 2)):
        cluster.wait_for(task, "COMPLETED", "FAILED")
    assert [attempt.attempt for attempt in one.attempts()] == [1] * 4
    assert one.main("check") == 0


def test_a_task_that_checkpoints_goes_on_where_it_stopped(campaigns: dict[str, Batch], cluster: SlurmCluster) -> None:
    one = campaigns["checkpoint"]
    cluster.wait_for(one.task, "COMPLETED")
    assert [(attempt.attempt, attempt.read_run()["outcome"]) for attempt in one.attempts()] == [(1, "ok")] * 3
    log = one.log()
    assert log.index("start 1") < log.index("asked to checkpoint") < log.index("is queued again") < log.index("start 2")
    jobs = [read_claimant(attempt.claim).job for attempt in one.attempts()]  # type: ignore[union-attr]
    assert sorted({job.restart for job in jobs if job}) == [0, 1]


def test_a_campaign_in_chunks_is_checked_and_reported(
    campaigns: dict[str, Batch], cluster: SlurmCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    one = campaigns["whole"]
    cluster.wait_for(one.check_job, "COMPLETED")
    assert [list(job.tasks().values()) for job in one.latest.jobs] == [[1, 2, 3], [4], [None]]
    assert one.main("check") == 0
    assert (one.campaign.report / "index.html").exists()
    assert [attempt.attempt for attempt in one.attempts()] == [1] * 8
    for block in range(1, 5):
        machines = {read_claimant(one.campaign.attempt(case, block, 1).claim).machine for case in _cases(one)}  # type: ignore[union-attr]
        assert len(machines) == 1, "a block stays on one node"
    capsys.readouterr()
    assert one.main("status") == 0
    assert "submission 01 (slurm): 5 COMPLETED" in capsys.readouterr().out
    assert one.main("logs", "4") == 0
    assert "2 ok of 2 runs" in capsys.readouterr().out


def test_submitting_again_submits_what_is_missing(
    campaigns: dict[str, Batch], cluster: SlurmCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    one = campaigns["whole"]
    cluster.wait_for(one.check_job, "COMPLETED")
    capsys.readouterr()
    assert one.submit() == 0
    assert capsys.readouterr().out == "nothing to submit\n"
    (one.campaign.attempt(_cases(one)[0], 3, 1).path / layout.COMPLETE).unlink()
    one.write_site(job={**JOB, **ELSEWHERE, "array_max": 3, "throttle": 2, "options": ["--hold"]})
    assert one.submit() == 0
    assert [list(job.tasks().values()) for job in one.latest.jobs] == [[3], [None]]
    capsys.readouterr()
    assert one.submit() == 0
    assert capsys.readouterr().out == "nothing to submit; 1 shard already in the queue\n"
    assert one.submit("--shards", "2") == 2
    assert "has 1 of 4 shards in the queue" in capsys.readouterr().err
    assert one.submit("--retry-failed") == 2
    assert "1 shard for a `run` with other options" in capsys.readouterr().err
    cluster.ask("scancel", one.check_job)
    cluster.ask("scontrol", "release", one.task)
    cluster.wait_for(one.task, "COMPLETED")
    assert one.main("check") == 0


def test_a_block_whose_node_died_is_done_again_on_one_machine(
    campaigns: dict[str, Batch], cluster: SlurmCluster
) -> None:
    one = campaigns["moved"]
    cluster.wait_for(one.task, "COMPLETED")
    cluster.wait_for(one.check_job, "COMPLETED")
    made = {}
    for attempt in one.attempts():
        claimant = read_claimant(attempt.claim)
        assert claimant is not None
        record = attempt.read_run()
        made.setdefault(claimant.machine == "n3", []).append((attempt.attempt, record["outcome"], record["reason"]))
    assert sorted(made[True]) == [(1, "killed", "REQUEUED"), (1, "ok", None)], "one done, one lost with the node"
    assert made[False] == [(2, "ok", None)] * 2
    assert len(list(one.campaign.runs())) == 2, "each run counts once"


def test_a_job_whose_time_was_up_is_a_timeout(campaigns: dict[str, Batch], cluster: SlurmCluster) -> None:
    """Last of all, because Slurm looks at time limits every 30 s."""
    check_word(campaigns["timeout"], "TIMEOUT", "timeout")


def _cases(one: Batch) -> list[str]:
    return sorted({case for case, _ in one.campaign.started()})
