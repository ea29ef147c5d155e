# SPDX-License-Identifier: Apache-2.0
"""The table of service levels: a row for each case and bound, with the numbers of its runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybench.analysis import analyse
from pybench.case import Case
from pybench.case.references import Reference
from pybench.case.service_levels import with_bounds
from pybench.catalogue.catalogue import BUILT_IN
from pybench.dataset import load
from pybench.report import write_report
from tests.report.pages import rows_of, section
from tests.support.campaigns import CampaignBuilder, build_typical

INFER = Case(workload="infer", model="mlp", runtime="torch")


def test_each_bound_is_a_row(tmp_path: Path) -> None:
    cases = [with_bounds(INFER.with_factors(batch=batch), bounds) for batch, bounds in ((1, [9, 10]), (2, [10]))]
    builder = CampaignBuilder(tmp_path / "c", cases, repetitions=2)
    for block in (1, 2):
        for case in cases:
            builder.run(case, block, {"throughput_samples_per_s": 100.0 * case.batch})  # its iterations take 10 ms
    page = write_report(load(builder.path))
    rows = rows_of(page, "service-levels")
    assert [(row["case_id"], float(row["slo_ms"]), float(row["slo_attainment_ratio"])) for row in rows] == [
        (cases[0].id, 9.0, 0.0),
        (cases[0].id, 10.0, 1.0),
        (cases[1].id, 10.0, 1.0),
    ]
    assert [float(row["goodput_samples_per_s"]) for row in rows] == pytest.approx([0, 100, 200])
    assert {row["latency"] for row in rows} == {"latency of an iteration"}
    assert "In a closed loop no request waits for another" in section(page, "service")
    metrics = (page.parent / "tables" / "metrics.csv").read_text()
    assert "goodput_samples_per_s@9ms" in metrics
    assert "SLO attainment at 10 ms" in page.read_text()


def test_a_service_level_is_judged_by_the_cases_own_interval_and_stands_next_to_a_published_one(tmp_path: Path) -> None:
    fast, slow = (with_bounds(INFER.with_factors(batch=batch), [10]) for batch in (1, 2))
    published = Reference(
        name="goodput_samples_per_s",
        row=BUILT_IN.metric("goodput_samples_per_s@10ms"),
        kind="absolute",
        value=199.0,
        source="a paper",
    )
    declared = {
        "baseline": {"batch": 1},
        "accept": {"slo_attainment_min": 0.99, "goodput_min": 250},
        "reference": [published],
    }
    builder = CampaignBuilder(tmp_path / "c", [fast, slow], repetitions=4, declared=declared)
    for block in (1, 2, 3, 4):
        for case, rate in ((fast, 100.0), (slow, 198.0 + block)):
            builder.run(case, block, {"throughput_samples_per_s": rate})  # its iterations take 10 ms
    dataset = load(builder.path)
    analysis = analyse(dataset)
    ((verdict,),) = analysis.verdicts
    assert [(one.criterion.name, one.verdict.value) for one in verdict.judgements] == [
        ("slo_attainment_min@10ms", "accepted"),
        ("goodput_min@10ms", "rejected"),
    ]
    assert verdict.judgements[1].estimate is not None
    assert verdict.judgements[1].estimate.value == pytest.approx(200.5, rel=1e-3)
    assert not [pair for pair in analysis.contrasts[0].pairs for one in pair.effects.values() if one.declared]
    assert {(found.cases[0].batch, found.relation.value) for found in analysis.references} == {
        (1, "neither"),
        (2, "interval contains it"),
    }
    page = write_report(dataset).read_text()
    assert "SLO attainment at 10 ms 1, required ≥ 0.99" in page
    assert "required ≥ 250" in page


def test_a_plan_without_bounds_has_no_such_section(tmp_path: Path) -> None:
    page = write_report(load(build_typical(tmp_path / "c", repetitions=1).path))
    assert section(page, "service") == ""


def test_a_case_that_did_not_run_is_a_row_without_numbers(tmp_path: Path) -> None:
    case = with_bounds(INFER, [10])
    builder = CampaignBuilder(tmp_path / "c", [case], repetitions=1)
    builder.run(case, 1, outcome="oom", reason="cgroup")
    assert "not measured" in section(write_report(load(builder.path)), "service")
