# SPDX-License-Identifier: Apache-2.0
"""Whatever a plan has become, it is loaded or refused with PlanError."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from pybench.case.factors import FACTORS
from pybench.catalogue.criteria import CRITERIA
from pybench.catalogue.workloads import WORKLOADS
from pybench.document import parse_text
from pybench.errors import PlanError, Problem
from pybench.plan import load_plan, resolve

pytestmark = pytest.mark.slow  # expands hundreds of plans

ROOT = Path(__file__).parents[2]
SEEDS = [path.read_bytes() for path in (ROOT / "plans/tinylm.yaml", ROOT / "pybench/plan/starter.yaml")]
SIGNS = [
    b"\t",
    b"\n",
    b" ",
    b"- ",
    b": ",
    b"[",
    b"]",
    b"{",
    b"}",
    b"&a ",
    b"*a",
    b"<<: *a",
    b"!!map ",
    b"'",
    b'"',
    b"|",
    b"\x00",
    b"\xff",
]
WORDS = [*FACTORS, *CRITERIA, "matrix", "zip", "include", "exclude", "data", "criteria", "baseline", "where", "accept"]
QUICK = settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])


@functools.cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="pybench-plans-"))


def is_loaded_or_refused(source: bytes, overrides: tuple[str, ...] = ()) -> None:
    path = _folder() / "plan.yaml"
    path.write_bytes(source)
    found: tuple[Problem, ...] = ()
    try:
        plan = load_plan(path, overrides)
        assert resolve(plan, plan.cases)["cases"]
    except PlanError as error:
        found = error.problems or (Problem(""),)
    lines = source.count(b"\n") + source.count(b"\r") + 2
    assert all(problem.what for problem in found)
    assert all(problem.line is None or 1 <= problem.line <= lines for problem in found)


@QUICK
@given(data=st.data())
def test_a_plan_with_changed_bytes_is_loaded_or_refused(data: st.DataObject) -> None:
    source = data.draw(st.sampled_from(SEEDS))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(source)))
        end = min(len(source), start + data.draw(st.sampled_from([0, 0, 1, 5, 80])))
        source = source[:start] + data.draw(st.sampled_from(SIGNS) | st.binary(max_size=3)) + source[end:]
    is_loaded_or_refused(source)


@QUICK
@given(source=st.sampled_from(SEEDS), end=st.integers(0, 3000))
def test_a_truncated_plan_is_loaded_or_refused(source: bytes, end: int) -> None:
    is_loaded_or_refused(source[:end])


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 300), st.floats(), st.sampled_from(WORDS), st.text(max_size=5),
    st.sampled_from([*WORKLOADS, "resnet50", "tinylm-small", "torch", "int8", "digits"]),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=8,
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for step, inner in steps for place in _places(inner, (*path, step)))]


@QUICK
@given(data=st.data())
def test_a_plan_with_changed_values_is_loaded_or_refused(data: st.DataObject) -> None:
    plan = parse_text(data.draw(st.sampled_from(SEEDS)).decode(), "p")[0].plain()
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(_places(plan)[1:]))
        parent = functools.reduce(lambda value, step: value[step], path[:-1], plan)
        if isinstance(parent, dict) and data.draw(st.booleans()):
            parent[data.draw(st.sampled_from(WORDS))] = data.draw(VALUES)
        else:
            parent[path[-1]] = data.draw(VALUES)
    target = _folder() / "written.yaml"
    YAML(typ="safe", pure=True).dump(plan, target)
    is_loaded_or_refused(target.read_bytes())


@QUICK
@given(
    st.lists(
        st.sampled_from(["matrix", "0", "1", "9", "batch", "criteria", "defaults", "accept", "", "zip"]), max_size=4
    ),
    st.sampled_from(["1", "[1, 2]", "", "{", "*a", "x", "{a: 1}", "null", "!!set {}"]),
)
def test_any_override_is_applied_or_refused(steps: list[str], value: str) -> None:
    is_loaded_or_refused(SEEDS[1], (".".join(steps) + "=" + value,))
