# SPDX-License-Identifier: Apache-2.0
"""A package that cannot be used: `doctor` says why, and plans that do not name its rows are read as before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.plugins.installation import Installation

pytestmark = [pytest.mark.process]

PLAN = """\
schema_version: 1
name: mixed
repetitions: 1
matrix:
  - {workload: sort, sorting.count: [1000, 10000]}
  - {workload: infer, model: mlp, runtime: torch}
"""
REMOVE = "or remove the package: pip uninstall acme-models"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """A package that works, and one that fails to import."""
    made = Installation.create(tmp_path_factory.mktemp("environment") / "venv")
    made.install("sorting")
    made.install("models", rows=("from pybench.catalogue.models", "from pybench.catalogue.modules"))
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "plan.yaml").write_text(PLAN)
    return tmp_path


def test_doctor_lists_packages_with_their_rows_and_the_reason_of_a_broken_one(
    installed: Installation, folder: Path
) -> None:
    ended = installed.pybench("doctor", cwd=folder)
    assert ended.returncode == 0, ended.stderr
    lines = [" ".join(line.split()) for line in ended.stdout.splitlines()]
    assert "yes package acme-sorting 0.1 adds workload sort, metric sorted_numbers_per_s, option sorting.count" in lines
    (broken,) = [index for index, line in enumerate(lines) if line.startswith("no package acme-models 0.1 cannot be")]
    assert "ModuleNotFoundError: No module named 'pybench.catalogue.modules'" in lines[broken]
    assert lines[broken + 1] == f"-> repair it; {REMOVE}"


def test_a_plan_without_its_rows_is_read_and_schema_warns(installed: Installation, folder: Path) -> None:
    ended = installed.pybench("validate", "plan.yaml", cwd=folder)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("mixed: 3 cases, 1 repetition")
    printed = installed.pybench("schema", cwd=folder)
    assert json.loads(printed.stdout)["title"] == "pybench plan"
    assert printed.stderr.startswith("warning: the installed package acme-models cannot be imported")


def test_a_plan_with_its_rows_is_one_error_whose_one_hint_is_to_repair_the_package(
    installed: Installation, folder: Path
) -> None:
    ended = installed.pybench("validate", "plan.yaml", "--set", "matrix.1.model=two-layers", cwd=folder)
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    what, hint = line.split(" (", 1)
    assert "no model and no file is called two-layers" in what
    assert hint.startswith("the installed package acme-models cannot be imported: ModuleNotFoundError")
    assert hint.endswith(f"so its rows are left out; repair it; {REMOVE})")


def test_an_option_of_a_broken_package_is_told_the_package_although_a_factor_looks_like_it(
    installed: Installation, folder: Path
) -> None:
    ended = installed.pybench("validate", "plan.yaml", "--set", "matrix.1={workload: noop, place.count: 1}", cwd=folder)
    assert ended.returncode == 2
    assert "unknown key `place.count` (an option of a package; the installed package acme-models cannot" in ended.stderr


@pytest.mark.parametrize(
    ("override", "hint"),
    [
        ("matrix.1.modell=mlp", "unknown key `modell` (did you mean `model`?)"),
        ("matrix.1.model=mlp.onnx", "(paths are relative to the plan's folder, .)"),
    ],
)
def test_an_error_that_no_row_would_mend_does_not_name_the_package(
    installed: Installation, folder: Path, override: str, hint: str
) -> None:
    ended = installed.pybench("validate", "plan.yaml", "--set", override, cwd=folder)
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert line.endswith(hint)


def test_a_package_whose_rows_are_known_is_named_for_these_alone(folder: Path, tmp_path: Path) -> None:
    made = Installation.create(tmp_path / "venv")
    made.install("sorting", rows=('name="sorted_numbers_per_s"', 'name="sorted_per_s"'))
    (folder / "plan.yaml").write_text(PLAN.replace("model: mlp", "model: two-layers"))
    ended = made.pybench("validate", "plan.yaml", cwd=folder)
    assert ended.returncode == 2
    workload, option, model = ended.stderr.splitlines()
    for line in (workload, option):
        assert "the installed package acme-sorting adds the workload sort, which yields sorted_numbers_per_s" in line
        assert "install the package" not in line
    assert "install the package that adds two-layers to pybench" in model
    assert "acme-sorting" not in model


def test_a_name_of_pybenchs_own_is_refused_only_where_a_plan_uses_it(
    installed: Installation, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    taking = Installation.create(tmp_path_factory.mktemp("taking") / "venv")
    taking.install("models", rows=('name="two-layers"', 'name="mlp"'))
    taking.install("sorting")
    ended = taking.pybench("validate", "plan.yaml", cwd=folder)
    assert ended.returncode == 2
    assert ended.stderr.splitlines() == [
        "error: the installed package acme-models adds the model mlp, which pybench has",
        f"  hint: rename its row, as in models-mlp; {REMOVE}",
    ]
    other = taking.pybench("validate", "plan.yaml", "--set", "matrix.1.model=vgg16", cwd=folder)
    assert other.returncode == 0, other.stderr
