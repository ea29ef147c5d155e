# SPDX-License-Identifier: Apache-2.0
"""The orchestrator's wheel: built by the real tools, the same bytes from any folder, and a program that runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "containers"))
from steps import EPOCH_S

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "orchestrator-go"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(shutil.which("uv") is None, reason="NOT TESTED: building a wheel needs uv on PATH"),
]


def build(folder: Path, constraints: Path, out: Path) -> Path:
    """The wheel of the sources in `folder`."""
    subprocess.run(
        [
            "uv",
            "build",
            "--wheel",
            "--quiet",
            "--build-constraints",
            str(constraints),
            "--out-dir",
            str(out),
            str(folder),
        ],
        check=True,
        env=os.environ | {"SOURCE_DATE_EPOCH": str(EPOCH_S), "UV_PYTHON": sys.executable},
    )
    (wheel,) = out.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two wheels of the same sources, built in two folders with other names."""
    root = tmp_path_factory.mktemp("wheels")
    constraints = root / "constraints"
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]
    constraints.write_text("\n".join(settings["build-constraint-dependencies"]))
    made = []
    for name in ("one", "another place"):
        shutil.copytree(SOURCES, root / name / "src")
        made.append(build(root / name / "src", constraints, root / name / "out"))
    return made[0], made[1]


def test_two_builds_are_equal_byte_for_byte(wheels: tuple[Path, Path]) -> None:
    assert wheels[0].read_bytes() == wheels[1].read_bytes()


def test_the_wheel_fits_every_python_and_holds_the_program_as_a_script(wheels: tuple[Path, Path]) -> None:
    assert wheels[0].name.split("-")[2:4] == ["py3", "none"]
    names = zipfile.ZipFile(wheels[0]).namelist()
    assert any(name.endswith(".data/scripts/pybench-orchestrator") for name in names)
    assert not any(name.endswith(".go") for name in names)


def test_the_installed_program_is_found_and_runs(wheels: tuple[Path, Path], tmp_path: Path) -> None:
    subprocess.run(
        [
            "uv",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--python",
            sys.executable,
            "--target",
            str(tmp_path),
            str(wheels[0]),
        ],
        check=True,
    )
    code = (
        "import subprocess, pybench_orchestrator\n"
        "print(pybench_orchestrator.program_path())\n"
        "subprocess.run([pybench_orchestrator.program_path(), '--version'], check=True)\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "pybench-orchestrator 0.1.0 (tokenizer ABI " in said
