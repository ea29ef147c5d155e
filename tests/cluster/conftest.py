# SPDX-License-Identifier: Apache-2.0
"""One cluster for all tests of a session, and campaigns of runs that idle."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import pybench
from pybench.campaign import layout
from pybench.campaign.directory import CampaignDirectory, RunDirectory
from pybench.cli import main
from pybench.cluster.submission import Submission, submissions
from tests.cluster.slurm_cluster import SlurmCluster, missing
from tests.support.gate import Gate

INSTALLED = Path(pybench.__file__).parents[1]  # the pybench that is tested, for jobs that get no environment

PLAN = """\
schema_version: 1
name: {name}
seed: 3
repetitions: {repetitions}
matrix:
  - {{workload: noop, iterations: {iterations}, energy_window_s: {idle_s}}}
"""

JOB = {"time": "5", "mem": "500M", "exclusive": False, "checkpoint_s": 60}
CHECK = {"mem": "500M"}


@dataclass(frozen=True)
class Batch:
    """A campaign that is run by a cluster."""

    plan: Path
    site: Path
    campaign: CampaignDirectory
    cluster: SlurmCluster | None = None
    is_doomed: bool = False

    def write_site(self, **tables: Mapping[str, Any]) -> None:
        """Replaces tables of the site file. JSON is YAML."""
        written = json.loads(self.site.read_text()) if self.site.exists() else {"kind": "slurm"}
        self.site.write_text(json.dumps(written | tables))

    def submit(self, *options: str) -> int:
        return main(["submit", str(self.plan), "--site", str(self.site), "--out", str(self.campaign.path), *options])

    def main(self, command: str, *options: str) -> int:
        """A command on the campaign's directory."""
        return main([command, str(self.campaign.path), *options])

    @property
    def latest(self) -> Submission:
        return submissions(self.campaign)[-1]

    @property
    def task(self) -> str:
        """Slurm's name of the first task of the latest submission's first array of shards."""
        job = next(job for job in self.latest.jobs if job.chunk and job.role == "shards")
        return next(iter(job.tasks()))

    @property
    def check_job(self) -> str:
        return next(job.id for job in self.latest.jobs if job.role == "check")

    def attempts(self) -> list[RunDirectory]:
        """Every attempt of every run, complete or not."""
        return [attempt for case, block in self.campaign.started() for attempt in self.campaign.claims(case, block)]

    def began(self) -> bool:
        """Whether a worker is at work."""
        return any((attempt.path / layout.STDERR).exists() and not attempt.is_complete for attempt in self.attempts())

    def log(self, name: str = "shards-1-1.out") -> str:
        return (self.latest.folder / "logs" / name).read_text()


def batch(
    folder: Path,
    cluster: SlurmCluster | None = None,
    *,
    repetitions: int = 1,
    cases: int = 1,
    idle_s: float = 0.0,
    job: Mapping[str, Any] | None = None,
    check: Mapping[str, Any] | None = None,
    gate: Gate | None = None,
) -> Batch:
    """A campaign that is not submitted yet. `job`, `check`: more keys of these tables of the site; `gate`: what its
    workers wait before."""
    folder.mkdir(exist_ok=True)
    path = f"{gate.folder}:{INSTALLED}" if gate else INSTALLED
    plan, site = folder / "plan.yaml", folder / "site.yaml"
    iterations = list(range(1, cases + 1))
    plan.write_text(PLAN.format(name=folder.name, repetitions=repetitions, iterations=iterations, idle_s=idle_s))
    made = Batch(plan, site, CampaignDirectory(folder / "campaign"), cluster, idle_s > 10)
    made.write_site(environment={"PYTHONPATH": str(path)}, job={**JOB, **(job or {})}, check={**CHECK, **(check or {})})
    return made


@pytest.fixture(scope="session")
def running_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    why_not = missing()
    if why_not:
        pytest.skip(f"no Slurm here: {why_not}")
    cluster = SlurmCluster(tmp_path_factory.mktemp("slurm"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def cluster(running_cluster: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> SlurmCluster:
    """The cluster, with this process's own commands speaking to it."""
    monkeypatch.setenv("SLURM_CONF", running_cluster.environment["SLURM_CONF"])
    return running_cluster
