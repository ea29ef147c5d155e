# SPDX-License-Identifier: Apache-2.0
"""One cluster for all tests of a session, and campaigns of runs that idle."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.slurm_cluster import SlurmCluster, missing

REPOSITORY = Path(__file__).parents[2]

PLAN = """\
schema_version: 1
name: {name}
seed: 3
repetitions: {repetitions}
matrix:
  - {{workload: noop, iterations: {iterations}, energy_window_s: {idle_s}}}
"""

SITE = """\
kind = "slurm"

[environment]
PYTHONPATH = "{repository}"

[job]
time = "{time}"
mem = "{mem}"
exclusive = {exclusive}
checkpoint_s = {checkpoint_s}
{job}

[check]
mem = "500M"
{rest}
"""


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


def write_plan(folder: Path, name: str = "trial", repetitions: int = 2, cases: int = 2, idle_s: float = 0.0) -> Path:
    path = folder / f"{name}.yaml"
    iterations = list(range(1, cases + 1))
    path.write_text(PLAN.format(name=name, repetitions=repetitions, iterations=iterations, idle_s=idle_s))
    return path


def write_site(
    folder: Path,
    *,
    job: str = "",
    rest: str = "",
    time: str = "5",
    mem: str = "500M",
    exclusive: bool = False,
    checkpoint_s: int = 60,
) -> Path:
    path = folder / "site.toml"
    exclusively = str(exclusive).lower()
    path.write_text(
        SITE.format(
            repository=REPOSITORY,
            job=job,
            rest=rest,
            time=time,
            mem=mem,
            exclusive=exclusively,
            checkpoint_s=checkpoint_s,
        )
    )
    return path


PYTHON = sys.executable
