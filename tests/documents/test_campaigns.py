# SPDX-License-Identifier: Apache-2.0
"""docs/results is what the archives in campaigns/ say."""

from __future__ import annotations

from pathlib import Path

import pytest

from documents.campaigns import FOLDER, asked_of, results_pages
from documents.pages import ROOT
from pybench.campaign.resolved_plan import store_stop
from pybench.case import Case
from pybench.case.repetitions import Stop, StoppingRule
from pybench.catalogue.papers import PAPERS
from pybench.dataset import load
from pybench.plan import load_plan
from tests.support.campaigns import CampaignBuilder

pytestmark = pytest.mark.process  # archives are read by several processes


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return dict(results_pages(ROOT))


def test_the_committed_pages_are_what_the_archives_say(pages: dict[str, str]) -> None:
    written = {path.name: path.read_text() for path in (ROOT / FOLDER).iterdir()}
    assert written == pages, "run: make documents"


def test_every_archive_is_in_the_index_and_on_the_page_that_it_links(pages: dict[str, str]) -> None:
    linked = {}
    for archive in (ROOT / "campaigns").glob("*.tar.zst"):
        (row,) = (line for line in pages["README.md"].splitlines() if f"/campaigns/{archive.name})" in line)
        plan, page, paper = row.removeprefix("| [").replace("](", " ").replace(") | ", " ").split(" ")[:3]
        assert plan == archive.name.removesuffix(".tar.zst")
        assert f"pybench replay campaigns/{archive.name}" in pages[page]
        linked[page] = paper
    assert set(pages) == {"README.md", *linked}
    assert {page for page, paper in linked.items() if paper == "yes"} == {paper.page for paper in PAPERS} & set(linked)


def test_a_campaign_without_a_paper_has_its_verdicts_and_the_words_of_its_plan(pages: dict[str, str]) -> None:
    page = pages["runtimes.md"]
    assert "| tensorrt | fp16 | 0.4723 " in page
    assert "100 more verdicts have no number here" in page
    assert "# Three models in every runtime" in page
    assert "Published" not in page


def test_a_partial_campaign_shows_what_it_has_and_counts_the_rest(pages: dict[str, str]) -> None:
    whole, part = pages["amp-and-quantisation.md"].split("## ptq-batches")
    table = part.split("**Published values**")[1].split("Source:")[0]
    assert " — (" not in table
    assert "42 more published values have no number here" in table
    assert "| vgg16, batch 256, image size 48 | Speed-up | 2.4 | 4.58" in whole
    assert "no number here" not in whole.split("**Published values**")[1].split("Source:")[0]


def test_a_partial_campaign_says_which_part_of_the_plan_ran(pages: dict[str, str]) -> None:
    part = pages["amp-and-quantisation.md"].split("## ptq-batches")[1]
    assert "| Part that ran: batch | 8, 32, 64; not 16 |" in part
    assert "| Complete blocks | 3 of 10 (40 of 96 cases) |" in part
    effects = part.split("**Effects: INT8 against FP16**")[1].split("###")[0]
    assert effects.count("3 blocks") == 10
    assert " — (" not in effects
    assert "14 more effects have no number here" in effects


def test_a_campaign_that_was_decided_asks_for_no_more_blocks(tmp_path: Path) -> None:
    text = """\
schema_version: 1
name: example
repetitions: {until: decided, at_most: 20}
matrix: [{workload: infer, model: digits-cnn, runtime: onnxruntime, precision: [fp32, fp16]}]
criteria: {baseline: {precision: fp32}}
"""
    case = Case(workload="infer", model="digits-cnn", runtime="onnxruntime")
    builder = CampaignBuilder(tmp_path / "c", [case], rule=StoppingRule(20), plan_text=text)
    ready = load_plan(builder.campaign.plan)
    assert asked_of(load(builder.path), ready) == 20
    store_stop(builder.campaign, Stop(5, "decided"))
    assert asked_of(load(builder.path), ready) == 5


def test_published_values_are_listed_where_none_has_a_number_yet(pages: dict[str, str]) -> None:
    table = pages["works-on-inference.md"].split("**Published values**")[1].split("Source:")[0]
    assert "| Speed-up | 7 | — (a) |" in table
    assert "no number here" not in table
