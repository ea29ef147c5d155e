# SPDX-License-Identifier: Apache-2.0
"""`project` as a user meets it."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from pybench.cli import main
from pybench.errors import EXIT_USAGE
from pybench.publication import unpacked
from tests.projection.test_scenario import SCENARIO

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("scenario.yaml").write_text(SCENARIO)


def test_tables_name_every_input_and_why_it_is_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["project", "scenario.yaml"]) == 0
    said = capsys.readouterr().out
    for words in (
        "Energy of a query",
        "Energy of a fleet",
        "chosen: a guess",
        "source: a paper, table 2",
        "not stated",
    ):
        assert words in said
    assert "query.usual, Wh" in said


def test_json_has_the_same_results(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["project", "scenario.yaml", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [query["name"] for query in found["queries"]] == ["usual", "long"]
    fleet = found["fleets"][0]
    low, high = fleet["energy_interval_95_gwh_per_day"]
    assert 0 < low < fleet["energy_median_gwh_per_day"] < high
    assert [share["input"] for share in fleet["shares"]] == ["energy.output_token_j"]
    low, high = found["queries"][0]["quartiles_g"]
    assert low < found["queries"][0]["median_g"] < high
    assert found["usual_query_shares"][0]["input"] == "query.output_tokens"


def test_tables_name_their_statistics(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["project", "scenario.yaml"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    for words in (
        "Median [quartiles], Wh",
        "Median [quartiles], g CO2e",
        "A ratio of two medians is one number for all draws, so it has no quartiles.",
        "Median [95%], GWh a day",
        "Median [95%], t CO2e a day",
        "Medians of the draws; brackets contain the central 95% of the draws, not the quartiles.",
        "Where the spread of a fleet comes from",
    ):
        assert words in said


def test_a_published_value_is_told_how_wide_the_brackets_are(capsys: pytest.CaptureFixture[str]) -> None:
    """A value inside brackets as wide as these is no agreement."""
    Path("scenario.yaml").write_text(SCENARIO.replace("pue: 1.2", "pue: {uniform: [1, 10]}"))
    assert main(["project", "scenario.yaml", "--json"]) == 0
    low, high = json.loads(capsys.readouterr().out)["queries"][0]["quartiles_wh"]
    Path("scenario.yaml").write_text(Path("scenario.yaml").read_text().replace("[0.2, 0.7]", "[0.2, 0.9]"))
    assert main(["project", "scenario.yaml"]) == 0
    said = capsys.readouterr().out
    assert f"the brackets, whose ends are a factor of {high / low:.1f} apart" in said
    assert "The wider the brackets, the less a value inside them confirms." in said


def test_a_campaign_of_a_real_board_becomes_a_fleet(capsys: pytest.CaptureFixture[str]) -> None:
    measured = "{measured: {case: infer tinylm-small torch bf16 batch=16 seq_len=256 fed=True, metric: METRIC}"
    text = SCENARIO.replace("input_token_j: 0.1", f"input_token_j: {measured}}}")
    Path("scenario.yaml").write_text(text.replace("METRIC", "gpu_energy_per_token_j"))
    with unpacked(ROOT / "campaigns/gcbench-infer.tar.zst") as campaign:
        assert main(["project", str(campaign), "scenario.yaml"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "measured: gpu_energy_per_token_j of infer tinylm-small torch bf16 batch=16 seq_len=256 fed=True" in said
    assert "joules of the GPUs" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["project", "absent.yaml"], "absent.yaml: no such file"),
        (["project", "a", "b", "scenario.yaml"], "takes a campaign and a scenario, not 3 paths"),
        (["project", "absent", "scenario.yaml"], "absent is not a folder"),
        (["project", "scenario.yaml", "."], ". is a folder, not a scenario\n  hint: pybench project DIR SCENARIO"),
    ],
)
def test_a_wrong_call_is_one_error(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == EXIT_USAGE
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(("name", "begins"), [("query.svg", b"<?xml"), ("query.pdf", b"%PDF")])
def test_a_figure_needs_no_campaign(name: str, begins: bytes) -> None:
    assert main(["project", "scenario.yaml", "--figure", name]) == 0
    assert Path(name).read_bytes().startswith(begins)


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_a_figure_in_a_folder_without_permission_has_a_hint_of_its_command(
    number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("pybench.campaign.storage.os.replace", refuse)
    assert main(["project", "scenario.yaml", "--figure", "query.svg"]) == EXIT_USAGE
    said = capsys.readouterr().err
    assert "choose another folder with --figure" in said
    assert "--out" not in said


@pytest.mark.parametrize(
    ("name", "said"), [("query.png", "neither .svg nor .pdf"), ("no/query.svg", "cannot write no/query.svg")]
)
def test_a_figure_that_cannot_be_made_is_one_error(name: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["project", "scenario.yaml", "--figure", name]) == EXIT_USAGE
    assert said in capsys.readouterr().err
