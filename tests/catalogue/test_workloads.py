# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from pybench.case import Case
from pybench.catalogue.catalogue import BUILT_IN
from pybench.catalogue.code import named_code
from pybench.catalogue.metrics import METRICS
from pybench.catalogue.workloads import WORKLOADS, Workload
from pybench.errors import UnknownNameError


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
def test_a_row_names_code_and_metrics_that_are_there(workload: Workload) -> None:
    assert callable(named_code(f"{workload.module}:run"))
    yielded = set(workload.metrics())
    assert yielded <= set(METRICS)
    assert {*workload.shown, *workload.rates} <= yielded
    without_ids = workload.headline_without_ids
    assert workload.headline is None or workload.headline in (*workload.yields, *workload.yields_of_ids)
    assert workload.headline in (None, *workload.yields) or without_ids in workload.yields


def test_a_case_of_an_unknown_workload_says_so_where_its_row_is_asked_for() -> None:
    with pytest.raises(UnknownNameError, match="no workload 'inferr'") as caught:
        _ = Case(workload="inferr").workload_row
    assert caught.value.hint == "did you mean infer?"


def test_a_judge_takes_no_model_that_what_it_judges_does_not() -> None:
    for judge in (row for row in WORKLOADS.values() if row.judges is not None):
        judged = WORKLOADS[str(judge.judges)]
        assert BUILT_IN.judge_of(judged) is judge
        assert set(BUILT_IN.models_of(judge)) <= set(BUILT_IN.models_of(judged))
