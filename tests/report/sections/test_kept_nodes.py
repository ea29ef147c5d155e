# SPDX-License-Identifier: Apache-2.0
"""The section "What has to stay in FP32", of a campaign that runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pybench.cli import main
from pybench.dataset import load
from pybench.dataset.kept_nodes import read_kept_nodes
from pybench.report import write_report
from tests.report.pages import rows_of
from tests.workloads.test_sensitivity import fragile

PLAN = """
schema_version: 1
name: fragile
repetitions: 1
defaults: {device: cpu, threads: 1, calibration_images: 8, iterations: 3, energy_window_s: 0}
matrix:
  - {workload: infer, model: fragile.onnx, runtime: onnxruntime, precision: int8, quantiser: pybench,
     granularity: tensor, batch: [1, 8], keep_error_max: [null, 0.2, 1.0, 0.0001]}
  - {workload: infer, model: fragile.onnx, runtime: onnxruntime, precision: int8, quantiser: pybench,
     granularity: tensor, calibration_images: 6, keep_error_max: 0.2, batch: 2}
"""
IN_AN_ENVIRONMENT = """
  - {workload: infer, model: fragile.onnx, runtime: onnxruntime, precision: int8, quantiser: pybench,
     granularity: tensor, environment: [null, here], keep_error_max: 0.2}
environments: {here: {python: %s}}
"""

pytestmark = pytest.mark.process  # the campaign runs


@pytest.mark.slow
def test_the_fragile_node_stays_and_a_bound_out_of_reach_leaves_its_cases_unbuilt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fragile(tmp_path / "fragile.onnx", "b1")
    (tmp_path / "plan.yaml").write_text(PLAN)
    assert main(["run", str(tmp_path / "plan.yaml"), "--out", str(tmp_path / "c")]) == 1
    assert "with at most one of 7 nodes quantised; keep_error_max is 0.0001" in capsys.readouterr().err
    dataset = load(tmp_path / "c")
    outcomes = {(case.batch, case.keep_error_max): None for case in dataset.plan.cases}
    for case_id, outcome in dataset.runs.select("case_id", "outcome").iter_rows():
        case = dataset.cases[case_id]
        outcomes[case.batch, case.keep_error_max] = outcome
        assert outcome == ("build_failed" if case.keep_error_max == 0.0001 else "ok")
    assert len(outcomes) == 9
    *found, fewer = read_kept_nodes(dataset)
    cases = {one.making.parameters["keep_error_max"]: len(one.cases) for one in found}
    assert cases == {0.2: 2, 1.0: 2}  # a search for both batches
    assert len(fewer.cases) == 1
    page = write_report(dataset)
    text = page.read_text()
    assert "<h2>What has to stay in FP32</h2>" in text
    assert "1 of 7 nodes stays in FP32, and the signal error is " in text
    *first, last = rows_of(page, "kept-nodes")
    rows = {float(row["keep_error_max"]): row for row in first}
    assert [row["samples_count"] for row in (*first, last)] == ["8.0", "8.0", "6.0"]
    assert "so accuracy is judged on others." in text
    assert last["search"] == rows[0.2]["search"].replace("calibration_images=8", "calibration_images=6")
    assert {bound: row["kept"] for bound, row in rows.items()} == {0.2: "b1", 1.0: "b1"}
    assert float(rows[0.2]["before_signal_error"]) > 1 > 0.2 > float(rows[0.2]["signal_error"])
    nodes = [row for row in rows_of(page, "kept-node-errors") if row["search"] == rows[0.2]["search"]]
    assert [row["is_kept"] for row in nodes] == ["yes", *["no"] * 6]
    assert nodes[0]["node"] == "b1"
    for one in (*found, fewer):
        for case_id in one.cases:
            assert case_id in text


@pytest.mark.slow
def test_each_environment_has_a_search_of_its_own(tmp_path: Path) -> None:
    fragile(tmp_path / "fragile.onnx", "b1")
    start = PLAN[: PLAN.index("matrix:")]
    (tmp_path / "plan.yaml").write_text(start + "matrix:" + IN_AN_ENVIRONMENT % sys.executable)
    assert main(["run", str(tmp_path / "plan.yaml"), "--out", str(tmp_path / "c")]) == 0
    dataset = load(tmp_path / "c")
    found = read_kept_nodes(dataset)
    assert [one.cases for one in found] == [(case.id,) for case in dataset.plan.cases]
    names = {row["search"] for row in rows_of(write_report(dataset), "kept-nodes")}
    assert sorted("environment=here" in name.split() for name in names) == [False, True]
