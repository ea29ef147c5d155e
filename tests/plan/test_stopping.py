# SPDX-License-Identifier: Apache-2.0
"""Plans that stop when they are decided: how they are read, stored and refused."""

from __future__ import annotations

from collections.abc import Callable

import jsonschema
import pytest

from pybench.campaign.resolved_plan import parse_resolved_plan
from pybench.case.repetitions import StoppingRule
from pybench.plan import Plan, plan_schema, resolve

Load = Callable[..., Plan]
Problems = Callable[..., list[str]]

PLAN = """\
schema_version: 1
name: until
repetitions: {until: decided, at_most: 60, within_s: 1200}
matrix:
  - {workload: infer, model: digits-cnn, runtime: onnxruntime, precision: [fp32, fp16]}
criteria: {baseline: {precision: fp32}, accept: {speedup_min: 1.1}}
"""
RULE = "{until: decided, at_most: 60, within_s: 1200}"


def test_a_plan_says_until_when_and_how_much_at_most(load: Load) -> None:
    plan = load(PLAN, whole=True)
    assert plan.repetitions.rule == StoppingRule(60, 1200.0)
    content = resolve(plan, plan.cases)
    assert content["repetitions"] == 60  # what readers that know no rule take for the number of blocks
    assert parse_resolved_plan(content).repetitions == plan.repetitions
    fixed = load(PLAN.replace(RULE, "60"), whole=True)
    assert "stopping" not in resolve(fixed, fixed.cases)
    assert [case.id for case in fixed.cases] == [case.id for case in plan.cases]


def test_a_number_on_the_command_line_replaces_the_rule(load: Load) -> None:
    assert load(PLAN, ["repetitions=4"], whole=True).repetitions.rule is None


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("{until: bored, at_most: 60}", "3:22: `until` takes decided; not 'bored'"),
        ("{until: decided}", "3:14: `at_most` is missing (the largest number of blocks)"),
        ("{at_most: 9}", "3:14: `until` is missing"),
        ("{until: decided, at_most: 2}", "3:40: `at_most` takes an integer from 3 to 500; not 2"),
        ("{until: decided, at_most: 501}", "3:40: `at_most` takes an integer from 3 to 500; not 501"),
        ("{until: decided, atmost: 9}", "3:31: unknown key `atmost` (did you mean `at_most`?)"),
        (
            "{until: decided, at_most: 9, within_s: 20 min}",
            "3:53: `within_s` takes a number of seconds above 0; not '20 min' (as in `within_s: 1200` for 20 minutes)",
        ),
        ("{until: decided, at_most: 9, within_s: .inf}", "3:53: `within_s` takes a number of seconds above 0"),
        (
            "decided",
            "3:14: `repetitions` takes an integer from 1 to 100000; not 'decided' (or {until: decided, at_most",
        ),
    ],
)
def test_a_rule_that_does_not_fit_is_named_with_its_place(problems: Problems, rule: str, expected: str) -> None:
    found = problems(PLAN.replace(RULE, rule), whole=True)
    assert any(one.startswith(expected) for one in found), found


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            ("precision: [fp32, fp16]}", "precision: [fp32, fp16], repetitions: {until: decided, at_most: 9}}"),
            "5:102: `repetitions` of an entry takes a number (all cases stop together: write the mapping at the top",
        ),
        (
            ("precision: [fp32, fp16]}", "precision: [fp32, fp16], repetitions: 4}"),
            "5:89: an entry has a number of `repetitions`, and the plan has `until: decided` (remove one of them",
        ),
        (
            ("criteria: {baseline: {precision: fp32}, accept: {speedup_min: 1.1}}\n", ""),
            "3:15: `until: decided` requires `criteria`, which say what is to be decided",
        ),
        (
            (", precision: [fp32, fp16]}", ", images: digits, precision: [fp32, fp16]}"),
            "3:15: `until: decided` has nothing to decide: no comparison has an interval over blocks",
        ),
    ],
)
def test_what_keeps_a_plan_from_stopping_is_named(problems: Problems, change: tuple[str, str], expected: str) -> None:
    text = PLAN.replace(*change)
    if "images" in text:
        text = text.replace("infer", "accuracy").replace("speedup_min: 1.1", "top1_delta_pp_min: -1.0")
    found = problems(text, whole=True)
    assert any(one.startswith(expected) for one in found), found


def test_the_schema_of_editors_takes_what_pybench_takes() -> None:
    schema = plan_schema()["properties"]["repetitions"]  # type: ignore[index, call-overload]
    validator = jsonschema.Draft202012Validator({**schema, "$defs": plan_schema()["$defs"]})
    good = [5, {"until": "decided", "at_most": 60}, {"until": "decided", "at_most": 3, "within_s": 0.5}]
    bad = [0, "decided", {"until": "decided"}, {"until": "decided", "at_most": 501}, {"until": "x", "at_most": 9}]
    assert [validator.is_valid(one) for one in good + bad] == [True] * 3 + [False] * 5
