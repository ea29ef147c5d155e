# SPDX-License-Identifier: Apache-2.0
"""Metrics of a package: names of criteria, curves and published values follow from the catalogue with their rows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pybench.case import Case, case_from_json, case_to_json
from pybench.case.contrasts import Contrast, from_json, parse, to_json
from pybench.case.references import Reference, curve_names, meaning_of, reference_names, value_problem
from pybench.case.service_levels import at_bounds, with_bounds
from pybench.case.yields import metrics_of
from pybench.catalogue.catalogue import BUILT_IN
from pybench.catalogue.criteria import CRITERIA, criteria_of
from pybench.catalogue.metrics import Metric
from pybench.catalogue.plugins import Plugin
from pybench.catalogue.workloads import WORKLOADS
from pybench.dataset import load
from pybench.errors import UsageError
from tests.support.campaigns import CampaignBuilder

PLUGIN = Plugin(name="acme", distribution="acme", version="1", package="acme", sha256="0" * 64)
RATE = Metric(
    name="sorted_per_s",
    group="time",
    unit="numbers/s",
    better="higher",
    label="Sorted",
    meaning="numbers sorted in a second",
    rests_on="timing",
    plugin=PLUGIN,
)
IN_TIME = replace(RATE, name="sorted_in_time_per_s", is_per_bound=True, share_of=RATE.name)
DISORDER = replace(RATE, name="disorder_pp", unit="pp", better="lower", scale="difference")
CONTEXT = replace(RATE, name="runs_found", better="none")
SORT = replace(WORKLOADS["infer"], name="sort", yields=(*WORKLOADS["infer"].yields, RATE.name), plugin=PLUGIN)
ADDED = BUILT_IN.with_rows([RATE, IN_TIME, DISORDER, CONTEXT, SORT])
CASE = Case(workload="sort", model="mlp", runtime="torch", batch=8, catalogue=ADDED)


def test_each_metric_has_one_criterion_that_follows_from_its_row() -> None:
    added = {name: kind for name, kind in criteria_of(ADDED).items() if name not in CRITERIA}
    assert {name: (kind.metric, kind.kind, kind.sense) for name, kind in added.items()} == {
        "sorted_per_s_ratio_min": ("sorted_per_s", "ratio", "min"),
        "sorted_in_time_per_s_ratio_min": ("sorted_in_time_per_s", "ratio", "min"),
        "disorder_pp_delta_max": ("disorder_pp", "difference", "max"),
    }
    assert criteria_of(BUILT_IN) is CRITERIA


def test_a_metric_of_that_name_takes_the_place_of_the_criterion() -> None:
    catalogue = ADDED.with_rows([replace(RATE, name="sorted_per_s_ratio", better="none")])
    assert "sorted_per_s_ratio_min" not in criteria_of(catalogue)
    assert meaning_of("sorted_per_s_ratio", catalogue)[1] == "absolute"


def test_curves_and_published_values_name_them() -> None:
    names = {"sorted_per_s", "sorted_per_s_ratio", "disorder_pp", "disorder_pp_delta", "runs_found"}
    assert names < set(curve_names(ADDED)) < set(reference_names(ADDED))
    assert "sorted_in_time_per_s" not in curve_names(ADDED)
    assert value_problem("sorted_per_s", ADDED, -1) == "`value` of sorted_per_s takes a finite number above 0, not -1"
    assert value_problem("disorder_pp_delta", ADDED, -1) is None


def test_a_stored_comparison_is_read_with_the_rows_that_it_names() -> None:
    published = Reference(name="disorder_pp", row=DISORDER, kind="absolute", value=1.0, source="a paper")
    declared = {
        "baseline": {"batch": 1},
        "accept": {"sorted_per_s_ratio_min": 0.9, "speedup_min": 1},
        "reference": [published],
    }
    contrasts = parse(declared, ADDED)
    (stored,) = json.loads(json.dumps(to_json(contrasts)))
    assert [row["name"] for row in stored["rows"]] == ["sorted_per_s", "disorder_pp"]
    assert from_json([stored]) == contrasts
    with pytest.raises(UsageError, match="unknown criterion 'sorted_per_s_ratio_min'"):
        from_json([{name: value for name, value in stored.items() if name not in ("rows", "reference")}])
    assert "rows" not in to_json([Contrast(baseline={"batch": 1})])[0]


def test_a_metric_at_bounds_is_evaluated_where_its_rate_is(tmp_path: Path) -> None:
    case = with_bounds(CASE, [10])
    assert "sorted_in_time_per_s@10ms" in metrics_of(case)
    plain = with_bounds(CASE.with_factors(workload="infer"), [10])
    assert "sorted_in_time_per_s@10ms" not in metrics_of(plain)
    again = with_bounds(case_from_json(json.loads(json.dumps(case_to_json(case)))), [10])
    assert metrics_of(again) == metrics_of(case)
    (contrast,) = parse({"baseline": {"batch": 1}, "accept": {"sorted_in_time_per_s_ratio_min": 0.9}}, ADDED)
    (criterion,) = at_bounds(contrast, [case]).accept
    assert (criterion.name, criterion.metric) == ("sorted_in_time_per_s_ratio_min@10ms", "sorted_in_time_per_s@10ms")
    builder = CampaignBuilder(tmp_path / "c", [case], repetitions=1)
    builder.run(case, 1, {"sorted_per_s": 500.0})  # its iterations take 10 ms
    rows = load(builder.path).frame.select("metric", "value").rows()
    assert dict(rows)["sorted_in_time_per_s@10ms"] == 500.0
