# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's wheels are taken by their sha256 and by nothing else."""

import argparse
import hashlib
import os
from pathlib import Path

import build
import canonical_tar
import pytest
import tensorrt_wheels
from debian_root import BuildError

LIBS = "tensorrt_cu13_libs-11.4.0.106-py3-none-manylinux_2_28_x86_64.whl"
BINDINGS = "tensorrt_cu13_bindings-11.4.0.106-cp311-none-manylinux_2_28_x86_64.whl"


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with wheels, and a lock that has them."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    (folder / LIBS).write_text("libraries")
    (folder / BINDINGS).write_text("bindings")
    monkeypatch.setattr(tensorrt_wheels, "LOCK", tmp_path / "tensorrt.lock")
    take(folder, update=True)
    return folder


def asked_for(folder: Path | None, *, update: bool = False) -> argparse.Namespace:
    return argparse.Namespace(tier="tensorrt", tensorrt=folder, update_lock=update)


def take(folder: Path, *, update: bool = False) -> tuple[Path, ...]:
    """What a build takes from the folder."""
    return build.wheels_of(asked_for(folder, update=update))


def test_locked_wheels_are_taken(wheels: Path) -> None:
    assert [wheel.name for wheel in take(wheels)] == [BINDINGS, LIBS]
    lines = tensorrt_wheels.LOCK.read_text().splitlines()
    assert any(line.startswith("tensorrt-cu13-libs==11.4.0.106 --hash=sha256:") for line in lines)


def test_a_wheel_of_other_content_is_refused(wheels: Path) -> None:
    (wheels / LIBS).write_text("other libraries")
    digest = hashlib.sha256(b"other libraries").hexdigest()
    with pytest.raises(BuildError, match=rf"tensorrt.lock does not have {LIBS} with this content \(sha256:{digest}\)"):
        take(wheels)


def test_a_wheel_that_is_missing_or_was_never_locked_is_refused(wheels: Path) -> None:
    extra = wheels / "tensorrt_cu13-11.4.0.106-py2.py3-none-any.whl"
    extra.write_text("the package itself")
    with pytest.raises(BuildError, match="does not have tensorrt_cu13-11"):
        take(wheels)
    take(wheels, update=True)
    extra.unlink()
    with pytest.raises(BuildError, match="lacks tensorrt-cu13==11"):
        take(wheels)


@pytest.mark.parametrize("update", [False, True])
def test_each_wheel_is_read_once(wheels: Path, monkeypatch: pytest.MonkeyPatch, update: bool) -> None:
    """They have gigabytes."""
    read: list[str] = []

    def sha256_of(path: Path) -> str:
        read.append(path.name)
        return hashlib.sha256(path.read_bytes()).hexdigest()

    monkeypatch.setattr(canonical_tar, "sha256_of", sha256_of)
    take(wheels, update=update)
    assert read == [BINDINGS, LIBS]


def test_who_may_not_build_writes_no_lock(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tensorrt_wheels.LOCK.unlink()
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(BuildError, match="needs root"):
        build.check_machine(asked_for(wheels, update=True))
    assert not tensorrt_wheels.LOCK.exists()


def test_without_wheels_it_is_said_how_to_come_by_them_before_anything_is_done(wheels: Path, tmp_path: Path) -> None:
    for folder, what in ((None, "needs a folder"), (tmp_path, "has no wheel of TensorRT's libs")):
        with pytest.raises(BuildError, match=what) as raised:
            build.check_machine(asked_for(folder))
        assert "pip download" in raised.value.hint


def test_the_lock_that_is_kept_has_hashes_only(containers: Path) -> None:
    lines = (containers / "tensorrt.lock").read_text().splitlines()
    assert all(line.startswith("#") or " --hash=sha256:" in line for line in lines)
