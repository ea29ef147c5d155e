# SPDX-License-Identifier: Apache-2.0
"""The section "Where the time goes": its tables, and when there is none."""

from __future__ import annotations

from pathlib import Path

from pybench.case import Case
from pybench.dataset import load
from pybench.report import write_report
from pybench.report.sections.elements import Tables
from pybench.report.sections.kernels import ROWS_ON_PAGE
from pybench.report.tables import Column, Table, text_cell
from tests.analysis.findings.test_explanation import campaign, engines
from tests.analysis.findings.test_kernel_times import timed
from tests.report.pages import rows_of
from tests.support.campaigns import CampaignBuilder

HEADING = "<h2>Where the time goes</h2>"


def test_a_campaign_without_profiles_has_no_such_section(tmp_path: Path) -> None:
    case = Case(workload="infer", model="resnet50", runtime="onnxruntime")
    builder = CampaignBuilder(tmp_path / "c", [case], repetitions=1)
    builder.run(case, 1, {"latency_mean_ms": 1.0})
    page = write_report(load(builder.path))
    assert HEADING not in page.read_text()
    assert not (page.parent / "tables" / "kernels.csv").exists()


def test_shares_and_longest_nodes_of_each_case_are_shown(tmp_path: Path) -> None:
    page = write_report(load(campaign(tmp_path / "c", fp32=3.0, int8=4.0).path))
    text = page.read_text()
    assert HEADING in text
    assert "Each run makes its profile outside of every window." in text
    fp32, int8 = rows_of(page, "kernels")
    assert (int8["kernels_count"], int8["moving_kernels_count"], int8["qdq_nodes_count"]) == ("6.0", "4.0", "4.0")
    ratios = [float(int8[f"{work}_time_ratio"]) for work in ("multiplying", "moving", "quantising")]
    assert ratios == [2 / 3.5, 1 / 3.5, 0.5 / 3.5]
    assert float(fp32["multiplying_time_ratio"]) == 1.0
    longest = [row for row in rows_of(page, "longest-nodes") if row["case_id"] == int8["case_id"]]
    assert (longest[0]["nodes"], longest[0]["time_ms"], longest[0]["around_ms"]) == ("conv", "2.5", "0.5")


def test_engines_without_times_show_counts_and_say_why_there_are_no_shares(tmp_path: Path) -> None:
    builder, _ = engines(tmp_path / "c", int8="int8", fp32="fp32")
    page = write_report(load(builder.path))
    assert [row["moving_kernels_count"] for row in rows_of(page, "kernels")] == ["49.0", "48.0"]
    assert [row["moving_time_ratio"] for row in rows_of(page, "kernels")] == ["", ""]
    assert "the profile has no times" in page.read_text()
    assert rows_of(page, "longest-nodes") == []


def test_many_rows_are_in_the_files_alone() -> None:
    rows = tuple((text_cell(number),) for number in range(ROWS_ON_PAGE + 7))
    table = Table("longest-nodes", "t", (Column("n", ("n",)),), rows)
    element = Tables(lambda: [table], rows_on_page=ROWS_ON_PAGE)
    assert list(element.tables) == [table]
    (shown,) = element.shown
    assert len(shown.rows) == ROWS_ON_PAGE
    assert shown.notes == ("7 more rows are in tables/longest-nodes.csv.",)


def test_a_profile_of_one_run_is_enough(tmp_path: Path) -> None:
    case = Case(workload="infer", model="resnet50", runtime="onnxruntime")
    builder = CampaignBuilder(tmp_path / "c", [case], repetitions=3)
    builder.run(case, 2, {"latency_mean_ms": 1.0}, profile=timed(1.0, 2.0))
    page = write_report(load(builder.path))
    assert [row["nodes"] for row in rows_of(page, "longest-nodes")] == ["n1", "n0"]
