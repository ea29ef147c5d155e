# SPDX-License-Identifier: Apache-2.0
"""The language of `--filter`."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pybench.case import Case
from pybench.errors import UsageError
from pybench.plan.filter import parse_filter

CASES = {
    "fp32": Case(workload="infer", model="resnet50", runtime="torch", batch=1),
    "int8": Case(workload="infer", model="resnet50", runtime="onnxruntime", precision="int8", batch=8, threads=2),
    "train": Case(workload="train", model="tinylm-small", runtime="torch", batch=8, energy_window_s=0.5),
    "h2d": Case(workload="h2d", pinned=True),
}


@pytest.mark.parametrize(
    ("expression", "selected"),
    [
        ("precision=int8", "int8"),
        ("precision==int8", "int8"),
        ("batch>=8", "int8 train"),
        ("batch<8", "fp32"),
        ("batch > 1, workload = train", "train"),
        ("batch>1 and workload!=train", "int8"),
        ("workload in infer|h2d", "fp32 int8 h2d"),
        ("workload in infer | train and runtime=torch", "fp32 train"),
        ("model='resnet50'", "fp32 int8"),
        ("model!=resnet50", "train h2d"),
        ("pinned=true", "h2d"),
        ("threads=null", "fp32 train h2d"),
        ("threads<=4", "int8"),
        ("energy_window_s>=0.5", "train"),
        ("precision=fp32", "fp32 train"),  # a copy has no precision
        ("seq_len=128", "train"),
        ("model=other.onnx", ""),
    ],
)
def test_an_expression_selects_cases(expression: str, selected: str) -> None:
    accepts = parse_filter(expression)
    assert " ".join(name for name, case in CASES.items() if accepts(case)) == selected


@pytest.mark.parametrize(
    ("expression", "column", "part"),
    [
        ("precison=int8", 1, "unknown factor `precison`"),
        ("batch=1, modle=x", 10, "unknown factor `modle`"),
        ("precision=int7", 11, "takes one of"),
        ("precision=", 11, "expected a value"),
        ("precision", 10, "expected one of"),
        ("batch>=x", 8, "takes an integer"),
        ("batch=" + "9" * 5000, 7, "digits"),
        ("model<3", 6, "has no order"),
        ("batch=1 batch=2", 9, "expected a comma or `and`"),
        ("", 1, "expected a factor"),
        ("batch=1,", 9, "expected a factor"),
        ("batch=1 or batch=2", 9, "expected a comma or `and`"),
        ("model='a", 7, "cannot read"),
        ("workload in |infer", 13, "expected a value"),
        ("runtime in (torch, onnxruntime)", 12, "expected a value of `runtime`, not a list in brackets"),
        ("runtime in [torch]", 12, "expected a value of `runtime`, not a list in brackets"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_column(expression: str, column: int, part: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_filter(expression)
    assert raised.value.message.startswith(f"--filter, column {column}: ")
    assert part in raised.value.message


def test_an_unknown_factor_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean `precision`"):
        parse_filter("precison=int8")


@settings(deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(alphabet="abin=<>!|,'\" 8.precision_modelworkltdghx", max_size=40))
def test_any_text_is_read_or_refused(expression: str) -> None:
    selects: Callable[[Case], bool] | None
    try:
        selects = parse_filter(expression)
    except UsageError:
        selects = None
    assert selects is None or all(selects(case) in (True, False) for case in CASES.values())


@pytest.mark.parametrize(("expression", "meant"), [("batch=>8", ">="), ("batch =< 8", "<="), ("batch=!8", None)])
def test_a_sign_the_wrong_way_round_is_told(expression: str, meant: str | None) -> None:
    with pytest.raises(UsageError, match="--filter, column") as raised:
        parse_filter(expression)
    assert raised.value.hint == (None if meant is None else f"did you mean `{meant}`?")
