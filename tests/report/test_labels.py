# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pybench.case import Case
from pybench.report.labels import case_text, naming_factors, varying_factors

FAST = Case(workload="tokenize", path="rust", batch=8, iterations=1200, corpus_limit_bytes=6_000_000, threads=1)
FED = Case(
    workload="tokenize", path="rust", model="tinylm-small", runtime="torch", batch=4, corpus_limit_bytes=2_000_000
)


def test_a_label_leaves_out_what_tells_no_cases_apart() -> None:
    cases = [FAST, FAST.with_factors(path="hf"), FED]
    assert set(varying_factors(cases)) - set(naming_factors(cases)) == {"corpus_limit_bytes", "threads", "iterations"}
    assert len({case_text(case, naming_factors(cases)) for case in cases}) == 3


def test_a_label_keeps_what_alone_tells_two_cases_apart() -> None:
    assert naming_factors([FAST, FAST.with_factors(threads=2)]) == ("threads",)
    assert naming_factors([FAST, FAST.with_factors(iterations=7)]) == ("iterations",)
