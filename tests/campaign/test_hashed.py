# SPDX-License-Identifier: Apache-2.0
"""Readers hash what is new or changed. The index makes them fast and never decides."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from pybench.campaign import digests, hashed
from pybench.campaign.hashed import INDEX
from pybench.campaign.layout import SUMMARY
from pybench.case import Case
from pybench.dataset import load
from pybench.errors import CorruptError
from tests.support.campaigns import CampaignBuilder

INFER = Case(workload="infer", model="digits-cnn", runtime="onnxruntime")


@pytest.fixture
def hashes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The run folders that were hashed, in order, by the names of their blocks."""
    found: list[str] = []
    compare = digests.is_as_listed

    def counted(folder: Path, content: digests.FolderContent) -> bool:
        found.append(folder.parent.name)
        return compare(folder, content)

    monkeypatch.setattr(digests, "is_as_listed", counted)
    return found


@pytest.fixture
def builder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CampaignBuilder:
    """Two finished runs whose files count as old at once."""
    monkeypatch.setattr(hashed, "RECENT_S", -1.0)
    found = CampaignBuilder(tmp_path / "c", [INFER], repetitions=3)
    for block in (1, 2):
        found.run(INFER, block, {"latency_mean_ms": 1.0})
    return found


def test_a_run_is_hashed_once_and_a_new_one_then(builder: CampaignBuilder, hashes: list[str]) -> None:
    load(builder.path)
    load(builder.path)
    assert hashes == ["block-001", "block-002"]
    builder.run(INFER, 3, {"latency_mean_ms": 1.0})
    load(builder.path)
    assert hashes[2:] == ["block-003"]


@pytest.mark.parametrize("restores_time", [True, False])
def test_a_changed_run_is_hashed_again_and_found(
    builder: CampaignBuilder, hashes: list[str], restores_time: bool
) -> None:
    load(builder.path)
    summary = builder.campaign.attempt(INFER.id, 2, 1).file(SUMMARY)
    before = summary.stat()
    summary.write_bytes(summary.read_bytes().replace(b"1.0", b"2.0", 1))
    if restores_time:
        os.utime(summary, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(
        CorruptError, match=r"block-002/attempt-01 is not as it was when the run finished: summary\.json"
    ):
        load(builder.path)
    assert hashes[2:] == ["block-002"]


def test_an_index_of_an_earlier_version_is_valid(builder: CampaignBuilder) -> None:
    """It made these lines in Python."""
    load(builder.path)
    folder = builder.campaign.attempt(INFER.id, 2, 1).path
    statuses = {file.name: file.stat() for file in sorted(folder.glob("[!.]*"))}
    lines = [
        f"{name}\0{(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)}\n"
        for name, status in statuses.items()
    ]
    stored = json.loads((builder.path / INDEX).read_bytes())["runs"]
    assert stored[str(folder.relative_to(builder.path))] == hashlib.sha256("".join(lines).encode()).hexdigest()


def test_check_hashes_every_run_whatever_the_index_says(builder: CampaignBuilder, hashes: list[str]) -> None:
    load(builder.path)
    load(builder.path, hash_all=True)
    assert len(hashes) == 4


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b'{"schema_version": 1, "runs": 3}', b"[" * 100_000])
def test_a_corrupt_index_is_ignored_and_made_again(builder: CampaignBuilder, hashes: list[str], content: bytes) -> None:
    load(builder.path)
    whole = (builder.path / INDEX).read_bytes()
    (builder.path / INDEX).write_bytes(content)
    load(builder.path)
    assert len(hashes) == 4
    assert (builder.path / INDEX).read_bytes() == whole


def test_an_index_of_another_campaign_says_nothing_of_this_one(
    builder: CampaignBuilder, hashes: list[str], tmp_path: Path
) -> None:
    load(builder.path)
    other = CampaignBuilder(tmp_path / "other", [INFER], repetitions=1)
    other.run(INFER, 1, {"latency_mean_ms": 1.0})
    (other.path / INDEX).write_bytes((builder.path / INDEX).read_bytes())
    load(other.path)
    assert len(hashes) == 3


def test_a_run_that_has_just_changed_is_hashed_again(
    builder: CampaignBuilder, hashes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may change once more within the step of the file system's clock."""
    monkeypatch.setattr(hashed, "RECENT_S", 3600.0)
    load(builder.path)
    load(builder.path)
    assert len(hashes) == 4


def test_a_campaign_that_cannot_be_written_is_read(
    builder: CampaignBuilder, hashes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "replace", refuse)
    assert load(builder.path).runs.height == 2
    assert not (builder.path / INDEX).exists()
    assert list(builder.path.glob(".*")) == []
