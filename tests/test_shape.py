# SPDX-License-Identifier: Apache-2.0
"""The shape of the project itself: the tree that the README shows, what a worker imports, headers of files."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ("*.py", "*.rs", "*.go", "*.cpp", "*.hpp", "*.h", "Makefile", ".ci/*", "*.yaml", "*.toml")
HEAVY = {
    "polars",
    "scipy",
    "matplotlib",
    "typer",
    "rich",
    "statsmodels",
    "torch",
    "onnx",
    "onnxruntime",
    "sklearn",
    "jinja2",
}


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *patterns], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return [ROOT / name for name in listed.split("\0") if name]


def test_the_tree_in_the_readme_is_the_tree() -> None:
    readme = (ROOT / "README.md").read_text()
    shown = set(re.findall(r"^\| `([^`]+)` \|", readme.partition("## The tree")[2].partition("\n## ")[0], re.MULTILINE))
    there = {path.relative_to(ROOT).parts[0] + ("/" if path.parent != ROOT else "") for path in tracked()}
    assert shown == there - {".gitignore", ".clang-format", ".ci/", "uv.lock"} | {".ci/run"}


def test_a_package_that_lists_its_modules_lists_all_of_them() -> None:
    """A docstring that names one or two of them is no list."""
    missing = {}
    for path in tracked("pybench/**/__init__.py"):
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        modules = {each.stem for each in path.parent.glob("[!_]*.py")} | {
            each.parent.name for each in path.parent.glob("*/__init__.py")
        }
        named = {name for name in modules if re.search(rf"`{name}`|^    {name} ", text, re.MULTILINE)}
        if len(named) > 2 and modules - named:
            missing[str(path.parent.relative_to(ROOT))] = sorted(modules - named)
    assert missing == {}


def test_every_source_file_names_its_licence_first() -> None:
    bare = [path for path in tracked(*SOURCES) if "SPDX-License-Identifier: Apache-2.0" not in _head(path)]
    assert [str(path.relative_to(ROOT)) for path in bare if path.stat().st_size and not _is_exempt(path)] == []


def _head(path: Path) -> str:
    return "\n".join(path.read_text(encoding="utf-8").splitlines()[:4])


def _is_exempt(path: Path) -> bool:
    return path.suffix == ".yaml" or "data" in path.parts  # plans are the user's to copy


@pytest.mark.parametrize(
    "module",
    [
        "pybench",
        "pybench.worker.__main__",
        "pybench.worker.job",
        "pybench.runner",
        "pybench.machine",
        "pybench.campaign.directory",
    ],
)
def test_what_every_run_imports_is_light(module: str) -> None:
    assert _imported_by(f"import {module}") & HEAVY == set()


def test_the_command_line_starts_without_the_reading_half() -> None:
    assert _imported_by("import pybench.cli") & (HEAVY - {"typer", "rich"}) == set()


def _imported_by(statement: str) -> set[str]:
    script = f"{statement}\nimport sys, json; print(json.dumps([name for name in sys.modules]))"
    printed = subprocess.run([sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True).stdout
    return {name.partition(".")[0] for name in json.loads(printed)}
