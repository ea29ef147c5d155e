# SPDX-License-Identifier: Apache-2.0
"""`project` as a user meets it."""

from __future__ import annotations

import json
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
    assert found["fleets"][0]["energy_gwh_per_day"] > 0


def test_a_campaign_of_a_real_board_becomes_a_fleet(capsys: pytest.CaptureFixture[str]) -> None:
    measured = "{measured: {case: infer tinylm-small torch bf16 batch=16 seq_len=256 fed=True, metric: METRIC}"
    text = SCENARIO.replace("input_token_j: 0.1", f"input_token_j: {measured}}}")
    Path("scenario.yaml").write_text(text.replace("METRIC", "gpu_energy_per_token_j"))
    with unpacked(ROOT / "campaigns/gcbench-infer.zip") as campaign:
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


@pytest.mark.parametrize(
    ("name", "said"), [("query.png", "neither .svg nor .pdf"), ("no/query.svg", "cannot write no/query.svg")]
)
def test_a_figure_that_cannot_be_made_is_one_error(name: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["project", "scenario.yaml", "--figure", name]) == EXIT_USAGE
    assert said in capsys.readouterr().err
