# SPDX-License-Identifier: Apache-2.0
"""What is published of a campaign, and what is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pybench.campaign.directory import CampaignDirectory
from pybench.errors import CorruptError, UsageError
from pybench.publication.pack.contents import select
from tests.publication.campaigns import ARTEFACT, FP32, WEIGHTS, build_small


@pytest.fixture
def campaign(tmp_path: Path) -> CampaignDirectory:
    return build_small(tmp_path / "c").campaign


def test_records_are_published_and_claims_old_reports_and_hidden_files_are_not(campaign: CampaignDirectory) -> None:
    run = campaign.attempt(FP32.id, 1, 1)
    (campaign.path / "report").mkdir()
    (campaign.path / "report" / "index.html").write_text("old")
    run.file(".run.json.ab12.tmp").write_text("half")
    (campaign.cluster / "submission-01").mkdir(parents=True)
    (campaign.cluster / "submission-01" / "site.yaml").write_text("account: mine")
    (campaign.cluster / "latest").symlink_to("submission-01")
    files = select(campaign, with_artefacts=False).files
    assert f"runs/{FP32.id}/block-001/attempt-01/iterations.csv" in files
    assert f"artefacts/{ARTEFACT}/layers.json" in files
    assert {"plan.yaml", "plan.resolved.json"} <= set(files)
    assert not [name for name in files if any(word in name for word in ("report", "claim", "/.", "cluster"))]


def test_artefacts_are_named_with_size_and_digest_and_published_on_request(campaign: CampaignDirectory) -> None:
    (left_out,) = select(campaign, with_artefacts=False).artefacts_left_out
    assert (left_out.name, left_out.bytes) == (f"artefacts/{ARTEFACT}/weights.pt", len(WEIGHTS))
    everything = select(campaign, with_artefacts=True)
    assert left_out.name in everything.files
    assert not everything.artefacts_left_out


def test_what_pybench_did_not_write_is_left_out_and_named(campaign: CampaignDirectory) -> None:
    run = campaign.attempt(FP32.id, 1, 1)
    (campaign.path / "notes.txt").write_text("mine")
    run.file("core.4711").write_bytes(b"\0")
    run.file("odd name.json").write_text("{}")
    selection = select(campaign, with_artefacts=False)
    names = {name.rpartition("/")[2] for name in selection.foreign}
    assert names == {"notes.txt", "core.4711", "odd name.json"}
    assert not set(selection.foreign) & set(selection.files)


@pytest.mark.parametrize("folder", [ARTEFACT, f"{ARTEFACT}.failed-1"])
def test_a_file_beside_a_making_that_its_record_does_not_name_stays_home(
    campaign: CampaignDirectory, folder: str
) -> None:
    making = campaign.artefact(ARTEFACT).rename(campaign.artefacts / folder)
    (making / "half.engine").write_bytes(b"half")
    selection = select(campaign, with_artefacts=True)
    assert f"artefacts/{folder}/half.engine" in selection.foreign
    assert f"artefacts/{folder}/half.engine" not in selection.files
    assert f"artefacts/{folder}/run.json" in selection.files


def test_earlier_attempts_are_part_of_the_record(tmp_path: Path) -> None:
    builder = build_small(tmp_path / "c")
    builder.run(FP32, 1, {"latency_mean_ms": 1.0}, attempt=2)
    attempts = {name.split("/")[3] for name in select(builder.campaign, with_artefacts=False).files if FP32.id in name}
    assert attempts == {"attempt-01", "attempt-02"}


def test_a_link_is_refused(campaign: CampaignDirectory, tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text("{}")
    campaign.attempt(FP32.id, 1, 1).file("extra.json").symlink_to(tmp_path / "secret.json")
    with pytest.raises(UsageError, match=r"extra\.json is a link"):
        select(campaign, with_artefacts=False)


def test_an_artefact_in_a_cache_is_found_through_its_link(campaign: CampaignDirectory, tmp_path: Path) -> None:
    campaign.artefact(ARTEFACT).rename(tmp_path / "cached")
    campaign.artefact(ARTEFACT).symlink_to(tmp_path / "cached")
    assert f"artefacts/{ARTEFACT}/run.json" in select(campaign, with_artefacts=False).files


def test_an_artefact_that_was_changed_since_is_refused(campaign: CampaignDirectory) -> None:
    (campaign.artefact(ARTEFACT) / "weights.pt").write_bytes(b"other")
    with pytest.raises(CorruptError, match="has changed since it was made"):
        select(campaign, with_artefacts=False)


def test_a_campaign_without_artefacts_has_none(campaign: CampaignDirectory) -> None:
    for path in sorted(campaign.artefacts.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    assert json.loads(campaign.plan_resolved.read_text())["name"] == "small"
    assert not select(campaign, with_artefacts=True).artefacts_left_out
