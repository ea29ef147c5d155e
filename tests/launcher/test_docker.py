# SPDX-License-Identifier: Apache-2.0
"""A campaign under a real Docker daemon of its own, on a socket of its own, without a network."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pybench.campaign.directory import CampaignDirectory
from pybench.launcher import open_container
from tests.launcher.contained_campaign import containers_of, run_campaign, start_runner, workers_of
from tests.runner.conftest import noop_cases, plan_content
from tests.support.waiting import wait_for

pytestmark = [
    pytest.mark.container,
    pytest.mark.skipif(shutil.which("dockerd") is None, reason="SKIPPED: Docker's daemon is not installed"),
    pytest.mark.skipif(os.geteuid() != 0, reason="SKIPPED: Docker's daemon needs root"),
]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("docker")
    address = f"unix://{folder}/socket"
    command = ["dockerd", "--iptables=false", "--ip6tables=false", "--bridge=none", "--data-root", str(folder / "data"),
               "--exec-root", str(folder / "exec"), "--pidfile", str(folder / "pid"), "-H", address]  # fmt: skip
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    os.environ["DOCKER_HOST"] = address
    try:
        until = time.monotonic() + 60
        while subprocess.run(["docker", "version"], capture_output=True).returncode != 0:
            if process.poll() is not None or time.monotonic() > until:
                pytest.skip(f"SKIPPED: Docker's daemon does not work here: {(folder / 'log').read_text()[-300:]}")
            time.sleep(0.2)
        yield
    finally:
        del os.environ["DOCKER_HOST"]
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)


def test_a_campaign_runs_under_docker_and_leaves_nothing_behind(
    daemon: None, small_archive: tuple[Path, str], tmp_path: Path
) -> None:
    container = open_container(str(small_archive[0]), "docker", lambda text: None)
    campaign = CampaignDirectory(tmp_path / "plain")
    tally = run_campaign(campaign, plan_content(noop_cases(1), 1), launcher=container)
    assert dict(tally.outcomes) == {"ok": 1}
    environment = next(campaign.runs()).read_environment()
    assert environment["image_digest"] == small_archive[1]
    assert environment["container_engine"].startswith("Docker ")

    late = CampaignDirectory(tmp_path / "late")
    tally = run_campaign(late, plan_content(noop_cases(1, idle_s=200), 1), launcher=container, timeout_s=3)
    assert dict(tally.outcomes) == {"timeout": 1}

    orphaned = CampaignDirectory(tmp_path / "orphaned")
    process = start_runner(small_archive[0], orphaned, plan_content(noop_cases(1, idle_s=200), 1), "docker")
    wait_for(lambda: workers_of(orphaned))
    process.kill()
    process.wait()
    wait_for(lambda: not workers_of(orphaned))
    wait_for(lambda: not containers_of(container))
