# SPDX-License-Identifier: Apache-2.0
"""Containerfile and apptainer.def make of the same locks what build.py makes: same packages, variables, entry point."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import debs_lock
import image_content
import inside
import pytest
import sources
import steps
from debian_root import bootstrap, mirror_of_this_machine


def test_both_set_the_images_variables(containers: Path) -> None:
    containerfile = (containers / "Containerfile").read_text().replace("\\\n", " ")
    env = re.search(r"^ENV (.*)$", containerfile, re.MULTILINE)
    assert env is not None
    assert dict(word.split("=", 1) for word in env[1].split()) == image_content.ENVIRONMENT
    definition = (containers / "apptainer.def").read_text()
    exported = dict(re.findall(r"^    export (\w+)=(.*)$", definition, re.MULTILINE))
    # Apptainer sets the caller's own name and home.
    callers = {"HOME", "USER", "LOGNAME"}
    assert exported == {name: value for name, value in image_content.ENVIRONMENT.items() if name not in callers}


def test_the_containerfile_has_the_images_user_and_entry_point(containers: Path) -> None:
    text = (containers / "Containerfile").read_text()
    words = ", ".join(f'"{word}"' for word in image_content.ENTRYPOINT)
    assert f"ENTRYPOINT [{words}]" in text
    assert f"USER {image_content.USER_ID}:{image_content.USER_ID}" in text
    assert f" --timestamp {steps.EPOCH_S} " in text  # in the command that it recommends


@pytest.mark.parametrize("name", ["Containerfile", "apptainer.def"])
def test_everything_that_enters_the_image_is_copied(containers: Path, name: str) -> None:
    text = (containers / name).read_text()
    for source in sources.ENTERING:
        if source != "containers/sif":  # no SIF is written there by us
            assert re.search(rf"(COPY|^)\s.*\b{re.escape(source)}\b.*/(src|opt/pybench/plans)", text, re.MULTILINE), (
                source
            )


@pytest.mark.parametrize("section", ["image", "image-full", "builder"])
def test_the_script_installs_the_packages_of_debs_txt(containers: Path, tmp_path: Path, section: str) -> None:
    apt = tmp_path / "apt-get"
    apt.write_text('#!/bin/sh\n[ "$1" != install ] || printf "%s\\n" "$@"\n')
    apt.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    said = subprocess.check_output(["sh", containers / "packages.sh", section], text=True, env=environment)
    assert [word for word in said.split()[1:] if not word.startswith("-")] == debs_lock.names_in(section)


@pytest.mark.parametrize("task", ["install", "compare"])
@pytest.mark.parametrize("tier", ["tensorrt", "fulll", ""])
def test_a_tier_that_no_engine_can_build_is_refused_before_anything_is_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], task: str, tier: str
) -> None:
    done: list[str] = []
    for name in ("install", "compare"):
        monkeypatch.setattr(inside, name, lambda tier, *rest: done.append(tier))
    assert inside.main([task, tier, "0"]) == 1
    assert done == []
    said = capsys.readouterr().err
    assert said.startswith(f"error: TIER={tier}: an engine builds slim or full\nhint: ")
    assert "containers/build.py --tier tensorrt --tensorrt FOLDER" in said
    for known in ("slim", "full"):
        assert inside.main([task, known, "0"]) == 0
    assert done == ["slim", "full"]


@pytest.mark.container
@pytest.mark.timeout(1800)
@pytest.mark.skipif(os.environ.get("PYBENCH_TEST_CONTAINER") != "1", reason="takes minutes: PYBENCH_TEST_CONTAINER=1")
@pytest.mark.skipif(os.geteuid() != 0, reason="making a Debian root needs root")
@pytest.mark.skipif(shutil.which("buildah") is None, reason="SKIPPED: buildah is not installed")
def test_buildah_builds_the_containerfile_and_the_image_works(containers: Path, tmp_path: Path) -> None:
    base = tmp_path / "base.tar"
    with (tmp_path / "log").open("w") as log:
        bootstrap(["ca-certificates"], "apt", base, mirror_of_this_machine(), steps.EPOCH_S, log)
    storage = ["--root", str(tmp_path / "root"), "--runroot", str(tmp_path / "run")]
    buildah = ["buildah", *storage]
    try:
        made = subprocess.check_output([*buildah, "from", "scratch"], text=True).strip()
        subprocess.run([*buildah, "add", "--quiet", made, str(base)], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([*buildah, "commit", "--quiet", made, "debian-root"], check=True, stdout=subprocess.DEVNULL)
        built = subprocess.run(
            [*buildah, "bud", "--isolation", "chroot", "--timestamp", str(steps.EPOCH_S), "--squash",
             "--volume", "/etc/ssl/certs:/etc/ssl/certs:ro", "--build-arg", "BASE=localhost/debian-root",
             "--build-arg", "TIER=slim", "--file", containers / "Containerfile", "--tag", "pybench:slim",
             containers.parent], capture_output=True, text=True)  # fmt: skip
        assert built.returncode == 0, (built.stdout + built.stderr)[-3000:]
        assert "0 of " in built.stdout, "Debian's packages are not those of debs.lock"
        container = subprocess.check_output([*buildah, "from", "pybench:slim"], text=True).strip()
        run = [*buildah, "run", "--isolation", "chroot", container, "--", "pybench"]
        said = subprocess.check_output([*run, "doctor"], text=True)
        for what in ("tokens: rust", "tokens: go_rust", "ONNX models on ONNX Runtime"):
            assert re.search(rf"^yes +{what}", said, re.MULTILINE), said
        assert subprocess.check_output([*run, "--version"], text=True) == f"pybench {steps.project_version()}\n"
    finally:
        subprocess.run([*buildah, "rm", "--all"], capture_output=True)
        subprocess.run([*buildah, "rmi", "--all", "--force"], capture_output=True)
