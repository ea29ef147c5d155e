# SPDX-License-Identifier: Apache-2.0
"""The scripts that build and try wheels: what they refuse, and which of their commands count as failed.

Programs that take minutes are replaced by short ones of the same name. `make wheels` runs the real ones.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

CI = Path(__file__).parents[1] / ".ci"
pytestmark = pytest.mark.process


def called(tmp_path: Path, *command: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A script with a PATH that has only these programs, and what `replaced` wrote."""
    path = tmp_path / "path"
    path.mkdir(exist_ok=True)
    for name in ("bash", "cut", "date", "dirname", "du", "grep", "ls", "mktemp", "realpath", "rm", "sh", "uname"):
        (path / name).symlink_to(str(shutil.which(name)))
    environment = {**os.environ, "PATH": str(path), **variables}
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def replaced(tmp_path: Path, name: str, body: str) -> None:
    """A program on the PATH of `called`."""
    program = tmp_path / "path" / name
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)


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


def test_the_trial_installs_the_wheel_for_its_own_python(tmp_path: Path) -> None:
    names = [f"pybench_campaign-0.1.0-{tag}-{tag}-manylinux_2_28_aarch64.whl" for tag in ("cp311", "cp312", "cp313")]
    tokenizer = "pybench_tokenizer-0.1.0-py3-none-manylinux_2_28_aarch64.whl"
    for name in (*names, tokenizer, names[0].replace("aarch64", "x86_64")):
        (tmp_path / name).touch()
    for name in ("qemu-aarch64-static", "mmdebstrap"):
        replaced(tmp_path, name, "exit 0")
    replaced(tmp_path, "uv", f'printf "%s\\n" "$@" >{tmp_path}/asked; exit 7')
    assert called(tmp_path, CI / "emulated", tmp_path, "python3").returncode == 7
    wheels = [Path(word).name for word in (tmp_path / "asked").read_text().split() if word.endswith(".whl")]
    assert wheels == [names[0], tokenizer]


@pytest.mark.parametrize(
    ("status", "said", "expected"),
    [
        (2, "error: torch is not installed", 0),
        (2, "error: no network", 1),
        (1, "ModuleNotFoundError: torch", 1),
        (0, "it ran in torch", 1),
    ],
)
def test_only_the_error_about_torch_passes(tmp_path: Path, status: int, said: str, expected: int) -> None:
    replaced(tmp_path, "uvx", f'case "$*" in *resnet50*) echo "{said}" >&2; exit {status} ;; esac')
    ended = called(tmp_path, CI / "installed", tmp_path, TMPDIR=str(tmp_path))
    assert ended.returncode == expected
    assert said in ended.stdout
    assert ("`quick resnet50` ended with status" in ended.stderr) is (expected == 1)
