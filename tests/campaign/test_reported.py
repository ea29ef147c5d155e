# SPDX-License-Identifier: Apache-2.0
"""A report stays while nothing changed. What it was made from is compared with the files each time."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pybench.campaign import hashed, reported
from pybench.campaign.layout import PLAN, RUNS, STDERR, SUMMARY
from pybench.campaign.reported import RECORD
from pybench.campaign.storage import write_json
from pybench.case import Case
from pybench.cli.report import report
from pybench.errors import CorruptError
from pybench.publication.pack.contents import select
from tests.support.campaigns import CampaignBuilder, finish_again
from tests.support.folders import contents_of

pytestmark = pytest.mark.slow  # each test writes a report twice

INFER = Case(workload="infer", model="digits-cnn", runtime="onnxruntime")


@pytest.fixture
def builder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CampaignBuilder:
    """A campaign with two of three runs and a report, whose files count as old at once."""
    monkeypatch.setattr(hashed, "RECENT_S", -1.0)
    monkeypatch.setattr(reported, "RECENT_S", -1.0)
    found = CampaignBuilder(tmp_path / "c", [INFER], repetitions=3)
    for block in (1, 2):
        found.run(INFER, block, {"latency_mean_ms": 1.0})
    report(found.path)
    return found


def _is_made_again(builder: CampaignBuilder) -> bool:
    """Whether `pybench report` writes the page: each writing gives it another inode or time."""
    page = builder.campaign.report / "index.html"
    before = page.stat() if page.exists() else None
    report(builder.path)
    after = page.stat()
    return before is None or (before.st_ino, before.st_mtime_ns) != (after.st_ino, after.st_mtime_ns)


def test_a_report_of_which_nothing_changed_is_left_as_it_is(
    builder: CampaignBuilder, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert not _is_made_again(builder)
    assert capsys.readouterr().out == f"{builder.campaign.report / 'index.html'}\n"


def _add_a_run(builder: CampaignBuilder) -> None:
    builder.run(INFER, 3, {"latency_mean_ms": 2.0})


def _remove_a_run(builder: CampaignBuilder) -> None:
    shutil.rmtree(builder.campaign.block(INFER.id, 2))


def _begin_a_run(builder: CampaignBuilder) -> None:
    builder.campaign.attempt(INFER.id, 3, 1).path.mkdir(parents=True)


def _replace_a_run(builder: CampaignBuilder) -> None:
    """By one of the same files and sizes, finished as pybench would, with the times of the old one."""
    run = builder.campaign.attempt(INFER.id, 2, 1)
    times = {path: path.stat() for path in run.path.iterdir()}
    summary = run.file(SUMMARY)
    summary.write_bytes(summary.read_bytes().replace(b'"value": 1.0', b'"value": 2.0'))
    finish_again(run.path)
    for path, old in times.items():
        assert path.stat().st_size == old.st_size
        os.utime(path, ns=(old.st_atime_ns, old.st_mtime_ns))


def _replace_a_file_by_its_copy(builder: CampaignBuilder) -> None:
    file = builder.campaign.attempt(INFER.id, 1, 1).file(STDERR)
    copy = shutil.copy2(file, file.with_name("copy"))
    os.replace(copy, file)


def _set_a_time_back(builder: CampaignBuilder) -> None:
    os.utime(builder.campaign.attempt(INFER.id, 1, 1).file(SUMMARY), (0, 0))


def _change_the_plan(builder: CampaignBuilder) -> None:
    text = "schema_version: 1\nname: another\n"
    (builder.path / PLAN).write_text(text)
    stored = json.loads(builder.campaign.plan_resolved.read_text())
    write_json(builder.campaign.plan_resolved, {**stored, "plan_sha256": hashlib.sha256(text.encode()).hexdigest()})


def _change_the_page(builder: CampaignBuilder) -> None:
    page = builder.campaign.report / "index.html"
    page.write_bytes(page.read_bytes() + b" ")


def _remove_a_table(builder: CampaignBuilder) -> None:
    next((builder.campaign.report / "tables").iterdir()).unlink()


def _remove_the_report(builder: CampaignBuilder) -> None:
    shutil.rmtree(builder.campaign.report)


def _remove_the_record(builder: CampaignBuilder) -> None:
    (builder.path / RECORD).unlink()


def _break_the_record(builder: CampaignBuilder) -> None:
    (builder.path / RECORD).write_bytes(b"[]")


def _move_the_runs_behind_a_link(builder: CampaignBuilder) -> None:
    runs = builder.path / RUNS
    runs.rename(builder.path.parent / "elsewhere")
    runs.symlink_to(builder.path.parent / "elsewhere")


@pytest.mark.parametrize(
    "change",
    [
        _add_a_run, _remove_a_run, _begin_a_run, _replace_a_run, _replace_a_file_by_its_copy, _set_a_time_back,
        _change_the_plan, _change_the_page, _remove_a_table, _remove_the_report, _remove_the_record, _break_the_record,
        _move_the_runs_behind_a_link,
    ],
)  # fmt: skip
def test_it_is_made_again_after_any_change_and_equals_one_made_without_a_record(
    builder: CampaignBuilder, change: Callable[[CampaignBuilder], None]
) -> None:
    change(builder)
    assert _is_made_again(builder)
    found = contents_of(builder.campaign.report)
    for hidden in builder.path.glob(".*"):
        hidden.unlink()
    shutil.rmtree(builder.campaign.report)
    report(builder.path)
    # A figure that nothing is in any more may stay.
    assert found.items() >= contents_of(builder.campaign.report).items()


def test_a_changed_byte_is_an_error_whatever_the_record_says(builder: CampaignBuilder) -> None:
    summary = builder.campaign.attempt(INFER.id, 2, 1).file(SUMMARY)
    before = summary.stat()
    summary.write_bytes(summary.read_bytes().replace(b'"value": 1.0', b'"value": 2.0'))
    os.utime(summary, ns=(before.st_atime_ns, before.st_mtime_ns))
    for _ in range(2):
        with pytest.raises(CorruptError, match="is not as it was when the run finished"):
            report(builder.path)


@pytest.mark.process
def test_another_pybench_makes_it_again(builder: CampaignBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    program = reported._program()
    monkeypatch.setattr(reported, "_program", lambda: f"{program}\nanother")
    assert _is_made_again(builder)


@pytest.mark.process
def test_files_that_are_as_new_as_the_clock_are_not_trusted(
    builder: CampaignBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock that was set back is behind the files' times, so that nothing tells old files from new ones."""
    monkeypatch.setattr(reported, "RECENT_S", 2.0)
    began_s = time.time()
    monkeypatch.setattr(time, "time", lambda: began_s - 3600.0)
    assert _is_made_again(builder)
    assert _is_made_again(builder)


@pytest.mark.process
def test_a_report_elsewhere_is_written_each_time(builder: CampaignBuilder, tmp_path: Path) -> None:
    first = (report(builder.path, tmp_path / "r"), (tmp_path / "r" / "index.html").stat())[1]
    report(builder.path, tmp_path / "r")
    assert (tmp_path / "r" / "index.html").stat().st_mtime_ns != first.st_mtime_ns


def test_the_record_is_not_published(builder: CampaignBuilder) -> None:
    assert (builder.path / RECORD).exists()
    assert RECORD not in str(select(builder.campaign, with_artefacts=False))
