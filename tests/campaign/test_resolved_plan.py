# SPDX-License-Identifier: Apache-2.0
"""What a plan means is guarded: whatever is changed in it after it was written is corrupt, never another judgement."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from pybench.campaign.directory import CampaignDirectory
from pybench.campaign.layout import PUBLICATION
from pybench.campaign.resolved_plan import guarded, is_stored, read_planned, store_planned
from pybench.campaign.storage import write_json
from pybench.case import Case
from pybench.catalogue.catalogue import BUILT_IN
from pybench.cli import main
from pybench.errors import EXIT_CORRUPT, EXIT_OK, CorruptError
from pybench.publication.pack.redaction import Redactor
from tests.support.campaigns import CampaignBuilder

CASES = [Case(workload="infer", model="mlp", runtime="onnxruntime", precision=name) for name in ("fp32", "int8")]
DECLARED = {"baseline": {"precision": "fp32"}, "accept": {"speedup_min": 1.125}}


@pytest.fixture
def campaign(tmp_path: Path) -> CampaignDirectory:
    """A campaign whose plan was stored as a runner does it."""
    built = CampaignBuilder(tmp_path / "c", CASES, repetitions=2, declared=DECLARED, protocols=["paired-blocks"])
    for block in (1, 2):
        for case, latency_ms in zip(CASES, (10.0, 5.0), strict=True):
            built.run(case, block, {"latency_mean_ms": latency_ms})
    store_planned(built.campaign, json.loads(built.campaign.plan_resolved.read_text()))
    return built.campaign


@pytest.mark.parametrize(
    ("before", "after"),
    [("1.125", "1.625"), ('"baseline"', '"basflin$"'), ('"protocol"', '"prot$col"'), ('"seed": 2', '"seed": 3')],
)
def test_what_decides_a_verdict_cannot_change_without_a_word(
    campaign: CampaignDirectory, capsys: pytest.CaptureFixture[str], before: str, after: str
) -> None:
    assert main(["check", str(campaign.path)]) == EXIT_OK
    text = campaign.plan_resolved.read_text()
    assert before in text
    campaign.plan_resolved.write_text(text.replace(before, after, 1))
    capsys.readouterr()
    for command in ("check", "analyse", "report", "status", "run"):
        assert main([command, str(campaign.path)]) == EXIT_CORRUPT
        said = capsys.readouterr().err
        assert said.startswith(f"error: {campaign.plan_resolved} has changed since it was written\n  hint: restore it")


def test_a_plan_that_was_edited_after_its_runs_is_not_printed_beside_them(
    campaign: CampaignDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    original = campaign.plan.read_text()
    campaign.plan.write_text(original + "# and a threshold that nobody ran with\n")
    for command in ("check", "analyse", "report", "run"):
        assert main([command, str(campaign.path)]) == EXIT_CORRUPT
        said = capsys.readouterr().err
        assert "where a run was ended while it stored a changed plan, run that plan again" in said
        assert said.startswith(f"error: {campaign.plan} is not the plan that was run: it has changed since\n  hint: ")
    (campaign.path / PUBLICATION).write_text("{}")
    assert main(["analyse", str(campaign.path)]) == EXIT_OK, "of a publication SHA256SUMS tells it"
    (campaign.path / PUBLICATION).unlink()
    campaign.plan.unlink()
    assert main(["check", str(campaign.path)]) == EXIT_OK, "a plan that was removed says nothing wrong"


def test_a_row_of_a_package_whose_name_leads_out_of_the_campaign_is_corrupt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name is part of the names of figures, and the campaign may be someone else's."""
    row = replace(BUILT_IN.workloads["noop"], name="../../echo")
    case = Case(workload=row.name, catalogue=BUILT_IN.with_rows([row]))
    built = CampaignBuilder(tmp_path / "c", [case], repetitions=1)
    built.run(case, 1, {"latency_mean_ms": 1.0})
    store_planned(built.campaign, json.loads(built.campaign.plan_resolved.read_text()))
    for command in ("report", "status"):
        assert main([command, str(built.campaign.path)]) == EXIT_CORRUPT
        assert "the name '../../echo' is not of a to z, 0 to 9, _, . and -" in capsys.readouterr().err


def test_of_random_bits_none_that_means_something_is_missed(campaign: CampaignDirectory) -> None:
    whole, known, rng = campaign.plan_resolved.read_bytes(), read_planned(campaign), random.Random(1)
    for _ in range(500):
        damaged = bytearray(whole)
        damaged[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        campaign.plan_resolved.write_bytes(damaged)
        try:
            found = read_planned(campaign)
        except CorruptError:
            continue
        # Only a blank became another, or the key of the digest.
        assert all(found.content[name] == value for name, value in known.content.items() if name != "sha256")


def test_a_plan_of_an_older_pybench_has_no_digest_and_is_read(campaign: CampaignDirectory) -> None:
    content = json.loads(campaign.plan_resolved.read_text())
    del content["sha256"]
    write_json(campaign.plan_resolved, content)
    assert read_planned(campaign).name == "example"
    assert is_stored(campaign, content)
    assert not is_stored(campaign, {**content, "seed": 7})
    store_planned(campaign, content)
    assert is_stored(campaign, content)


def test_check_says_that_a_plan_has_no_digest(campaign: CampaignDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    told = "plan.resolved.json has no digest"
    assert main(["check", str(campaign.path)]) == EXIT_OK
    assert told not in capsys.readouterr().out
    content = json.loads(campaign.plan_resolved.read_text())
    write_json(campaign.plan_resolved, {name: value for name, value in content.items() if name != "sha256"})
    assert main(["check", str(campaign.path)]) == EXIT_OK
    assert told in capsys.readouterr().out
    assert main(["check", str(campaign.path), "--json"]) == EXIT_OK
    assert json.loads(capsys.readouterr().out)["plan_has_digest"] is False


def test_what_is_published_without_names_has_a_digest_of_its_own(campaign: CampaignDirectory) -> None:
    content = {**json.loads(campaign.plan_resolved.read_text()), "description": "as ada wrote"}
    redactor = Redactor(words={"ada": "redacted-1"})
    published = json.loads(redactor.apply("plan.resolved.json", json.dumps(guarded(content)).encode()))
    assert published["description"] == "as redacted-1 wrote"
    assert published == guarded(published)
