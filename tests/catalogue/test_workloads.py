# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from dataclasses import asdict, fields

import pytest

from pybench.case import Case
from pybench.catalogue.code import named_code
from pybench.catalogue.metrics import METRICS
from pybench.catalogue.workloads import WORKLOADS, Workload, judge_of
from pybench.errors import UnknownNameError


def test_a_row_comes_back_from_json() -> None:
    lists = {field.name for field in fields(Workload) if str(field.type).startswith("tuple")}
    for workload in WORKLOADS.values():
        stored = json.loads(json.dumps(asdict(workload)))
        assert Workload(**{name: tuple(v) if name in lists else v for name, v in stored.items()}) == workload


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
def test_a_row_names_code_and_metrics_that_are_there(workload: Workload) -> None:
    assert callable(named_code(f"{workload.module}:run"))
    yielded = {*workload.yields, *workload.yields_of_model, *workload.yields_of_ids, *workload.yields_fed}
    assert yielded <= set(METRICS)
    assert set(workload.shown) <= yielded
    assert workload.headline is None or workload.headline in workload.yields


def test_a_case_of_an_unknown_workload_says_so_where_its_row_is_asked_for() -> None:
    with pytest.raises(UnknownNameError, match="no workload 'inferr'") as caught:
        _ = Case(workload="inferr").workload_row
    assert caught.value.hint == "did you mean infer?"


def test_a_judge_takes_no_model_that_what_it_judges_does_not() -> None:
    for judge in (row for row in WORKLOADS.values() if row.judges is not None):
        judged = WORKLOADS[str(judge.judges)]
        assert judge_of(judged) is judge
        assert set(judge.models()) <= set(judged.models())
