# SPDX-License-Identifier: Apache-2.0
"""Artefacts that take long are made on several nodes of a real Slurm cluster, before the first shard begins."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pybench.campaign.directory import read_json
from tests.cluster.conftest import batch
from tests.cluster.slurm_cluster import SlurmCluster
from tests.support.gate import Gate

pytestmark = pytest.mark.slow

PLAN = """\
schema_version: 1
name: trained
repetitions: 2
defaults: {iterations: 3, warmup_iterations: 1, idle_window_s: 0, energy_window_s: 0, threads: 1}
matrix:
  - {workload: infer, model: digits-cnn, runtime: torch, device: cpu, training_seed: [0, 1]}
"""


def test_two_trainings_are_done_on_two_nodes_and_the_shards_wait_for_both(
    tmp_path: Path, cluster: SlurmCluster
) -> None:
    gate = Gate(tmp_path / "gate")
    one = batch(tmp_path / "trained", cluster, job={"exclusive": True, "exclude": "n3"}, gate=gate)
    one.plan.write_text(PLAN)
    assert one.submit() == 0
    artefacts, shards, check = one.latest.jobs
    assert [list(job.tasks()) for job in (artefacts, shards)] == [
        [f"{job.id}_1", f"{job.id}_2"] for job in (artefacts, shards)
    ]
    assert f"afterany:{artefacts.id}" in cluster.ask("scontrol", "show", "job", f"{shards.id}_1")
    logs = [one.latest.folder / "logs" / f"artefacts-{task}.out" for task in (1, 2)]
    cluster.wait_until(lambda: all(log.exists() and "making checkpoint" in log.read_text() for log in logs), 180)
    gate.open()  # each has begun one: neither could make both
    cluster.wait_for(check.id, "COMPLETED", seconds=400)
    assert {re.findall(r" on (n\d), start 1", log.read_text())[0] for log in logs} == {"n1", "n2"}
    assert [log.read_text().count("making checkpoint") for log in logs] == [1, 1]
    made = [read_json(path) for path in one.campaign.artefacts.glob("*/run.json")]
    assert [record["outcome"] for record in made] == ["ok", "ok"]
    runs = [attempt.read_run() for attempt in one.attempts()]
    assert [run["outcome"] for run in runs] == ["ok"] * 4
    assert min(run["started_utc"] for run in runs) >= max(record["finished_utc"] for record in made)
