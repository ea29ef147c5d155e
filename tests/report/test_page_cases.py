# SPDX-License-Identifier: Apache-2.0
"""What the page tells its script of cases."""

from __future__ import annotations

from pybench.case import Case
from pybench.report.page_cases import PageCases
from pybench.report.tables import Cell, text_cell

INFER = Case(workload="infer", model="digits-cnn", runtime="onnxruntime")
INT8 = INFER.with_factors(precision="int8", granularity="channel")
CASES = [
    INFER.with_factors(batch=32),
    INFER.with_factors(batch=8),
    INT8.with_factors(batch=8),
    INT8.with_factors(batch=8, granularity="tensor"),
]


def test_numbers_ascend_and_a_factor_that_means_nothing_is_null() -> None:
    assert PageCases(CASES).as_json == {
        "factors": [
            {"name": "precision", "title": "Precision", "values": ["fp32", "int8"]},
            {"name": "granularity", "title": "Granularity", "values": ["channel", "tensor"]},
            {"name": "batch", "title": "Batch", "values": ["8", "32"]},
        ],
        "cases": [(0, None, 1), (0, None, 0), (1, 0, 0), (1, 1, 0)],
    }


def test_how_cases_are_measured_is_no_filter_unless_nothing_else_tells_them_apart() -> None:
    training = Case(workload="train", model="digits-cnn", runtime="torch", iterations=20)
    found = PageCases([INFER, training]).as_json
    assert found is not None
    assert "iterations" not in [factor["name"] for factor in found["factors"]]
    found = PageCases([INFER, INFER.with_factors(iterations=20)]).as_json
    assert found is not None
    assert [factor["name"] for factor in found["factors"]] == ["iterations"]


def test_without_a_choice_there_is_nothing_to_filter() -> None:
    assert PageCases([INFER]).as_json is None


def test_a_row_is_of_the_cases_that_its_csv_names() -> None:
    cases = PageCases(CASES)
    pair = Cell("int8", csv=(CASES[2].id,)), Cell("fp32", csv=(CASES[1].id,)), text_cell("batch 8")
    assert cases.of_row(pair) == "1 2"
    assert cases.of_row([Cell("mean", csv=(f"{CASES[0].id} {CASES[3].id}",))]) == "0 3"
    assert cases.of_row([text_cell("Python 3.11")]) == ""


def test_a_cell_can_name_other_cases_than_its_csv() -> None:
    cases = PageCases(CASES)
    assert cases.of_row([Cell("setting", csv=(CASES[0].id,), cases=()), Cell("x", csv=(CASES[1].id,))]) == "1"
    assert cases.of_row([text_cell("all of them", cases=tuple(case.id for case in CASES[:2]))]) == "0 1"


def test_marks_of_a_figure_get_the_numbers_of_their_cases() -> None:
    svg = f'<g data-cases="{CASES[3].id[:12]} {CASES[0].id[:12]}"><path/></g>'
    assert PageCases(CASES).numbered(svg) == '<g data-cases="3 0"><path/></g>'
