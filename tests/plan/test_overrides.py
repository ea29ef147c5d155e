# SPDX-License-Identifier: Apache-2.0
"""`--set`: what it can reach, and what it says when it cannot."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pybench.plan import Plan

PLAN = """\
schema_version: 1
name: test
matrix:
  - &first {workload: noop, threads: [1, 2]}
  - {<<: *first, iterations: 5}
criteria: {baseline: {threads: 1}}
"""


def test_a_value_in_a_list_can_be_set(load: Callable[..., Plan]) -> None:
    plan = load(PLAN, ("matrix.0.threads=[1, 7]",), whole=True)
    assert [case.threads for case in plan.cases] == [1, 7, 1, 2]


def test_an_anchor_is_changed_where_the_path_leads_and_nowhere_else(load: Callable[..., Plan]) -> None:
    plan = load(PLAN, ("matrix.1.threads=1", "matrix.1.iterations=9"), whole=True)
    assert [(case.threads, case.iterations) for case in plan.cases] == [(1, 100), (2, 100), (1, 9)]


def test_a_key_that_the_plan_does_not_have_yet_is_added(load: Callable[..., Plan]) -> None:
    plan = load(PLAN, ("defaults.warmup_iterations=3", "repetitions=2", "description=a text"), whole=True)
    assert {case.warmup_iterations for case in plan.cases} == {3}
    assert (plan.repetitions.usual, plan.description) == (2, "a text")


def test_overrides_apply_in_their_order(load: Callable[..., Plan]) -> None:
    assert load(PLAN, ("seed=1", "seed=2"), whole=True).seed == 2


def test_the_first_override_of_an_empty_key_makes_its_mapping(load: Callable[..., Plan]) -> None:
    plan = load(PLAN + "defaults:\n", ("defaults.device=cpu",), whole=True)
    assert {case.device for case in plan.cases} == {"cpu"}


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("matrix.0.thread=1", "unknown key `thread` (did you mean `threads`?)"),
        ("defalts.iterations=4", "unknown key `defalts` (did you mean `defaults`?)"),
        ("matrix.2.threads=1", "`matrix` is a list, it has no `2` (it has 2: write matrix.0 to matrix.1)"),
        ("matrix.first.threads=1", "`matrix` is a list, it has no `first`"),
        ("name.first=1", "`name` is a value, it has no `first`"),
        ("criteria.accept.0.speedup_min=1", "the plan has no `criteria.accept.0.speedup_min`"),
        ("a..b=1", "the plan has no `a..b`"),
        ("seed", "has no value"),
        ("=1", "has no path"),
        ("seed=", "`seed` takes an integer from 0 to 4294967295; not null"),
        ("seed=[", "not YAML"),
        ("seed=!!int 3", "tags such as"),
        ("matrix.0.threads=0", "`threads` takes an integer from 1"),
        ("matrix.0.model=x.onnx", "`model` has no meaning for workload noop"),
        ("criteria.baseline.threads=3", "no case has threads=3 (the plan has 1, 2)"),
    ],
)
def test_an_override_that_cannot_be_is_named(problems: Callable[..., list[str]], override: str, expected: str) -> None:
    found = problems(PLAN, (override,), whole=True)
    assert len(found) == 1, found
    assert found[0].startswith(f" --set {override}: {expected}"), found


def test_all_wrong_overrides_are_named_at_once(problems: Callable[..., list[str]]) -> None:
    assert len(problems(PLAN, ("seed=x", "matrix.9=1", "nothing"), whole=True)) == 3
