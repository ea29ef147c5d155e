# SPDX-License-Identifier: Apache-2.0
"""A quick test that starts a process fails, whatever was selected, in its call and in its fixtures."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = """\
import os
import pytest

@pytest.fixture
def program():
    os.system("true")

def test_that_starts_one():
    os.system("true")

def test_whose_fixture_starts_one(program):
    pass

@pytest.mark.process
def test_that_says_so(program):
    os.system("true")

def test_that_starts_none():
    pass
"""
SETTINGS = "[pytest]\nmarkers =\n    process: starts a process\n    quick: starts none\n"


def outcomes(folder: Path, *arguments: str) -> tuple[dict[str, str], str]:
    """Test -> outcome of the tests above."""
    (folder / "tests" / "folder").mkdir(parents=True, exist_ok=True)
    (folder / "tests" / "folder" / "test_them.py").write_text(TESTS)
    (folder / "pytest.ini").write_text(SETTINGS)
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.quick", "-p", "no:cacheprovider", "-v", *arguments]
    found = subprocess.run(
        command, cwd=folder, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    return dict(re.findall(r"::(\w+) (PASSED|FAILED|ERROR)", found.stdout)), found.stdout


def test_a_quick_test_that_starts_a_process_fails_in_every_run(tmp_path: Path) -> None:
    found, said = outcomes(tmp_path)
    assert found == {
        "test_that_starts_one": "FAILED",
        "test_whose_fixture_starts_one": "ERROR",
        "test_that_says_so": "PASSED",
        "test_that_starts_none": "PASSED",
    }
    assert "starts true: mark it `process`" in said
    assert "its fixtures start true: mark it `process`" in said


def test_quick_leaves_out_what_says_that_it_starts_a_process(tmp_path: Path) -> None:
    found, _ = outcomes(tmp_path, "-m", "quick")
    assert "test_that_says_so" not in found
    assert found["test_that_starts_none"] == "PASSED"


def test_quick_does_not_import_folders_without_a_quick_test(tmp_path: Path) -> None:
    program = tmp_path / "tests" / "cli" / "test_a_program.py"
    program.parent.mkdir(parents=True)
    program.write_text("raise RuntimeError('imported')")
    assert "imported" not in outcomes(tmp_path, "-m", "quick")[1]
    assert "imported" in outcomes(tmp_path, "-m", "not quick")[1]
