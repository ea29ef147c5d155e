# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import replace

from pybench.campaign.batch_job import BatchJob, this_batch_job

TASK = {
    "SLURM_JOB_ID": "12",
    "SLURM_ARRAY_JOB_ID": "12",
    "SLURM_ARRAY_TASK_ID": "3",
    "SLURM_CLUSTER_NAME": "big",
    "SLURMD_NODENAME": "n1",
}


def test_outside_of_a_job_there_is_none() -> None:
    assert this_batch_job({"HOME": "/root"}) is None


def test_a_task_of_an_array_is_named_by_array_and_index() -> None:
    assert this_batch_job(TASK) == BatchJob("slurm", "big", "12_3", 0, "n1")
    assert this_batch_job({**TASK, "SLURM_RESTART_COUNT": "2"}) == BatchJob("slurm", "big", "12_3", 2, "n1")
    assert this_batch_job({"SLURM_JOB_ID": "12"}) == BatchJob("slurm", None, "12", 0, None)


def test_a_pod_is_named_by_job_and_index() -> None:
    pod = {"PYBENCH_KUBERNETES_JOB": "pb-trial-01", "JOB_COMPLETION_INDEX": "4"}
    assert this_batch_job(pod) == BatchJob("kubernetes", None, "pb-trial-01_4", 0, None)
    failed = {**pod, "PYBENCH_KUBERNETES_FAILURES": "1", "PYBENCH_KUBERNETES_IGNORED_FAILURES": "2"}
    assert this_batch_job(failed) == BatchJob("kubernetes", None, "pb-trial-01_4", 3, None)
    placed = this_batch_job({**pod, "PYBENCH_KUBERNETES_NODE": "gpu-7"})
    assert placed is not None
    assert placed.node == "gpu-7"
    empty = {**pod, "PYBENCH_KUBERNETES_FAILURES": ""}
    assert this_batch_job(empty) == this_batch_job(pod), "an annotation that is not there is empty text"


def test_a_job_that_was_started_again_knows_its_earlier_starts() -> None:
    first = BatchJob("slurm", "big", "12_3", 0, "n1")
    assert first.is_earlier_start_of(replace(first, restart=1, node="n2"))
    assert not first.is_earlier_start_of(first)
    assert not first.is_earlier_start_of(replace(first, restart=1, id="12_4"))
