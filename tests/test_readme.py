# SPDX-License-Identifier: Apache-2.0
"""README.md is true: its console blocks are typed in order in an empty folder, and print what it shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pybench.cli import GROUPS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
ELISION = "..."  # any number of lines


def steps(page: str = README) -> list[tuple[str, list[str]]]:
    """Every command of the console blocks with the lines that it shows."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"^```console\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def _pattern(lines: list[str]) -> str:
    return "".join("(?:.*\n)*?" if line == ELISION else re.escape(line) + "\n" for line in lines)


def test_an_elision_stands_for_any_lines_and_nothing_else_does() -> None:
    assert re.fullmatch(_pattern(["a", ELISION, "b"]), "a\nx\ny\nb\n")
    assert not re.fullmatch(_pattern(["a", "b"]), "a\nx\nb\n")


@pytest.fixture(scope="module")
def typed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the README's commands were typed."""
    folder = tmp_path_factory.mktemp("readme")
    _type(steps(), folder)
    return folder


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_the_readme_types_prints_what_it_shows(typed: Path) -> None:
    assert len(steps()) >= 7
    assert (typed / "results" / "mine").is_dir()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_the_pages_on_results_and_sensors_type_prints_what_they_show(typed: Path) -> None:
    results, sensor = (
        (ROOT / "docs" / "user" / f"{name}.md").read_text(encoding="utf-8") for name in ("results", "sensor")
    )
    shutil.copytree(typed / "results" / "mine", typed / "results" / "before")
    assert len(steps(results)) >= 4
    _type(steps(results), typed)
    _type(steps(sensor), ROOT)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_the_tutorial_types_prints_what_it_shows(typed: Path, tmp_path: Path) -> None:
    tutorial = (ROOT / "docs" / "user" / "tutorial.md").read_text(encoding="utf-8")
    shutil.copytree(typed / "results" / "mine", tmp_path / "results" / "mine")  # its runs are those of the same plan
    assert len(steps(tutorial)) >= 4
    _type(steps(tutorial), tmp_path)


def _type(typed: list[tuple[str, list[str]]], folder: Path) -> None:
    """Each command in a folder; it has to print what the page shows."""
    programs = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "PYTHONWARNINGS": "default"}
    environment.pop("PYTHONUNBUFFERED", None)  # it would hide a line on stderr that overtakes one on stdout
    for command, shown in typed:
        done = subprocess.run(
            ["bash", "-c", f"({command}) 2>&1"], cwd=folder, env=environment, capture_output=True, text=True
        )
        assert re.fullmatch(_pattern(shown), done.stdout), f"{command} printed\n{done.stdout}"


def test_the_plan_of_the_readme_is_the_one_that_init_writes() -> None:
    from ruamel.yaml import YAML

    shown = re.search(r"^```yaml\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    starter = (ROOT / "pybench/plan/starter.yaml").read_text(encoding="utf-8").replace("NAME", "mine")
    assert shown is not None
    assert YAML(typ="safe").load(shown[1]) == YAML(typ="safe").load(starter)


def test_the_readme_names_every_command() -> None:
    named = README.partition("## Commands")[2].partition("\n## ")[0]
    for name in (name for names in GROUPS.values() for name in names):
        assert re.search(rf"`{name}\b", named), name
