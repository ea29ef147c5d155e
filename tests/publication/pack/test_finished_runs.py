# SPDX-License-Identifier: Apache-2.0
"""Published runs have the digests of their published files, and say which of them publishing changed."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from pybench.campaign import digests
from pybench.campaign.directory import CampaignDirectory
from pybench.campaign.layout import COMPLETE
from pybench.campaign.storage import write_text
from pybench.errors import CorruptError
from pybench.publication import FetchChecks, RegistryAccess, fetch, parse, stage
from pybench.publication.pack.package import PublishOptions
from tests.publication.campaigns import ARTEFACT, FP32, HOST, build_small, render_nothing
from tests.publication.conftest import COVERAGE, Published
from tests.publication.tampering import rewritten_zip
from tests.support.campaigns import finish_again, unguard


def staged(campaign: Path, folder: Path) -> CampaignDirectory:
    folder.mkdir()
    stage(campaign, folder, PublishOptions(), COVERAGE, render_nothing)
    return CampaignDirectory(folder)


def test_rewritten_files_have_new_digests_and_are_named(tmp_path: Path) -> None:
    campaign = build_small(tmp_path / "c").campaign
    published = staged(campaign.path, tmp_path / "staged")
    assert [digests.check(run.path) for run in published.finished()] == [True] * 5
    before, after = (where.attempt(FP32.id, 1, 1) for where in (campaign, published))
    old, new = (digests.parse(run.file(COMPLETE).read_bytes(), run.path) for run in (before, after))
    assert new.rewritten == ("environment.json", "stderr.log")
    assert {name for name in old.files if old.files[name] != new.files[name]} == set(new.rewritten)
    assert new.left_out == 0


def test_no_digest_of_an_original_text_is_published(tmp_path: Path) -> None:
    """With it anybody could try names of hosts until one fits."""
    campaign = build_small(tmp_path / "c").campaign
    original = campaign.attempt(FP32.id, 1, 1).file("environment.json").read_bytes()
    assert HOST.encode() in original
    published = staged(campaign.path, tmp_path / "staged")
    digest = hashlib.sha256(original).hexdigest().encode()
    assert not [path for path in published.path.rglob("*") if path.is_file() and digest in path.read_bytes()]


def test_files_that_are_not_published_are_counted(tmp_path: Path) -> None:
    campaign = build_small(tmp_path / "c").campaign
    making = staged(campaign.path, tmp_path / "staged").artefact(ARTEFACT)
    listed = digests.parse((making / COMPLETE).read_bytes(), making)
    assert "weights.pt" not in listed.files
    assert listed.left_out == 1


def test_what_changed_before_publishing_stays_found(tmp_path: Path) -> None:
    """A file that needs no replacement keeps the digest that its run finished with."""
    campaign = build_small(tmp_path / "c").campaign
    write_text(campaign.attempt(FP32.id, 1, 1).file("iterations.csv"), "gap_ns,host_ns\n")
    published = staged(campaign.path, tmp_path / "staged")
    with pytest.raises(CorruptError, match=r"iterations\.csv has sha256"):
        digests.check(published.attempt(FP32.id, 1, 1).path)


def test_a_publication_that_is_published_again_keeps_what_was_said(tmp_path: Path) -> None:
    first = staged(build_small(tmp_path / "c").path, tmp_path / "first")
    second = staged(first.path, tmp_path / "second")
    for run in first.finished():
        name = run.path.relative_to(first.path)
        assert (second.path / name / COMPLETE).read_bytes() == run.file(COMPLETE).read_bytes()


def test_unguarded_runs_stay_so(tmp_path: Path) -> None:
    campaign = build_small(tmp_path / "c").campaign
    for run in list(campaign.finished()):
        unguard(run.path)
    published = staged(campaign.path, tmp_path / "staged")
    assert [digests.check(run.path) for run in published.finished()] == [False] * 5


def test_fetch_refuses_a_run_that_is_not_as_it_was_published(published: Published, tmp_path: Path) -> None:
    """The list of the whole publication was made again to fit; the run's own was not."""
    name = f"runs/{FP32.id}/block-001/attempt-01/summary.json"
    source = tmp_path / "forged"
    shutil.copytree(published.package.folder, source)
    summary = json.loads((source / name).read_text())
    summary["metrics"]["latency_mean_ms"]["value"] = 0.001
    content = json.dumps(summary).encode()
    sums = (source / "SHA256SUMS").read_text()
    old = next(line for line in sums.splitlines() if line.endswith(f"  {name}"))
    sums = sums.replace(old, f"{hashlib.sha256(content).hexdigest()}  {name}")
    forged = rewritten_zip(published.zip, tmp_path / "x.zip", {name: content, "SHA256SUMS": sums.encode()})
    with pytest.raises(CorruptError, match=rf"x\.zip: runs/{FP32.id}/block-001/attempt-01 is not as it was .* summary"):
        fetch(parse(str(forged)), tmp_path / "out", RegistryAccess(None, 1.0), FetchChecks())
    assert not (tmp_path / "out").exists()
    (source / name).write_bytes(content)
    finish_again((source / name).parent)
    assert digests.check((source / name).parent)
