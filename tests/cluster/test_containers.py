# SPDX-License-Identifier: Apache-2.0
"""A campaign on a real Slurm cluster whose runs are in a container: the image's digest comes with every run, and a
checkpoint reaches it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from pybench.launcher import Container
from tests.cluster.conftest import INSTALLED, batch
from tests.cluster.slurm_cluster import SlurmCluster
from tests.launcher.conftest import container, podman_storage, small_archive

__all__ = ["container", "podman_storage", "small_archive"]

pytestmark = [pytest.mark.slow, pytest.mark.container]


def test_a_task_checkpoints_between_runs_in_a_container(
    container: Container, small_archive: tuple[Path, str], cluster: SlurmCluster, tmp_path: Path
) -> None:
    archive, digest = small_archive
    sha256 = hashlib.sha256(archive.read_bytes()).hexdigest()
    one = batch(tmp_path / "contained", cluster, cases=2, idle_s=2.0, job={"nodelist": "n1"})
    variables = {"PYTHONPATH": str(INSTALLED), "CONTAINERS_STORAGE_CONF": os.environ["CONTAINERS_STORAGE_CONF"]}
    one.write_site(image={"path": str(archive), "sha256": sha256}, environment=variables)
    assert one.submit() == 0
    cluster.ask("scancel", one.check_job)
    cluster.wait_until(one.began, 180)
    cluster.ask("scancel", "--batch", "--signal=USR1", one.task)
    cluster.wait_for(one.task, "COMPLETED", "FAILED", seconds=180)
    assert "is queued again" in one.log()
    runs = list(one.campaign.runs())
    assert [(run.attempt, run.read_run()["outcome"]) for run in runs] == [(1, "ok")] * 2
    assert {run.read_environment()["image_digest"] for run in runs} == {digest}
