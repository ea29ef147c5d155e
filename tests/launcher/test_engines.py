# SPDX-License-Identifier: Apache-2.0
"""Which engine runs which image, and the command lines of those that the other tests cannot start."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from pybench.errors import UsageError
from pybench.launcher import engines
from pybench.launcher.engines import Apptainer, ContainerRequest, Docker, Engine, Mount, Podman, choose_engine
from pybench.launcher.images import Image, Kind

REFERENCE = "example.org/pybench@sha256:" + "a" * 64


def image(kind: Kind) -> Image:
    return Image(REFERENCE if kind == "registry" else "/images/pybench", kind, "sha256:" + "a" * 64)


@pytest.fixture
def request_(tmp_path: Path) -> ContainerRequest:
    mounts = [Mount(Path("/data/a"), False), Mount(Path('/data/b, "c"'), True)]
    return ContainerRequest(
        "pybench-1", tmp_path, mounts, {"CUDA_VISIBLE_DEVICES": "0,1"}, ("GPU-1", "GPU-2"), ["python", "-P"]
    )


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    for name in names:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


@pytest.mark.parametrize(
    ("installed", "kind", "chosen"),
    [
        (("podman", "docker", "apptainer"), "archive", "podman"),
        (("docker", "apptainer"), "archive", "docker"),
        (("podman", "docker", "apptainer"), "sif", "apptainer"),
        (("podman", "singularity"), "sif", "singularity"),
        (("apptainer",), "registry", "apptainer"),
    ],
)
def test_the_first_engine_that_can_run_an_image_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed: tuple[str, ...], kind: Kind, chosen: str
) -> None:
    install(tmp_path, monkeypatch, *installed)
    assert choose_engine(image(kind), None).name == chosen


def test_an_engine_is_refused_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "podman")
    with pytest.raises(UsageError, match="none of apptainer, singularity is installed"):
        choose_engine(image("sif"), None)
    with pytest.raises(UsageError, match="podman cannot run /images/pybench, which is a SIF") as raised:
        choose_engine(image("sif"), "podman")
    assert "apptainer can" in str(raised.value.hint)
    with pytest.raises(UsageError, match="docker is not installed"):
        choose_engine(image("archive"), "docker")
    with pytest.raises(UsageError, match="--engine pod: unknown engine"):
        choose_engine(image("archive"), "pod")


def test_apptainer_is_given_everything_by_name(request_: ContainerRequest) -> None:
    words = Apptainer().run("/images/pybench.sif", request_)
    assert words[:3] == ["apptainer", "--silent", "exec"]
    assert {"--containall", "--no-home", "--cleanenv", "--nv"} <= set(words)
    mounts = [words[place + 1] for place, word in enumerate(words) if word == "--mount"]
    assert mounts == ["type=bind,src=/data/a,dst=/data/a,ro",
                      'type=bind,"src=/data/b, ""c""","dst=/data/b, ""c"""']  # fmt: skip
    assert words[words.index("--workdir") + 1] == str(request_.scratch / "work")
    assert words[-6:] == ["/images/pybench.sif", "env", "HOME=/tmp", "CUDA_VISIBLE_DEVICES=0,1", "python", "-P"]


def test_apptainers_own_variables_mount_and_set_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("APPTAINER_BIND", "APPTAINERENV_LD_PRELOAD", "SINGULARITY_BINDPATH", "APPTAINER_CACHEDIR"):
        monkeypatch.setenv(name, "/x")
    environment = Apptainer().client_environment()
    assert {name for name in environment if name.startswith(("APPTAINER", "SINGULARITY"))} == {"APPTAINER_CACHEDIR"}


def test_docker_is_given_gpus_by_uuid(request_: ContainerRequest) -> None:
    words = Docker().run(REFERENCE, request_)
    assert words[words.index("--gpus") + 1] == '"device=GPU-1,GPU-2"'
    assert {"--read-only", "--rm"} <= set(words)
    assert words[words.index("--user") + 1] == f"{os.getuid() or 1000}:{os.getgid() or 1000}"
    assert words[-5:] == ["tini", REFERENCE, "--", "python", "-P"]
    assert "type=bind,src=/data/a,dst=/data/a,readonly" in words


def test_podman_is_given_limits_that_it_may_set(request_: ContainerRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "cdi_names", lambda uuids: [f"nvidia.com/gpu={uuid}" for uuid in uuids])
    words = Podman().run(REFERENCE, request_)
    assert [words[place + 1] for place, word in enumerate(words) if word == "--device"] == [
        "nvidia.com/gpu=GPU-1",
        "nvidia.com/gpu=GPU-2",
    ]
    limits = dict(words[place + 1].split("=") for place, word in enumerate(words) if word == "--ulimit")
    soft, hard = map(int, limits["nproc"].split(":"))
    assert soft <= hard <= int(Path("/proc/sys/kernel/pid_max").read_text())


@pytest.mark.skipif(shutil.which("tini") is None, reason="SKIPPED: tini is not installed")
@pytest.mark.parametrize("engine", [Podman(), Docker(), Apptainer()], ids=lambda engine: engine.name)
@pytest.mark.parametrize("first", [(), ("taskset", "--cpu-list", str(min(os.sched_getaffinity(0))))])
def test_a_program_that_the_image_lacks_is_a_container_that_never_began(
    engine: Engine, first: tuple[str, ...], request_: ContainerRequest, tmp_path: Path
) -> None:
    for program in ("tini", "env", "taskset"):
        (tmp_path / program).symlink_to(str(shutil.which(program)))
    words = engine.run(REFERENCE, replace(request_, gpus=(), words=[*first, "python"]))
    inside = words[words.index(REFERENCE) + 1 :]
    if "--entrypoint" in words:
        inside = [words[words.index("--entrypoint") + 1], *inside]

    def status() -> int:
        return subprocess.run(inside, env={"PATH": str(tmp_path)}, capture_output=True).returncode

    assert status() == 127
    (tmp_path / "python").write_text("not to be executed")
    assert status() == 126
    assert {126, 127} < engine.failures


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("write /layer.tar: no space left on device", "free some space"),
        ("dial unix /var/run/docker.sock: connect: permission denied", "check that you may use podman"),
        ('Get "http://127.0.0.1:5000/v2/": dial tcp 127.0.0.1:5000: connect: connection refused', "registry answer"),
        ("pull access denied for small, repository does not exist or may require 'docker login'", "podman login HOST"),
        ("reading manifest latest in gemini/out: name unknown: repository name not known", "check its name"),
    ],
)
def test_a_failure_of_an_engine_comes_with_what_to_do(said: str, hint: str) -> None:
    assert hint in engines._hint(said, "podman")
