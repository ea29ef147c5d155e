# SPDX-License-Identifier: Apache-2.0
"""How often an engine is asked to remove a container, and when it is believed: a script stands in for docker."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from pybench.launcher import Container, FileAccess
from pybench.launcher import container as launcher
from pybench.launcher.engines import Docker
from pybench.launcher.images import Image

PAUSES_S = (0.01, 0.02)


@pytest.fixture
def pauses_s(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that were made."""
    made: list[float] = []
    monkeypatch.setattr(launcher, "REMOVAL_PAUSES_S", PAUSES_S)
    monkeypatch.setattr(launcher, "time", SimpleNamespace(sleep=made.append))
    return made


def attempts(folder: Path, monkeypatch: pytest.MonkeyPatch, run_status: int, removing: str) -> int:
    """How often a container is removed whose `docker run` ends with that status. `removing`: what `docker rm` does."""
    script = folder / "docker"
    script.write_text(
        f"#!/bin/sh\nif [ $1 = run ]; then exit {run_status}; fi\necho rm >> {folder}/attempts\n{removing}\n"
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    container = Container(Docker(), Image("image", "archive", "sha256:" + "a" * 64), "image", "docker 28", None)
    with container.start([], FileAccess(), subprocess.DEVNULL, subprocess.DEVNULL, own_session=True) as launched:
        launched.process.wait(10)
    log = folder / "attempts"
    return len(log.read_text().split()) if log.exists() else 0


@pytest.mark.parametrize("said", ["Error: No such container: x", "Error response from daemon: No such container: x"])
def test_that_the_engine_knows_no_container_is_believed_the_second_time(
    said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pauses_s: list[float]
) -> None:
    """An engine whose program was stopped may still have been making it."""
    assert attempts(tmp_path, monkeypatch, 125, f"echo '{said}' >&2; exit 1") == 2
    assert pauses_s == [PAUSES_S[0]]


def test_a_container_that_was_removed_is_not_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pauses_s: list[float]
) -> None:
    assert attempts(tmp_path, monkeypatch, 125, "exit 0") == 1
    assert pauses_s == []


def test_a_removal_that_fails_is_tried_again_and_nobody_waits_after_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pauses_s: list[float]
) -> None:
    removing = "echo 'removal of container x is already in progress' >&2; exit 1"
    assert attempts(tmp_path, monkeypatch, 1, removing) == 3
    assert pauses_s == list(PAUSES_S)


def test_a_container_that_ended_well_has_removed_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pauses_s: list[float]
) -> None:
    assert attempts(tmp_path, monkeypatch, 0, "exit 1") == 0
