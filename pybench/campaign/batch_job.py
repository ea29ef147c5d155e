# SPDX-License-Identifier: Apache-2.0
"""The batch job that a process runs in, as its claims name it: whoever finds one can ask the batch system how it ended.

Slurm says so by itself. A Kubernetes pod learns it from the variables that `pybench.cluster.kubernetes` renders.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

SLURM = "slurm"
KUBERNETES = "kubernetes"
KUBERNETES_JOB = "PYBENCH_KUBERNETES_JOB"
KUBERNETES_NODE = "PYBENCH_KUBERNETES_NODE"
KUBERNETES_FAILURES = ("PYBENCH_KUBERNETES_FAILURES", "PYBENCH_KUBERNETES_IGNORED_FAILURES")


@dataclass(frozen=True, slots=True)
class BatchJob:
    """`id`: `12`, or `12_3` for task 3 of an array; `restart`: how often the system has started it again before."""

    scheduler: str
    cluster: str | None
    id: str
    restart: int
    node: str | None

    def is_earlier_start_of(self, other: BatchJob) -> bool:
        """Whether `other` is the same job, started again: then what ran in this start of it has ended."""
        same = (self.scheduler, self.cluster, self.id) == (other.scheduler, other.cluster, other.id)
        return same and self.restart < other.restart


def this_batch_job(environment: Mapping[str, str] = os.environ) -> BatchJob | None:
    """The job around this process, None outside of any.

    The last task of an array has SLURM_JOB_ID equal to SLURM_ARRAY_JOB_ID, so a task is named by array and index.
    """
    if "SLURM_JOB_ID" in environment:
        array, task = environment.get("SLURM_ARRAY_JOB_ID"), environment.get("SLURM_ARRAY_TASK_ID")
        return BatchJob(
            SLURM,
            environment.get("SLURM_CLUSTER_NAME"),
            f"{array}_{task}" if array and task else environment["SLURM_JOB_ID"],
            _number(environment.get("SLURM_RESTART_COUNT")),  # set only after a restart
            environment.get("SLURMD_NODENAME"),
        )
    if KUBERNETES_JOB in environment:
        return BatchJob(
            KUBERNETES,
            None,
            f"{environment[KUBERNETES_JOB]}_{environment.get('JOB_COMPLETION_INDEX', '0')}",
            sum(_number(environment.get(name)) for name in KUBERNETES_FAILURES),
            environment.get(KUBERNETES_NODE),
        )
    return None


def _number(text: str | None) -> int:
    return int(text) if text and text.isdigit() else 0
