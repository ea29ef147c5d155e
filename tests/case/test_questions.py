# SPDX-License-Identifier: Apache-2.0
"""What blocks of runs can decide: bounds, headlines without bounds, and nothing about accuracies."""

from __future__ import annotations

from pybench.case import Case, contrasts
from pybench.case.pairing import pairs
from pybench.case.questions import count_questions, questions_about

FP32 = Case(workload="infer", model="digits-cnn", runtime="onnxruntime")
INT8 = FP32.with_factors(precision="int8")
SCORED = [case.with_factors(workload="accuracy") for case in (FP32, INT8)]
BASELINE = {"baseline": {"precision": "fp32"}}


def test_each_bound_asks_one_question_of_each_pair_that_yields_its_metric() -> None:
    (contrast,) = contrasts.parse({**BASELINE, "accept": {"speedup_min": 1.1, "top1_delta_pp_min": -1.0}})
    cases = [FP32, INT8, *SCORED]
    asked = [questions_about(pair, contrast) for pair in pairs(cases, contrast)]
    assert [[one.name for one in each if one is not None] for each in asked] == [["speedup_min"], []]
    assert count_questions(cases, [contrast]) == 1


def test_without_bounds_the_headline_is_asked_about() -> None:
    (contrast,) = contrasts.parse(BASELINE)
    (pair,) = pairs([FP32, INT8], contrast)
    assert questions_about(pair, contrast) == [None]
    assert count_questions(SCORED, [contrast]) == 0  # their units are in each run
