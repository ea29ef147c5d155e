# SPDX-License-Identifier: Apache-2.0
"""The recipe of a criterion, one row: plans take it, the schema and the documents describe it, the report judges by it.

Names that curves and references have without `_min` or `_max` are derived of the rows when pybench is imported.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from documents.tables import TABLES
from pybench.case import Case
from pybench.catalogue.criteria import CRITERIA, CriterionKind
from pybench.cli import main
from pybench.dataset import load
from pybench.errors import EXIT_OK, EXIT_USAGE
from pybench.plan.schema import plan_schema
from pybench.report import write_report
from tests.report.pages import rows_of
from tests.support.campaigns import CampaignBuilder

ROW = CriterionKind(
    "compile_s_ratio_max", "compile_s", "ratio", "max", "time until the model is ready over that of the baseline"
)
PLAN = """
schema_version: 1
name: starts
repetitions: 3
matrix: [{{workload: infer, model: digits-cnn, runtime: onnxruntime, precision: [fp32, int8]}}]
criteria: {{baseline: {{precision: fp32}}, accept: {{compile_s_ratio_max: {bound}}}}}
"""


@pytest.fixture(autouse=True)
def row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CRITERIA, ROW.name, ROW)


def test_a_plan_takes_it_and_refuses_a_wrong_bound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN.format(bound=0.5))
    assert main(["validate", str(plan)]) == EXIT_OK
    plan.write_text(PLAN.format(bound=-1))
    assert main(["validate", str(plan)]) == EXIT_USAGE
    assert "compile_s_ratio_max takes a ratio from 1e-09 to 1e+09, not -1" in capsys.readouterr().err


def test_the_schema_and_the_documents_describe_it() -> None:
    described = plan_schema()["$defs"]["Accept"]["properties"][ROW.name]
    assert described == {"description": ROW.meaning, "type": "number", "minimum": 1e-9, "maximum": 1e9}
    assert f"| `{ROW.name}` | {ROW.meaning} | `compile_s` |" in TABLES["criteria"]().splitlines()


@pytest.mark.parametrize(("lowered_s", "verdict"), [(1.0, "accepted"), (3.0, "rejected")])
def test_the_report_judges_by_it(tmp_path: Path, lowered_s: float, verdict: str) -> None:
    fp32 = Case(workload="infer", model="digits-cnn", runtime="onnxruntime")
    cases = [fp32, replace(fp32, precision="int8")]
    declared = {"baseline": {"precision": "fp32"}, "accept": {ROW.name: 0.5}}
    builder = CampaignBuilder(tmp_path / "c", cases, repetitions=3, declared=declared)
    for block in (1, 2, 3):
        for case, compile_s in zip(cases, (4.0, lowered_s), strict=True):
            builder.run(case, block, {"latency_mean_ms": 1.0, "compile_s": compile_s + 0.01 * block})
    (judged,) = rows_of(write_report(load(builder.path)), "verdicts-1")
    assert judged["verdict"] == verdict
    assert float(judged[ROW.name]) == pytest.approx((lowered_s + 0.02) / 4.02, rel=1e-3)
