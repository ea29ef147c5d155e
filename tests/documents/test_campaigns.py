# SPDX-License-Identifier: Apache-2.0
"""docs/results is what the archives in campaigns/ say."""

from __future__ import annotations

import itertools
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
from pybench.publication.carry import archive as archives
from pybench.publication.pack.package import PublishOptions, stage
from tests.publication.conftest import COVERAGE
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


def test_every_published_value_of_a_whole_campaign_has_a_number(pages: dict[str, str]) -> None:
    whole, part = pages["amp-and-quantisation.md"].split("## ptq-batches")
    tables = [text.split("**Published values**")[1].split("Source:")[0] for text in (whole, part)]
    assert "| vgg16, batch 256, image size 48 | Speed-up | 2.4 | 4.67" in tables[0]
    assert tables[1].count("| Speed-up | ") == 72
    assert all(" — (" not in table and "no number here" not in table for table in tables)


def test_effects_that_differ_between_models_of_board_have_a_table(pages: dict[str, str]) -> None:
    table = pages["amp-and-quantisation.md"].split("**Effects by model of board**")[1].split("**Verdicts")[0]
    assert "| NVIDIA H100 80GB HBM3 | NVIDIA H200 | Holm's p |" in table
    assert "Baseline of all rows: precision fp32." in table
    assert table.count("Peak of a step ratio") == 3
    assert "Effects by model of board" not in pages["runtimes.md"], "it ran on boards of one model"


def test_a_partial_campaign_says_which_part_of_the_plan_ran(pages: dict[str, str]) -> None:
    page = pages["runtimes.md"]
    assert "| Part that ran: batch | 64; not 1 |" in page
    assert "| Complete blocks | 10 of 10 (10 of 150 cases) |" in page
    effects = pages["autotune.md"].split("5 more effects have no number here")
    assert len(effects) == 2
    assert " — (" not in effects[0]


def test_a_partial_campaign_shows_what_it_has_and_counts_the_rest(tmp_path: Path) -> None:
    text = """\
schema_version: 1
name: small
repetitions: 3
matrix: [{workload: infer, model: vgg16, runtime: torch, precision: [fp32, fp16], batch: [8, 16], device: cuda}]
criteria:
  baseline: {precision: fp32}
  reference:
    - where: {precision: fp16}
      speedup:
        - {value: 2.5, source: "Shafique 2023, table 6", where: {batch: 8}}
        - {value: 3.5, source: "Shafique 2023, table 6", where: {batch: 16}}
"""
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans" / "small.yaml").write_text(text)
    plan = load_plan(tmp_path / "plans" / "small.yaml")
    builder = CampaignBuilder(tmp_path / "c", plan.cases, repetitions=3, name="small", plan_text=text)
    for case, block in itertools.product(plan.cases, (1, 2, 3)):
        if case.batch == 8:
            builder.run(case, block, {"latency_mean_ms": (2 if case.precision == "fp32" else 1) + block / 100})
    package = stage(builder.path, tmp_path / "staged", PublishOptions(), COVERAGE, lambda folder, parts: None)
    archives.write(package, tmp_path / "campaigns" / "small.tar.zst")
    page = results_pages(tmp_path)["amp-and-quantisation.md"]
    table = page.split("**Published values**")[1].split("Source:")[0]
    assert "batch=8 device=cuda | Speed-up | 2.5 | 1.9" in table
    assert "batch=16" not in table
    assert "1 more published value has no number here" in table
    assert "| Part that ran: batch | 8; not 16 |" in page
    assert "| Complete blocks | 3 of 3 (2 of 4 cases) |" in page


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
