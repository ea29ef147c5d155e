# SPDX-License-Identifier: Apache-2.0
"""Options of rows that packages add: written like factors, checked like factors."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybench.case.factors import factors_of
from pybench.catalogue.catalogue import BUILT_IN
from pybench.catalogue.options import Option
from pybench.catalogue.workloads import Workload
from pybench.errors import PlanError, UsageError
from pybench.plan import Plan, load_plan
from pybench.plan.filter import parse_filter

DEEP = Workload(
    name="deep",
    label="Deep",
    meaning="depth",
    module="acme.deep",
    takes=("run",),
    model="none",
    yields=("latency_mean_ms",),
    options=(Option(name="acme.depth", kind="integer", default=2, minimum=1, maximum=9, meaning="how deep"),),
)
CATALOGUE = BUILT_IN.with_rows([DEEP])


def load(folder: Path, text: str, overrides: tuple[str, ...] = ()) -> Plan:
    path = folder / "plan.yaml"
    path.write_text(f"schema_version: 1\nname: test\n{text}")
    return load_plan(path, overrides, CATALOGUE)


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(PlanError) as raised:
        load(folder, text)
    return [problem.render("") for problem in raised.value.problems]


def test_an_option_is_a_list_a_zip_an_inclusion_and_an_exclusion(tmp_path: Path) -> None:
    plan = load(
        tmp_path,
        "matrix:\n"
        "  - {workload: deep, acme.depth: [1, 2, 3], exclude: {acme.depth: 3}, include: {acme.depth: 7}}\n"
        "  - {workload: deep, zip: {acme.depth: [4, 5], iterations: [7, 8]}}\n",
    )
    found = [(case.value("acme.depth"), case.iterations) for case in plan.cases]
    assert found == [(1, 100), (2, 100), (7, 100), (4, 7), (5, 8)]


def test_an_exclusion_sees_the_default_of_an_option(tmp_path: Path) -> None:
    plan = load(tmp_path, "matrix: [{workload: deep, threads: [1, 2], exclude: {acme.depth: 2, threads: 1}}]\n")
    assert [case.threads for case in plan.cases] == [2]


def test_a_default_reaches_the_cases_that_have_the_option(tmp_path: Path) -> None:
    plan = load(tmp_path, "defaults: {acme.depth: 5}\nmatrix: [{workload: [deep, noop]}]\n")
    assert [case.options for case in plan.cases] == [(("acme.depth", 5),), ()]


@pytest.mark.parametrize("entry", ["{workload: deep, acme.depth: 2}", "{workload: deep}"])
@pytest.mark.parametrize("path", ["matrix.0.acme.depth", "defaults.acme.depth", "matrix.0.zip.acme.depth"])
def test_an_option_is_set_from_the_command_line(tmp_path: Path, entry: str, path: str) -> None:
    is_zip, is_stated = "zip" in path, "acme" in entry
    if (is_zip or path.startswith("defaults")) and is_stated:
        entry = "{workload: deep, iterations: 7}"
    plan = load(tmp_path, f"matrix: [{entry}]\n", (f"{path}={[5] if is_zip else 5}",))
    assert [case.value("acme.depth") for case in plan.cases] == [5]


def test_a_key_with_a_dot_that_the_plan_has_is_one_step(tmp_path: Path) -> None:
    plan = load(tmp_path, "matrix: [{workload: deep, acme.depth: [1, 2]}]\n", ("matrix.0.acme.depth.1=9",))
    assert [case.value("acme.depth") for case in plan.cases] == [1, 9]


def test_cases_are_compared_and_selected_by_an_option(tmp_path: Path) -> None:
    plan = load(
        tmp_path,
        "matrix: [{workload: deep, acme.depth: [1, 4]}, {workload: noop}]\n"
        "criteria: {baseline: {acme.depth: 1}, accept: {speedup_min: 0.5}}\n",
    )
    assert plan.contrasts[0].baseline == {"acme.depth": 1}
    selects = parse_filter("acme.depth>=2", factors_of(CATALOGUE))
    assert [case.value("acme.depth") for case in plan.cases if selects(case)] == [4]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("matrix: [{workload: deep, acme.depth: 12}]\n", "`acme.depth` takes an integer from 1 to 9; not 12"),
        (
            "matrix: [{workload: deep, other.x: 1}]\n",
            "unknown key `other.x` (an option of a package; install",
        ),
        (  # which looks like `placement`
            "matrix: [{workload: deep, place.count: 1}]\n",
            "unknown key `place.count` (an option of a package; install the package that adds place.count",
        ),
        ("matrix: [{workload: deep, acme.deph: 1}]\n", "unknown key `acme.deph` (did you mean `acme.depth`?)"),
        (
            "matrix: [{workload: noop, acme.depth: 3}]\n",
            "`acme.depth` changes nothing in this entry (it is an option of deep)",
        ),
        (
            "matrix: [{workload: deep}]\ncriteria: {baseline: {acme.depth: 3}}\n",
            "no case has acme.depth=3 (the plan has 2)",
        ),
    ],
)
def test_what_is_wrong_with_an_option_is_said_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    (found,) = problems(tmp_path, text)
    assert said in found


def test_a_filter_of_an_unknown_option_is_told_no_factor() -> None:
    for name, hint in (("place.count", "factors: "), ("acme.deph", "did you mean `acme.depth`?")):
        with pytest.raises(UsageError) as raised:
            parse_filter(f"{name}=3", factors_of(CATALOGUE))
        assert str(raised.value.hint).startswith(hint)
