# SPDX-License-Identifier: Apache-2.0
"""Folders that a plan cannot fill: `run` and its dry run refuse them, and nothing is made or changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pybench.campaign.directory import CampaignDirectory
from pybench.cli import main
from tests.cli.conftest import PLAN

pytestmark = pytest.mark.usefixtures("ready_workers")


def test_a_dry_run_refuses_the_folder_that_a_run_would_refuse(plan: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(plan), "--repetitions", "1"]) == 0
    plan.write_text(PLAN.replace("trial", "other"))
    assert main(["run", str(plan), "--out", "results/trial", "--dry-run"]) == 2
    assert "results/trial is the campaign `trial`, and this plan is `other`" in capsys.readouterr().err


def test_the_seed_of_a_campaign_cannot_change_once_there_are_runs(
    plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(plan), "--repetitions", "1", "--artefacts-only"]) == 0
    assert main(["run", str(plan), "--repetitions", "1", "--set", "seed=7"]) == 0
    stored = Path("results/trial/plan.resolved.json").read_bytes()
    capsys.readouterr()
    for more in ([], ["--dry-run"]):
        assert main(["run", str(plan), "--repetitions", "2", "--set", "seed=8", *more]) == 2
        assert capsys.readouterr().err == (
            "error: results/trial has runs of the seed 7, and this plan has the seed 8\n"
            "  hint: put `seed: 7` back, or give another folder with --out\n"
        )
    assert Path("results/trial/plan.resolved.json").read_bytes() == stored
    assert main(["run", str(plan), "--repetitions", "2", "--set", "seed=7"]) == 0
    of_new_cases = ["--set", "matrix.0.iterations=[3]", "--set", "seed=8"]
    assert main(["run", str(plan), *of_new_cases]) == 2  # a later plan may have the former cases again


def test_a_file_in_the_place_of_the_folder_is_told_with_what_to_do(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    for out, told in {"file": "it is a file: choose a folder", "file/in": "choose another place"}.items():
        for option in ([], ["--dry-run"]):
            assert main(["run", str(plan), "--out", out, *option]) == 2
            assert told in capsys.readouterr().err


@pytest.mark.parametrize("command", [["run"], ["submit", "--site", "site.yaml", "--dry-run"]])
def test_a_campaign_that_may_not_be_written_is_told_with_what_to_do(
    plan: Path, tmp_path: Path, command: list[str]
) -> None:
    assert main(["run", str(plan), "--repetitions", "1"]) == 0
    (tmp_path / "site.yaml").write_text('kind: slurm\njob:\n  time: "10"\n')
    folder = tmp_path / "results/trial"
    run = next(CampaignDirectory(folder).runs()).path.parent
    shutil.rmtree(run)
    for path in (folder, run.parent):
        path.chmod(0o555)
    mere_user = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    words = [*mere_user, sys.executable, "-m", "pybench.cli", command[0], str(folder), *command[1:]]
    ended = subprocess.run(words, capture_output=True, check=False, text=True)
    for path in (folder, run.parent):
        path.chmod(0o755)
    assert ended.returncode == 2
    assert ended.stderr.endswith(
        "Permission denied\n"
        "  hint: ask the owner for permission to write, or give the plan file and another folder with --out\n"
    )


@pytest.mark.parametrize("options", [["--dry-run"], []])
def test_a_folder_whose_path_is_not_utf_8_is_refused_before_anything_is_made(
    plan: Path, tmp_path: Path, options: list[str]
) -> None:
    """ONNX Runtime opens no such path: every run would be `crashed`."""
    command = [sys.executable, "-m", "pybench.cli", "run", str(plan), "--out", os.fsdecode(b"r\xff"), *options]
    ended = subprocess.run(command, capture_output=True, check=False)
    assert ended.returncode == 2
    assert b"its path is not UTF-8\n  hint: choose another folder with --out" in ended.stderr
    assert not any(entry.name.startswith("r") for entry in tmp_path.iterdir())
