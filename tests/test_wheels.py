# SPDX-License-Identifier: Apache-2.0
"""`.ci/wheels` and `.ci/emulated` where they cannot do what is asked. That they can is theirs to show: minutes."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

CI = Path(__file__).parents[1] / ".ci"
pytestmark = pytest.mark.process


def called(tmp_path: Path, *command: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A script with a PATH that has only what it needs before it has to say no."""
    path = tmp_path / "path"
    path.mkdir()
    for name in ("bash", "dirname", "realpath", "uname"):
        (path / name).symlink_to(str(shutil.which(name)))
    environment = {**os.environ, "PATH": str(path), **variables}
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def test_another_machine_is_one_error_with_what_there_is(tmp_path: Path) -> None:
    ended = called(tmp_path, CI / "wheels", tmp_path / "dist", ARCH="mips")
    assert ended.returncode == 1
    assert ended.stderr == "error: there are no wheels for ARCH=mips\n  hint: ARCH is x86_64 or aarch64\n"
    assert not (tmp_path / "dist").exists()


def test_without_an_emulator_the_trial_skips_and_says_what_brings_one(tmp_path: Path) -> None:
    ended = called(tmp_path, CI / "emulated", tmp_path, "python3")
    assert ended.returncode == 0
    assert ended.stderr.startswith(
        "SKIPPED: the wheels for aarch64 were not tried: no qemu-aarch64 here (apt-get install"
    )
