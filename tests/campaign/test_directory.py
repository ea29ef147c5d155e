# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pybench.campaign import layout, storage
from pybench.campaign.directory import CampaignDirectory, KnownCase, RunDirectory, open_campaign, read_json
from pybench.campaign.resolved_plan import read_resolved_plan
from pybench.case import Case, case_to_json
from pybench.catalogue.validities import VALIDITIES
from pybench.errors import CorruptError, UsageError

CASE = Case(workload="noop")
VALID = {name: {"value": None, "reasons": []} for name in VALIDITIES}
RUN = {"case_id": CASE.id, "block": 1, "attempt": 1, "outcome": "ok", "valid": VALID}


@pytest.fixture
def attempt(tmp_path: Path) -> RunDirectory:
    found = CampaignDirectory(tmp_path).attempt(CASE.id, 1, 1)
    found.path.mkdir(parents=True)
    storage.write_json(found.file(layout.CASE), {"schema_version": 1, "case": case_to_json(CASE)})
    return found


def test_a_run_counts_only_once_it_is_complete(tmp_path: Path, attempt: RunDirectory) -> None:
    campaign = CampaignDirectory(tmp_path)
    assert not attempt.is_complete
    assert list(campaign.runs()) == []
    attempt.complete(RUN)
    assert list(campaign.runs()) == [attempt]
    assert attempt.read_case() == CASE


def test_the_latest_complete_attempt_counts(tmp_path: Path, attempt: RunDirectory) -> None:
    campaign = CampaignDirectory(tmp_path)
    attempt.complete(RUN)
    second = campaign.attempt(CASE.id, 1, 2)
    second.path.mkdir()
    assert campaign.latest(CASE.id, 1) == attempt
    second.complete({**RUN, "attempt": 2})
    assert campaign.latest(CASE.id, 1) == second


def test_a_missing_number_is_null_and_nan_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Out of range float"):
        storage.write_json(tmp_path / "summary.json", {"value": float("nan")})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema_version": 99}', '{"schema_version": 1}', "\xff"])
def test_an_unreadable_file_of_a_complete_run_is_corrupt_and_named(attempt: RunDirectory, text: str) -> None:
    attempt.complete(RUN)
    attempt.file(layout.RUN).write_bytes(text.encode("latin-1"))
    with pytest.raises(CorruptError, match=r"run\.json"):
        attempt.read_run()


def test_a_run_of_any_known_form_has_the_known_case(attempt: RunDirectory) -> None:
    today = case_to_json(CASE)
    older = {name: value for name, value in today.items() if name != "environment"}  # before there was this factor
    for form in (older, today):
        storage.write_json(attempt.file(layout.CASE), {"schema_version": 1, "case": form})
        assert attempt.read_case({CASE.id: KnownCase(CASE, (older, today))}) is CASE
        assert attempt.read_case({}) == CASE


def test_a_case_in_the_wrong_folder_is_corrupt(tmp_path: Path, attempt: RunDirectory) -> None:
    other = RunDirectory(attempt.path, "0" * 64, 1, 1)
    with pytest.raises(CorruptError, match="its folder says 000000000000"):
        other.read_case()


def test_a_full_disk_is_one_error_with_a_hint_and_leaves_nothing(tmp_path: Path) -> None:
    """A real file system of 64 KiB."""
    small = tmp_path / "small"
    small.mkdir()
    if (
        os.getuid() != 0
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", small], check=False).returncode
    ):
        pytest.skip("SKIPPED: needs root to mount a small file system")
    try:
        with pytest.raises(UsageError, match="No space left on device") as caught:
            storage.write_bytes(small / "big", b"x" * 200_000)
        assert "free some disk space" in str(caught.value)
        assert list(small.iterdir()) == []
    finally:
        subprocess.run(["umount", small], check=True)


def test_a_read_only_folder_is_one_error_with_a_hint(tmp_path: Path) -> None:
    fixed = tmp_path / "fixed"
    fixed.mkdir()
    if os.getuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", fixed], check=False).returncode:
        pytest.skip("SKIPPED: needs root to mount a read-only file system")
    try:
        with pytest.raises(UsageError, match="Read-only file system"):
            storage.write_text(fixed / "plan.yaml", "name: x")
    finally:
        subprocess.run(["umount", fixed], check=True)


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    """Rewriting keeps the old content until the new one is whole."""
    path = tmp_path / "run.json"
    storage.write_json(path, {"n": 1})
    descriptor = os.open(path, os.O_RDONLY)
    storage.write_json(path, {"n": 2})
    assert json.loads(os.read(descriptor, 100)) == {"n": 1}
    assert json.loads(path.read_text()) == {"n": 2}
    os.close(descriptor)


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b"{}", b"[" * 100_000])
@pytest.mark.parametrize(("name", "hint"), [(layout.RUN, "remove its"), (layout.PLAN_RESOLVED, "another --out")])
def test_a_damaged_file_is_one_error_with_a_hint_that_fits_it(
    tmp_path: Path, content: bytes, name: str, hint: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    read = RunDirectory(tmp_path, "c", 1, 1).read_run if name == layout.RUN else None
    with pytest.raises(CorruptError, match=hint):
        read() if read else read_resolved_plan(CampaignDirectory(tmp_path))


@pytest.mark.parametrize("name", ["nowhere", "."])
def test_what_is_no_campaign_is_named_with_a_hint(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="give the folder that `pybench run` printed"):
        open_campaign(tmp_path / name)


def test_writers_of_the_same_process_number_do_not_meet_in_one_temporary_file(tmp_path: Path) -> None:
    """Two containers on one file system are likely to: threads, which share their number, stand in for them."""
    with ThreadPoolExecutor(4) as writers:
        list(writers.map(lambda _: storage.write_text(tmp_path / "plan.yaml", "x" * 1000), range(400)))
    assert [entry.name for entry in tmp_path.iterdir()] == ["plan.yaml"]


def test_a_file_name_that_is_not_utf_8_is_stored_and_read_back(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    storage.write_json(tmp_path / "content.json", {"path": name})
    assert read_json(tmp_path / "content.json") == {"path": name}


def test_the_hundredth_attempt_is_later_than_the_ninety_ninth(tmp_path: Path) -> None:
    campaign = CampaignDirectory(tmp_path)
    for number in (2, 100, 99):
        attempt = campaign.attempt("c", 1, number)
        attempt.path.mkdir(parents=True)
        attempt.file(layout.COMPLETE).touch()
    latest = campaign.latest("c", 1)
    assert latest is not None
    assert latest.attempt == 100
