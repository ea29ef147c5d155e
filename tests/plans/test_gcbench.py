# SPDX-License-Identifier: Apache-2.0
"""The suites of GC-Bench have as many runs as the paper says, by what `expand --json` prints."""

from __future__ import annotations

import json

import pytest

from pybench.cli import main
from tests.plans.ready import FOLDER

MAIN = ("train", "infer", "h2d", "ablation", "sensitivity")


def runs_of(suite: str, capsys: pytest.CaptureFixture[str]) -> int:
    """The runs of a suite, added up case by case."""
    assert main(["expand", str(FOLDER / "gcbench" / f"{suite}.yaml"), "--json"]) == 0
    expanded = json.loads(capsys.readouterr().out)
    runs = sum(case["repetitions"] for case in expanded["cases"])
    assert runs == expanded["runs"]
    return runs


def test_the_five_suites_have_1018_runs_together(capsys: pytest.CaptureFixture[str]) -> None:
    assert sum(runs_of(suite, capsys) for suite in MAIN) == 1018


def test_the_suite_under_power_limits_has_144_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert runs_of("powercap", capsys) == 144


@pytest.mark.parametrize("suite", [*MAIN, "powercap"])
def test_a_comment_of_each_suite_tells_how_many_runs_it_has(suite: str, capsys: pytest.CaptureFixture[str]) -> None:
    comment = (FOLDER / "gcbench" / f"{suite}.yaml").read_text().partition("schema_version")[0]
    assert f"has {runs_of(suite, capsys)}" in comment
