# SPDX-License-Identifier: Apache-2.0
"""Personal data: gone everywhere alike, nothing else touched, and what identifies a case never changed."""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path

import pytest

from pybench.campaign.directory import CampaignDirectory
from pybench.campaign.storage import write_json
from pybench.case import Case
from pybench.catalogue.cautions import Caution, CautionCode
from pybench.errors import UsageError
from pybench.publication.pack.contents import select
from pybench.publication.pack.redaction import (
    RedactionRules,
    Redactor,
    is_text,
    leftovers,
    plan_redaction,
    refuse_words_left,
)
from tests.publication.campaigns import ARTEFACT, FP32, HOST, SHORT_HOST, USER, WEIGHTS, build_small, environment
from tests.publication.conftest import Published
from tests.support.campaigns import CampaignBuilder

MADE = hashlib.sha256(WEIGHTS).hexdigest()


def _planned(campaign: CampaignDirectory, rules: RedactionRules | None = None) -> Redactor:
    return plan_redaction(campaign.path, select(campaign, with_artefacts=False).files, rules or RedactionRules())


def _text(campaign: CampaignDirectory, redactor: Redactor, name: str) -> str:
    return redactor.apply(name, (campaign.path / name).read_bytes()).decode()


def test_neither_host_nor_user_is_left_in_any_byte(published: Published) -> None:
    for name in published.package.digests:
        content = (published.package.folder / name).read_bytes()
        assert HOST.encode() not in content, name
        if not name.startswith("report/") and b"/scratch/" not in content:
            assert USER.encode() not in content, name
    said = {(one["kind"], one["replacement"]) for one in published.package.provenance.redactions}
    assert said == {("host name", "host-1"), ("host name", "host-2"), ("user name", "user-1")}


def test_two_hosts_stay_two_and_one_stays_one_everywhere(tmp_path: Path) -> None:
    campaign = build_small(tmp_path / "c").campaign
    redactor = _planned(campaign)
    run = f"runs/{FP32.id}/block-00{{}}/attempt-01/"
    hosts = [json.loads(_text(campaign, redactor, run.format(block) + "environment.json"))["host"] for block in (1, 2)]
    assert len(set(hosts)) == 2
    assert f"on {hosts[0]}\n" in _text(campaign, redactor, run.format(1) + "stderr.log")
    # A name as short as "vm" is only replaced where a host's name stands.
    assert f"on {SHORT_HOST}\n" in _text(campaign, redactor, run.format(2) + "stderr.log")


def test_a_node_that_only_a_claim_names_is_replaced_in_messages(tmp_path: Path) -> None:
    builder = build_small(tmp_path / "c")
    lost = builder.run(FP32, 1, outcome="killed", reason="NODE_FAIL", detail="node lost42 went down", attempt=2)
    claim = {"schema_version": 1, "host": "lost42", "job": {"scheduler": "slurm", "node": "lost42"}}
    write_json(lost.claim, claim)
    text = _text(builder.campaign, _planned(builder.campaign), f"runs/{FP32.id}/block-001/attempt-02/run.json")
    assert "lost42" not in text
    assert "node host-3 went down" in text


def test_home_folders_lose_their_owner_wherever_they_are_mounted(tmp_path: Path) -> None:
    campaign = build_small(tmp_path / "c").campaign
    redactor = _planned(campaign)
    log = _text(campaign, redactor, f"runs/{FP32.id}/block-001/attempt-01/stderr.log")
    assert "loaded /home/user-1/nets/net.onnx" in log
    assert "written to /scratch/user-1/tmp" in log
    assert _text(campaign, redactor, "plan.yaml").startswith("# by user-1, see /home/user-1/notes.txt\n")


def test_what_is_to_be_kept_is_kept_to_the_byte(tmp_path: Path) -> None:
    campaign = build_small(tmp_path / "c").campaign
    redactor = _planned(campaign, RedactionRules(keep_host_names=True, keep_paths=True))
    for name in select(campaign, with_artefacts=False).files:
        assert redactor.apply(name, (campaign.path / name).read_bytes()) == (campaign.path / name).read_bytes()


def test_numbers_keep_their_bits_and_unusual_letters_stay(tmp_path: Path) -> None:
    campaign = build_small(tmp_path / "c").campaign
    run = campaign.attempt(FP32.id, 1, 1)
    stored = {**environment(HOST), "load": [0.1 + 0.2, 1e-300, 2**63], "cpu": "Prozessor für Größen"}
    write_json(run.file("environment.json"), stored)
    redacted = json.loads(_text(campaign, _planned(campaign), f"runs/{FP32.id}/block-001/attempt-01/environment.json"))
    assert redacted == {**stored, "host": "host-1"}


def test_files_of_the_author_keep_their_names_only(tmp_path: Path) -> None:
    campaign = build_small(tmp_path / "c").campaign
    plan = json.loads(campaign.plan_resolved.read_text())
    plan["files"] = {"nets/a.onnx": {"path": "/data/secret-project/nets/a.onnx", "sha256": "0" * 64, "bytes": 1}}
    write_json(campaign.plan_resolved, plan)
    assert (
        json.loads(_text(campaign, _planned(campaign), "plan.resolved.json"))["files"]["nets/a.onnx"]["path"]
        == "a.onnx"
    )


def test_a_path_is_replaced_where_it_ends_and_not_where_it_goes_on(tmp_path: Path) -> None:
    campaign = build_small(tmp_path / "c").campaign
    plan = json.loads(campaign.plan_resolved.read_text())
    plan["files"] = {"a.onnx": {"path": "/data/x/a.onnx", "sha256": "0" * 64, "bytes": 1}}
    write_json(campaign.plan_resolved, plan)
    log = campaign.attempt(FP32.id, 1, 1).file("stderr.log")
    log.write_text("read /data/x/a.onnx, and -I/data/x/a.onnx. Not /data/x/a.onnx.data; /mnt/data/x/a.onnx\n")
    text = _text(campaign, _planned(campaign), log.relative_to(campaign.path).as_posix())
    assert text == "read a.onnx, and -Ia.onnx. Not /data/x/a.onnx.data; a.onnx\n"


def test_a_home_folder_at_the_end_of_a_sentence_loses_its_owner(tmp_path: Path) -> None:
    campaign = build_small(tmp_path / "c").campaign
    log = campaign.attempt(FP32.id, 1, 1).file("stderr.log")
    log.write_text("nothing in /home/babbage. See /a/b/c/d/e/home/babbage/x, https://h.org/a/home/page.html\n")
    text = _text(campaign, _planned(campaign), log.relative_to(campaign.path).as_posix())
    assert text == "nothing in /home/user-2. See /home/user-2/x, https://h.org/a/home/page.html\n"


def test_a_home_folder_is_found_behind_a_line_break_of_a_message(tmp_path: Path) -> None:
    builder = build_small(tmp_path / "c")
    builder.run(FP32, 1, outcome="crashed", detail="no file\n/home/babbage/x", attempt=2)
    text = _text(builder.campaign, _planned(builder.campaign), f"runs/{FP32.id}/block-001/attempt-02/run.json")
    assert "babbage" not in text


@pytest.mark.timing
def test_a_text_of_ten_times_as_many_slashes_takes_about_ten_times_the_time(tmp_path: Path) -> None:
    campaign = build_small(tmp_path / "c").campaign
    name = campaign.attempt(FP32.id, 1, 1).file("stderr.log").relative_to(campaign.path).as_posix()
    redactor = _planned(campaign)

    def cpu_s(slashes: int) -> float:
        begin = time.thread_time()
        assert redactor.apply(name, b"/+" * slashes) == b"/+" * slashes
        return time.thread_time() - begin

    short, long = (min(cpu_s(slashes) for _ in range(3)) for slashes in (10_000, 100_000))
    assert long < 40 * short  # every pair of them would take a hundred times


def test_a_name_that_is_no_utf_8_stays_as_it_is(tmp_path: Path) -> None:
    campaign = build_small(tmp_path / "c").campaign
    run = campaign.attempt(FP32.id, 1, 1)
    write_json(run.file("environment.json"), {**environment(HOST), "cpu": "odd \udcff name"})
    redacted = json.loads(_text(campaign, _planned(campaign), f"runs/{FP32.id}/block-001/attempt-01/environment.json"))
    assert (redacted["cpu"], redacted["host"]) == ("odd \udcff name", "host-1")


def test_a_case_that_names_a_file_of_the_authors_is_refused(tmp_path: Path) -> None:
    path = "/data/secret-project/net.onnx"
    case = Case(workload="infer", model=path, runtime="onnxruntime", sources=(("model", "0" * 64),))
    builder = CampaignBuilder(tmp_path / "c", [case], repetitions=1)
    builder.run(case, 1, {"latency_mean_ms": 1.0}, environment=environment(HOST))
    plan = json.loads(builder.campaign.plan_resolved.read_text())
    write_json(
        builder.campaign.plan_resolved,
        {**plan, "files": {path: {"path": path, "sha256": "0" * 64, "bytes": 1}}},
    )
    with pytest.raises(UsageError, match=r"secret-project.*ids of cases depend on it"):
        _planned(builder.campaign)


def test_a_word_of_the_authors_goes_too(tmp_path: Path) -> None:
    builder = build_small(tmp_path / "c")
    builder.run(
        FP32, 1, {"latency_mean_ms": 1.0}, cautions=[Caution(CautionCode.BUSY_MACHINE, "job of BlueProject")], attempt=2
    )
    redactor = _planned(builder.campaign, RedactionRules(words=("BlueProject",)))
    text = _text(builder.campaign, redactor, f"runs/{FP32.id}/block-001/attempt-02/run.json")
    assert "job of redacted-1" in text


def test_letters_of_a_digest_are_no_word(tmp_path: Path) -> None:
    word = FP32.id[10:14]
    builder = build_small(tmp_path / "c")
    builder.run(
        FP32, 1, {"latency_mean_ms": 1.0}, cautions=[Caution(CautionCode.BUSY_MACHINE, f"job of {word}")], attempt=2
    )
    redactor = _planned(builder.campaign, RedactionRules(words=(word,)))
    name = f"runs/{FP32.id}/block-001/attempt-02/run.json"
    stored = json.loads(_text(builder.campaign, redactor, name))
    assert (stored["case_id"], stored["cautions"][0]["detail"]) == (FP32.id, "job of redacted-1")
    write_json(tmp_path / "staged.json", stored)
    refuse_words_left(tmp_path, ["staged.json"], [word])


@pytest.mark.parametrize("word", ["9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", f"key-{'5' * 64}", "0f" * 32])
@pytest.mark.parametrize("before", ["", "key ", "cafe"])
def test_a_word_that_looks_like_a_digest_goes_and_is_found(tmp_path: Path, word: str, before: str) -> None:
    """Keys of services and commits of private sources do."""
    builder = build_small(tmp_path / "c")
    name = f"runs/{FP32.id}/block-001/attempt-02/summary.json"
    builder.run(FP32, 1, {"latency_mean_ms": 1.0}, labels={"note": before + word}, attempt=2)
    write_json(tmp_path / "staged.json", {"note": before + word})
    with pytest.raises(UsageError, match="where it cannot be redacted"):
        refuse_words_left(tmp_path, ["staged.json"], [word])
    redactor = _planned(builder.campaign, RedactionRules(words=(word,)))
    text = _text(builder.campaign, redactor, name)
    assert word not in text
    assert f"{before}redacted-1" in text
    assert redactor.unused_words == ()


@pytest.mark.parametrize("word", [FP32.id, FP32.id[:40], ARTEFACT, f"artefacts/{ARTEFACT}", "a1" * 32, MADE])
def test_a_digest_that_files_are_found_or_checked_by_is_refused(tmp_path: Path, word: str) -> None:
    campaign = build_small(tmp_path / "c").campaign
    plan = json.loads(campaign.plan_resolved.read_text())
    write_json(campaign.plan_resolved, {**plan, "files": {"a": {"path": "/d/a", "sha256": "a1" * 32, "bytes": 1}}})
    making = campaign.path / f"artefacts/{ARTEFACT}/run.json"
    write_json(making, {**json.loads(making.read_text()), "made": {"weights.pt": MADE}})
    with pytest.raises(UsageError, match=r"cannot be redacted") as refused:
        _planned(campaign, RedactionRules(words=(word,)))
    assert refused.value.hint == f"publish without --redact {word}"


@pytest.mark.parametrize("word", ["", "a"])
def test_a_word_that_is_everywhere_is_refused(tmp_path: Path, word: str) -> None:
    with pytest.raises(UsageError, match="at least two letters"):
        _planned(build_small(tmp_path / "c").campaign, RedactionRules(words=(word,)))


@pytest.mark.parametrize(
    ("model", "rules"), [(f"/home/{USER}/net.onnx", RedactionRules()), ("net.onnx", RedactionRules(words=("net",)))]
)
def test_a_case_that_is_made_of_it_is_refused(tmp_path: Path, model: str, rules: RedactionRules) -> None:
    case = Case(workload="infer", model=model, runtime="onnxruntime", sources=(("model", "0" * 64),))
    builder = CampaignBuilder(tmp_path / "c", [case], repetitions=1)
    builder.run(case, 1, {"latency_mean_ms": 1.0}, environment=environment(HOST))
    with pytest.raises(UsageError, match="ids of cases depend on it"):
        _planned(builder.campaign, rules)
    assert not _planned(builder.campaign, RedactionRules(keep_paths=True)).users


def test_a_host_that_is_called_like_a_model_does_not_rename_the_model(tmp_path: Path) -> None:
    builder = CampaignBuilder(tmp_path / "c", [FP32], repetitions=1)
    builder.run(FP32, 1, {"latency_mean_ms": 1.0}, environment=environment("digits-cnn"), labels={"note": "digits-cnn"})
    run = f"runs/{FP32.id}/block-001/attempt-01"
    redactor = _planned(builder.campaign)
    assert json.loads(_text(builder.campaign, redactor, f"{run}/environment.json"))["host"] == "host-1"
    assert "digits-cnn" in _text(builder.campaign, redactor, f"{run}/summary.json")


def test_what_looks_personal_and_stays_is_listed(tmp_path: Path) -> None:
    campaign = build_small(tmp_path / "c").campaign
    log = campaign.attempt(FP32.id, 1, 1).file("stderr.log")
    log.write_text("mail ada@example.org from 10.1.2.3, see /projects/secret/x and /usr/lib/python3/x.py\n")
    found = leftovers(campaign.path, select(campaign, with_artefacts=False).files)
    texts = {one.text for one in found}
    assert {"ada@example.org", "10.1.2.3", "/projects/secret/x"} <= texts
    assert not [text for text in texts if text.startswith("/usr")]


PREDICTED = """image_id,group,label,top1,top5_hit
BlueProject-1,/home/babbage/a,1,1,true
"x, of lovelace",4711,4711,0,true
"""


def _with_predictions(folder: Path) -> tuple[CampaignDirectory, str]:
    builder = build_small(folder)
    run = builder.run(FP32, 1, {"top1_percent": 50.0}, predictions=PREDICTED, attempt=2)
    return builder.campaign, run.file("predictions.csv").relative_to(folder).as_posix()


def test_ids_and_groups_of_predictions_are_gone_through_and_numbers_stay(tmp_path: Path) -> None:
    campaign, name = _with_predictions(tmp_path / "c")
    text = _text(campaign, _planned(campaign, RedactionRules(words=("BlueProject", "4711"))), name)
    assert text == PREDICTED.replace("BlueProject", "redacted-1").replace("babbage", "user-2").replace(
        "lovelace", "user-1"
    ).replace('",4711', '",redacted-2')
    assert _text(campaign, _planned(campaign, RedactionRules(keep_paths=True)), name) == PREDICTED


def test_a_word_with_quotes_goes_from_cells(tmp_path: Path) -> None:
    campaign, name = _with_predictions(tmp_path / "c")
    (campaign.path / name).write_text(PREDICTED.replace("BlueProject-1", '"say ""hi"" bob"'))
    redactor = _planned(campaign, RedactionRules(words=('"hi" bob',)))
    assert "say redacted-1," in _text(campaign, redactor, name)
    assert redactor.unused_words == ()


def test_a_word_that_is_a_host_or_an_owner_was_found(tmp_path: Path) -> None:
    campaign = build_small(tmp_path / "c").campaign
    redactor = _planned(campaign, RedactionRules(words=(HOST, "nowhere")))
    for name in select(campaign, with_artefacts=False).files:
        if is_text(name):
            _text(campaign, redactor, name)
    assert redactor.unused_words == ("nowhere",)


def test_what_looks_personal_in_ids_is_listed(tmp_path: Path) -> None:
    campaign, name = _with_predictions(tmp_path / "c")
    (campaign.path / name).write_text(PREDICTED.replace("BlueProject-1", "ada@example.org"))
    found = leftovers(campaign.path, select(campaign, with_artefacts=False).files)
    assert ("ada@example.org", name) in {(one.text, one.name) for one in found}


def test_a_home_folder_in_the_name_of_a_field_goes_and_a_word_there_is_refused(tmp_path: Path) -> None:
    campaign = build_small(tmp_path / "c").campaign
    run = campaign.attempt(FP32.id, 1, 1)
    write_json(run.file("environment.json"), {**environment(HOST), "packages": {"blue-tools": "1"}, "/home/babbage": 1})
    name = run.file("environment.json").relative_to(campaign.path).as_posix()
    redactor = _planned(campaign, RedactionRules(words=("blue",)))
    (campaign.path / name).write_text(_text(campaign, redactor, name))
    assert "/home/user-2" in json.loads((campaign.path / name).read_text())
    with pytest.raises(UsageError, match=f"{name} contains 'blue' where it cannot be redacted"):
        refuse_words_left(campaign.path, select(campaign, with_artefacts=False).files, redactor.words)


def test_a_word_in_what_an_artefacts_making_left_is_refused(tmp_path: Path) -> None:
    campaign = build_small(tmp_path / "c").campaign
    names = select(campaign, with_artefacts=False).files
    with pytest.raises(UsageError, match=r"layers\.json contains 'Layers'"):
        refuse_words_left(campaign.path, names, ["Layers"])
