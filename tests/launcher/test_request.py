# SPDX-License-Identifier: Apache-2.0
"""What a container is asked to be given, whichever engine then runs it: folders to write, and variables."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pybench.errors import UsageError
from pybench.launcher import Container, FileAccess
from pybench.launcher import container as launcher
from pybench.launcher.engines import Apptainer, Mount
from pybench.launcher.images import Image
from tests.support.onnx_models import save_with_weights_beside

DIGEST = "sha256:" + "a" * 64


@pytest.fixture
def small_sif() -> Container:
    return Container(Apptainer(), Image("/small.sif", "sif", DIGEST), "/small.sif", "apptainer 1.4", None)


def writable(container: Container, scratch: Path) -> list[Mount]:
    return [mount for mount in container._request([], FileAccess(), scratch).mounts if mount.is_writable]


def test_boards_are_locked_in_a_folder_that_containers_share_where_they_have_gpus(
    small_sif: Container, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch, boards = tmp_path / "scratch", tmp_path / "boards"
    monkeypatch.setenv("PYBENCH_BOARD_STATE", str(boards))
    monkeypatch.setattr(launcher, "wanted_gpus", lambda environment: ("GPU-1",))
    assert writable(small_sif, scratch) == [Mount(scratch, True)]  # no run has made it yet
    boards.mkdir()
    assert writable(small_sif, scratch) == [Mount(scratch, True), Mount(boards, True)]
    monkeypatch.setattr(launcher, "wanted_gpus", lambda environment: ())
    assert writable(small_sif, scratch) == [Mount(scratch, True)]


def test_a_variable_without_a_value_names_no_folder(
    small_sif: Container, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYBENCH_BOARD_STATE", "")
    monkeypatch.setattr(launcher, "DEFAULT_BOARD_STATE", str(tmp_path))
    monkeypatch.setattr(launcher, "wanted_gpus", lambda environment: ("GPU-1",))
    assert Mount(tmp_path, True) in writable(small_sif, tmp_path / "scratch")
    assert Mount(Path(), True) not in writable(small_sif, tmp_path / "scratch")


def test_a_container_is_told_its_image_and_engine_and_the_callers_gpus(
    small_sif: Container, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    monkeypatch.setenv("PYBENCH_BOARD_STATE", "/boards")
    monkeypatch.setenv("SECRET", "1")
    assert small_sif._request([], FileAccess(), tmp_path).variables == {
        "CUDA_VISIBLE_DEVICES": "1",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "PYBENCH_BOARD_STATE": "/boards",
        "PYBENCH_IMAGE_DIGEST": DIGEST,
        "PYBENCH_CONTAINER_ENGINE": "apptainer 1.4",
    }


def test_the_weights_of_an_onnx_file_are_given_with_it_whatever_they_are_called_and_no_other_neighbour(
    small_sif: Container, tmp_path: Path
) -> None:
    path, other = tmp_path / "model.onnx", tmp_path / "config.json"
    save_with_weights_beside(path, "weights.bin")
    other.write_text("{}")
    (tmp_path / "model.onnx.txt").touch()

    def given(access: FileAccess) -> list[str]:
        mounts = small_sif._request([], access, tmp_path / "scratch").mounts
        return [mount.path.name for mount in mounts if not mount.is_writable]

    assert given(FileAccess(reads=(path,), onnx=path)) == ["model.onnx", "weights.bin"]
    assert given(FileAccess(reads=(other,), onnx=other)) == ["config.json"]  # of a library's model


@pytest.mark.parametrize("hidden", ["model.onnx", "weights.bin", "campaign", "campaign/runs"])
def test_what_root_alone_may_read_is_refused_and_named(
    small_sif: Container, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hidden: str
) -> None:
    path, campaign = tmp_path / "model.onnx", tmp_path / "campaign"
    run = campaign / "runs/one"
    run.mkdir(parents=True, mode=0o700)  # is given to the container's user
    save_with_weights_beside(path, "weights.bin")
    for seen in (path, tmp_path / "weights.bin", campaign, run.parent):
        seen.chmod(0o755)
    access = FileAccess(writes=(run,), reads=(campaign, path, tmp_path / "absent"), onnx=path)
    mounts = small_sif._request([], access, tmp_path / "scratch").mounts
    stranger = (os.getuid() + 1, os.getgid() + 1)
    monkeypatch.setattr(os, "getuid", lambda: 0)
    launcher._refuse_hidden(stranger, access, mounts)
    (tmp_path / hidden).chmod(0o700)
    with pytest.raises(
        UsageError, match=f"user {stranger[0]}, who runs root's containers, may not read {tmp_path / hidden}\n"
    ):
        launcher._refuse_hidden(stranger, access, mounts)
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    launcher._refuse_hidden(stranger, access, mounts)  # in a container of their own, users have their rights
