# SPDX-License-Identifier: Apache-2.0
"""Campaigns in real containers of podman: what they may see, what a run remembers, and that nothing outlives it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from pybench.campaign import layout
from pybench.campaign.directory import CampaignDirectory
from pybench.errors import PybenchError, UsageError
from pybench.launcher import Container, FileAccess
from pybench.launcher.engines import ContainerRequest, Mount, Podman
from tests.launcher.contained_campaign import (
    children_of,
    command_of,
    containers_of,
    run_campaign,
    start_runner,
    workers_of,
)
from tests.runner.conftest import noop_cases, plan_content
from tests.runner.test_campaign import interrupt_twice
from tests.support.waiting import wait_for

pytestmark = pytest.mark.container

LOOK = """
import json, os, socket
def can_write(path):
    try:
        open(path + "/written", "w").close()
    except OSError:
        return False
    return True
status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
print(json.dumps({
    "user": [os.getuid(), os.getgid()],
    "capabilities": int(status["CapEff"], 16) | int(status["CapBnd"], 16),
    "no_new_privileges": status["NoNewPrivs"],
    "variables": dict(os.environ),
    "interfaces": [name for _, name in socket.if_nameindex()],
    "host": socket.gethostname(),
    "writes": {path: can_write(path) for path in PATHS},
    "processes": len([name for name in os.listdir("/proc") if name.isdigit()]),
}))
"""


@pytest.fixture
def campaign(tmp_path: Path) -> CampaignDirectory:
    return CampaignDirectory(tmp_path / "a campaign, quoted: 1")


def test_a_run_in_a_container_is_like_any_other_and_remembers_its_image(
    container: Container, campaign: CampaignDirectory
) -> None:
    tally = run_campaign(campaign, plan_content(noop_cases(1), 2), launcher=container)
    assert dict(tally.outcomes) == {"ok": 2}
    for run in campaign.runs():
        environment = run.read_environment()
        assert environment["image_digest"] == container.image.digest
        assert environment["container_engine"].startswith("podman ")
        assert environment["host"] == os.uname().nodename
        assert run.file(layout.STDERR).read_text() == ""
    wait_for(lambda: not containers_of(container))


def test_a_container_sees_what_it_was_given_and_nothing_else(
    container: Container, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example")
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    readable, writable = tmp_path / "readable", tmp_path / "a, b"
    for folder in (readable, writable):
        folder.mkdir()
        folder.chmod(0o777)
    paths = [str(readable), str(writable), "/", "/opt/site", "/tmp", "/home", "/proc/sys"]
    words = ["python", "-c", f"PATHS = {paths!r}\n{LOOK}"]
    mounts = [Mount(readable, False), Mount(writable, True)]
    request = ContainerRequest("pybench-look", tmp_path, mounts, {"GIVEN": "a=b, c"}, (), words)
    command = container.engine.run(container.reference, request)
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["user"] == [os.getuid() or 1000, os.getgid() or 1000]
    assert seen["capabilities"] == 0
    assert seen["no_new_privileges"] == "1"
    assert seen["writes"] == {path: path in (str(writable), "/tmp") for path in paths}
    assert seen["variables"]["GIVEN"] == "a=b, c"
    assert seen["variables"]["PYTHONPATH"] == "/opt/site"
    assert not {"HTTPS_PROXY", "https_proxy", "XDG_RUNTIME_DIR"} & seen["variables"].keys()
    assert set(seen["interfaces"]) <= {"lo"}
    assert seen["host"] == os.uname().nodename
    assert seen["processes"] == 2  # tini and this one


def test_a_worker_writes_into_its_own_runs_folder_only(container: Container, campaign: CampaignDirectory) -> None:
    run_campaign(campaign, plan_content(noop_cases(1), 1), launcher=container)
    folder = next(campaign.runs()).path
    request = container._request([], FileAccess(writes=(folder,), reads=(campaign.path,)), campaign.path.parent)
    tried = f"open({str(campaign.path / 'plan.yaml')!r}).close(); open({str(campaign.path / 'other')!r}, 'w')"
    command = container.engine.run(
        container.reference, replace(request, words=["python", "-c", tried], mounts=request.mounts[:2])
    )
    done = subprocess.run(command, capture_output=True, text=True)
    assert "Read-only file system" in done.stderr


@pytest.mark.timeout(150)
def test_a_timeout_ends_the_container(container: Container, campaign: CampaignDirectory) -> None:
    content = plan_content(noop_cases(1, idle_s=200), 1)
    tally = run_campaign(campaign, content, launcher=container, timeout_s=2.5)
    assert dict(tally.outcomes) == {"timeout": 1}
    wait_for(lambda: not containers_of(container))


class ForgetfulPodman(Podman):
    """Its program leaves a container behind, as podman does when its removal fails."""

    def run(self, reference: str, request: ContainerRequest) -> list[str]:
        return [word for word in super().run(reference, request) if word != "--rm"]


def test_a_container_that_the_engines_program_left_behind_is_removed(
    container: Container, campaign: CampaignDirectory
) -> None:
    forgetful = replace(container, engine=ForgetfulPodman())
    content = plan_content(noop_cases(1, idle_s=200), 1)
    tally = run_campaign(campaign, content, launcher=forgetful, timeout_s=2.5)
    assert dict(tally.outcomes) == {"timeout": 1}
    wait_for(lambda: not containers_of(container))


@pytest.mark.parametrize(("number", "outcome"), [(signal.SIGKILL, "killed"), (signal.SIGSEGV, "crashed")])
def test_a_signal_that_ends_a_worker_is_told_through_the_container(
    container: Container, campaign: CampaignDirectory, number: signal.Signals, outcome: str
) -> None:
    def strike() -> None:
        os.kill(wait_for(lambda: workers_of(campaign))[0], number)

    striking = threading.Thread(target=strike)
    striking.start()
    content = plan_content(noop_cases(1, idle_s=100), 1)
    run_campaign(campaign, content, launcher=container)
    striking.join()
    record = next(campaign.runs()).read_run()
    assert (record["outcome"], record["signal"]) == (outcome, number.name)


def test_a_container_dies_with_its_runner_and_another_runner_continues(
    container: Container, small_archive: tuple[Path, str], campaign: CampaignDirectory
) -> None:
    case = noop_cases(1, idle_s=200)[0]
    content = plan_content([case], 1)
    process = start_runner(small_archive[0], campaign, content)
    workers = wait_for(lambda: workers_of(campaign))
    assert os.readlink(f"/proc/{workers[0]}/ns/pid") != os.readlink("/proc/self/ns/pid")
    process.kill()
    process.wait()
    wait_for(lambda: not workers_of(campaign))
    wait_for(lambda: not containers_of(container))  # podman removes a copy of the image, on vfs
    tally = run_campaign(campaign, content, launcher=container, timeout_s=2.5)
    assert dict(tally.outcomes) == {"timeout": 1}
    assert [attempt.is_complete for attempt in campaign.attempts(case.id, 1)] == [False, True]


def test_interrupted_twice_the_run_is_interrupted_and_its_container_gone(
    container: Container, small_archive: tuple[Path, str], campaign: CampaignDirectory
) -> None:
    process = start_runner(small_archive[0], campaign, plan_content(noop_cases(1, idle_s=100), 1))
    wait_for(lambda: workers_of(campaign))
    interrupt_twice(process)
    assert process.wait(timeout=120) == 130
    assert [run.read_run()["outcome"] for run in campaign.runs()] == ["interrupted"]
    wait_for(lambda: not containers_of(container))


def test_an_engines_program_that_is_killed_takes_its_container_along(
    container: Container, campaign: CampaignDirectory
) -> None:
    def strike() -> None:
        worker = wait_for(lambda: workers_of(campaign))[0]
        clients = [pid for pid in children_of(os.getpid()) if "pybench.worker" in command_of(pid)]
        assert worker not in clients
        os.kill(clients[0], signal.SIGKILL)

    striking = threading.Thread(target=strike)
    striking.start()
    run_campaign(campaign, plan_content(noop_cases(1, idle_s=100), 1), launcher=container)
    striking.join()
    assert [run.read_run()["outcome"] for run in campaign.runs()] == ["killed"]
    wait_for(lambda: not containers_of(container))
    assert workers_of(campaign) == []


def test_an_image_that_cannot_start_is_one_error_and_no_result(
    container: Container, campaign: CampaignDirectory
) -> None:
    absent = replace(container, reference="0" * 64)
    with pytest.raises(PybenchError, match=r"podman could not run the image \(exit status 125\): .*0{64}"):
        run_campaign(campaign, plan_content(noop_cases(1), 1), launcher=absent)
    assert not list(campaign.block(noop_cases(1)[0].id, 1).iterdir())


def test_a_worker_of_another_version_is_refused(container: Container, monkeypatch: pytest.MonkeyPatch) -> None:
    from pybench.machine import facts

    assert facts.ask(("machine",), container)["machine"]["available"]
    monkeypatch.setattr(facts, "__version__", "9.9")
    with pytest.raises(PybenchError, match=r"the worker is of pybench .*, this is 9\.9"):
        facts.ask(("machine",), container)


def test_cpus_that_this_process_may_not_use_are_not_used_inside(
    container: Container, campaign: CampaignDirectory
) -> None:
    before = os.sched_getaffinity(0)
    if len(before) < 2:
        pytest.skip("SKIPPED: this machine has one CPU")
    os.sched_setaffinity(0, {max(before)})
    try:
        run_campaign(campaign, plan_content(noop_cases(1), 1), launcher=container)
    finally:
        os.sched_setaffinity(0, before)
    assert next(campaign.runs()).read_environment()["cpus_allowed"] == str(max(before))


def test_a_file_of_the_image_that_changes_meanwhile_is_refused(container: Container, tmp_path: Path) -> None:
    sif = tmp_path / "image.sif"
    sif.write_bytes(b"one")
    changed = replace(container, image=replace(container.image, kind="sif", location=str(sif)), stamp=(0, 0, 0, 0))
    with pytest.raises(UsageError, match="has changed while it was in use"):
        changed.start([], FileAccess(), subprocess.DEVNULL, subprocess.DEVNULL, own_session=True)
