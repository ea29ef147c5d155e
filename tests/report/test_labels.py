# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import replace

import pytest

from pybench.case import Case
from pybench.catalogue.metrics import METRICS
from pybench.report.labels import case_text, comparison_label, naming_factors, varying_factors

FAST = Case(workload="tokenize", path="rust", batch=8, iterations=1200, corpus_limit_bytes=6_000_000, threads=1)
FED = Case(
    workload="tokenize", path="rust", model="tinylm-small", runtime="torch", batch=4, corpus_limit_bytes=2_000_000
)


def test_a_label_leaves_out_what_tells_no_cases_apart() -> None:
    cases = [FAST, FAST.with_factors(path="hf"), FED]
    assert set(varying_factors(cases)) - set(naming_factors(cases)) == {"corpus_limit_bytes", "threads", "iterations"}
    assert len({case_text(case, naming_factors(cases)) for case in cases}) == 3


@pytest.mark.parametrize(
    ("unit", "kind", "text"),
    [
        ("us", "absolute", "Own (us)"),
        ("us", "difference", "Own difference (us)"),
        ("us", "ratio", "Own ratio"),
        ("%", "difference", "Own difference (pp)"),
        ("1", "difference", "Own difference"),
        ("1/s", "absolute", "Own"),
    ],
)
def test_what_is_bounded_in_a_unit_is_told_with_it(unit: str, kind: str, text: str) -> None:
    metric = replace(METRICS["latency_p50_ms"], name="own_p50", label="Own", unit=unit)
    assert comparison_label(metric, kind, inverse=False) == text


def test_a_label_keeps_what_alone_tells_two_cases_apart() -> None:
    assert naming_factors([FAST, FAST.with_factors(threads=2)]) == ("threads",)
    assert naming_factors([FAST, FAST.with_factors(iterations=7)]) == ("iterations",)
