# SPDX-License-Identifier: Apache-2.0
"""`environments` of a plan: what it defines, what cases name, and every fault at its place."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pybench.campaign.environments import PlannedEnvironment
from pybench.campaign.resolved_plan import parse_resolved_plan
from pybench.case import Case
from pybench.plan import Plan, resolve

Load = Callable[..., Plan]
Problems = Callable[..., list[str]]
HEAD = "schema_version: 1\nname: test\n"
MATRIX = "matrix: [{workload: noop, environment: [old, new]}]\n"
HERE = sys.executable
DIGEST = f"sha256:{'0a' * 32}"


def interpreter(path: str | Path) -> PlannedEnvironment:
    return PlannedEnvironment(python=str(path))


def defining(text: str, rest: str = MATRIX) -> str:
    return f"{HEAD}environments:\n{text}{rest}"


def test_a_path_stays_out_of_the_case_and_is_kept_with_the_campaign(load: Load) -> None:
    plan = load(defining(f"  old: {{python: {HERE}}}\n  new: {{python: {HERE}}}\n"), whole=True)
    assert [case.environment for case in plan.cases] == ["old", "new"]
    assert plan.cases[0] == Case(workload="noop", environment="old")
    assert plan.cases[0].chosen() == {"workload": "noop", "environment": "old"}
    assert parse_resolved_plan(resolve(plan, plan.cases)).environments == {
        "old": interpreter(HERE),
        "new": interpreter(HERE),
    }
    assert parse_resolved_plan(resolve(plan, plan.cases[:1])).environments == {"old": interpreter(HERE)}


def test_a_plan_without_environments_means_what_it_meant(load: Load) -> None:
    plan = load("  - {workload: noop, environment: null}\n")
    assert plan.cases[0].id == Case(workload="noop").id
    assert "environments" not in resolve(plan, plan.cases)


def test_paths_are_relative_to_the_plan_or_to_the_home(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("home", "near"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "python").symlink_to(HERE)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    plan = load(defining("  old: {python: ~/python}\n  new: {python: near/python}\n"), whole=True)
    assert plan.environments == {
        "old": interpreter(tmp_path / "home/python"),
        "new": interpreter(tmp_path / "near/python"),
    }


@pytest.mark.parametrize(
    ("defined", "problem"),
    [
        ("  old: {python: .}\n", "4:17: environment old: . is a folder (give the interpreter in it)"),
        ("  old: {python: plan.yaml}\n", "4:17: environment old: plan.yaml cannot be executed (give the path"),
        ("  old: {python: 3.11}\n", "4:17: `python` takes the path of an interpreter; not 3.11 (as in"),
        ("  old: {pyton: x}\n", "4:9: unknown key `pyton` (did you mean `python`?)"),
        ("  old: {}\n", "4:8: environment old takes `python` or `image`; not nothing (`python`: the path of an"),
        (
            f"  old: {{python: x, image: x@{DIGEST}}}\n",
            "4:8: environment old takes `python` or `image`; not `python` and",
        ),
        ("  old: {image: a.sif@sha256:12}\n", "4:16: environment old: sha256:12 is no digest (write sha256: and 64"),
        (f"  old: {{image: '@{DIGEST}'}}\n", f"4:16: environment old: @{DIGEST} names no image (as in images/"),
        (f"  old: {{image: 'docker://@{DIGEST}'}}\n", f"4:16: environment old: docker://@{DIGEST} names no image"),
        (f"  old: {{image: 'docker://os@{DIGEST}'}}\n", "4:16: environment old: docker://os has neither a host nor"),
        ("  old: {image: [a.sif]}\n", "4:16: `image` takes a container image with its digest; not a list (as in"),
        ("  old: /usr/bin/python\n", "4:8: environment old takes a mapping; not '/usr/bin/python' (as in {python:"),
        ("  an old one: {python: x}\n", "4:3: an environment cannot be called 'an old one' (a name has at most 64"),
    ],
)
def test_what_is_wrong_with_a_definition_is_said_at_its_place(problems: Problems, defined: str, problem: str) -> None:
    found = problems(defining(defined), whole=True)
    assert [one for one in found if one.startswith("4:")] == [one for one in found if one.startswith(problem)], found
    assert any(one.startswith(problem) for one in found), found


def test_a_plan_is_read_where_its_interpreters_are_not(load: Load, tmp_path: Path) -> None:
    plan = load(defining("  old: {python: /gpu-server/python}\n  new: {python: ~nobody-here/python}\n"), whole=True)
    assert plan.environments == {
        "old": interpreter("/gpu-server/python"),
        "new": interpreter(tmp_path / "~nobody-here/python"),
    }


@pytest.mark.parametrize(
    ("image", "command"),
    [
        ("stacks/old.sif", "pybench doctor --container stacks/old.sif"),
        ("nvcr.io/nvidia/pytorch:25.01", "skopeo inspect --format '{{.Digest}}' docker://nvcr.io/nvidia/pytorch:25.01"),
    ],
)
def test_an_image_without_digest_is_an_error_that_says_how_to_get_it(
    problems: Problems, image: str, command: str
) -> None:
    what = f"4:16: environment old: the image {image} is named without its digest"
    (found,) = [one for one in problems(defining(f"  old: {{image: {image}}}\n"), whole=True) if one.startswith("4:")]
    assert found == f"{what} (`{command}` prints it; write {image}@sha256:...)"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("stacks/old.sif", "{folder}/stacks/old.sif"),
        ("./stacks.example/old.sif", "{folder}/stacks.example/old.sif"),
        ("there.example/old.sif", "{folder}/there.example/old.sif"),
        ("/gpu-server/old.oci.tar", "/gpu-server/old.oci.tar"),
        ("registry.example/team/old", "docker://registry.example/team/old"),
        ("docker://old/stack", "docker://old/stack"),
        ("localhost:5000/old", "docker://localhost:5000/old"),
    ],
)
def test_an_image_is_a_file_unless_its_name_begins_with_a_host(
    load: Load, tmp_path: Path, written: str, meant: str
) -> None:
    (tmp_path / "there.example").mkdir()
    (tmp_path / "there.example/old.sif").touch()
    plan = load(defining(f"  old: {{image: {written}@{DIGEST}}}\n  new: {{python: {HERE}}}\n"), whole=True)
    image = f"{meant.format(folder=tmp_path)}@{DIGEST}"
    assert plan.environments["old"] == PlannedEnvironment(image=image)
    assert (plan.environments["old"].path is None) is meant.startswith("docker://")
    assert parse_resolved_plan(resolve(plan, plan.cases)).environments == plan.environments
    assert plan.cases[0] == Case(workload="noop", environment="old")


def test_a_virtual_environment_is_named_by_its_interpreter(problems: Problems, tmp_path: Path) -> None:
    (tmp_path / "venv/bin").mkdir(parents=True)
    (tmp_path / "venv/bin/python").symlink_to(HERE)
    assert "4:17: environment old: venv/ is a folder (write venv/bin/python)" in problems(
        defining("  old: {python: venv/}\n"), whole=True
    )


def test_a_list_is_no_definition(problems: Problems) -> None:
    found = problems(f"{HEAD}environments: [old]\nmatrix: [{{workload: noop}}]\n", whole=True)
    assert found[0].startswith("3:15: `environments` takes a mapping of names; not ")


def test_a_name_that_the_plan_does_not_define_is_said_once_for_each_place(problems: Problems) -> None:
    text = "matrix: [{workload: noop, environment: [old, nwe], threads: [1, 2]}]\n"
    defined = f"  old: {{python: {HERE}}}\n  new: {{python: {HERE}}}\n"
    said = "6:46: `environment`: the plan defines no environment nwe (did you mean `new`?)"
    assert [one for one in problems(defining(defined, text), whole=True) if "nwe" in one] == [said]
    in_defaults = "defaults: {environment: odd}\nmatrix: [{workload: noop}]\n"
    (found,) = problems(HEAD + in_defaults, whole=True)
    assert found == (
        "3:25: `environment`: the plan defines no environment odd "
        "(as in `environments: {odd: {python: /opt/envs/odd/bin/python}}`)"
    )


def test_an_environment_that_no_case_has_is_a_mistake_unless_an_override_took_it(
    problems: Problems, load: Load
) -> None:
    text = defining(f"  old: {{python: {HERE}}}\n  new: {{python: {HERE}}}\n", "matrix: [{workload: noop}]\n")
    hint = "(write it as a value of `environment` in `matrix`, or remove it)"
    assert problems(text, whole=True) == [
        f"4:3: no case has the environment old {hint}",
        f"5:3: no case has the environment new {hint}",
    ]
    assert load(text, ["seed=3"], whole=True).cases
