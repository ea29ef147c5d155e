# SPDX-License-Identifier: Apache-2.0
"""`run` on file systems that are full or read-only: one error, and nothing is lost or taken for a result."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pybench.cli import main
from tests.cli.conftest import PLAN
from tests.support.small_disk import small_disk_of

pytestmark = pytest.mark.usefixtures("ready_workers")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 96 KiB, which fills up."""
    with small_disk_of(tmp_path / "disk", "96k") as folder:
        yield folder


def test_a_full_disk_is_one_error_and_running_again_with_room_continues(
    plan: Path, small_disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", str(plan), "--out", str(small_disk / "campaign"), "--repetitions", "10"]
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert "No space left on device" in said
    assert "free some disk space, then run the same command again; finished runs are kept" in said
    assert "Traceback" not in said
    subprocess.run(["mount", "-o", "remount,size=4m", small_disk], check=True)
    assert main(arguments) == 0
    assert "20 ok of 20 runs" in capsys.readouterr().out


def test_a_disk_too_full_for_what_a_worker_writes_is_no_result_of_the_case(
    plan: Path, small_disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The iterations do not fit, the few bytes of run.json would."""
    plan.write_text(PLAN.replace("[1, 2]", "[21000]"))
    arguments = ["run", str(plan), "--out", str(small_disk / "campaign")]
    assert main(arguments) == 2
    assert "iterations.csv: No space left on device" in capsys.readouterr().err
    subprocess.run(["mount", "-o", "remount,size=4m", small_disk], check=True)
    assert main(arguments) == 0
    assert "2 ok of 2 runs" in capsys.readouterr().out


def test_a_disk_that_fills_while_an_artefact_is_made_fails_no_case(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """torch writes the checkpoint, onnx the file: neither is a `build_failed` that would stay after there is room."""
    plan.write_text(
        "schema_version: 1\nname: trial\nrepetitions: 1\nmatrix:\n"
        "  - {workload: infer, model: digits-cnn, runtime: onnxruntime, precision: int8, iterations: 2}\n"
    )
    with small_disk_of(tmp_path / "disk", "64k") as disk:
        arguments = ["run", str(plan), "--out", str(disk / "campaign")]
        for size in ("120k", "200k", "300k"):
            assert main(arguments) == 2
            said = capsys.readouterr().err
            assert "No space left on device" in said
            assert "not made" not in said
            assert "build_failed" not in said
            subprocess.run(["mount", "-o", f"remount,size={size}", disk], check=True)
        subprocess.run(["mount", "-o", "remount,size=4m", disk], check=True)
        assert main(arguments) == 0
        assert "1 ok of 1 run" in capsys.readouterr().out


def test_a_changed_plan_of_a_read_only_campaign_is_one_error(
    plan: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with small_disk_of(tmp_path / "disk", "4m") as disk:
        arguments = ["run", str(plan), "--out", str(disk / "campaign")]
        assert main(arguments) == 0
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        assert main([*arguments, "--repetitions", "3"]) == 2
        assert "Read-only file system\n  hint: this file system is read-only" in capsys.readouterr().err


def test_temporary_files_that_do_not_fit_are_told_by_their_folder(
    plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan.write_text(
        "schema_version: 1\nname: trial\nrepetitions: 1\nmatrix:\n"
        "  - {workload: infer, model: digits-cnn, runtime: onnxruntime, precision: int8, iterations: 2}\n"
    )
    with small_disk_of(tmp_path / "disk", "40k") as disk:
        monkeypatch.setenv("TMPDIR", str(disk))
        assert main(["run", str(plan)]) == 2
        assert f"cannot write {disk}: No space left on device" in capsys.readouterr().err
