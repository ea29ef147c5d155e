# SPDX-License-Identifier: Apache-2.0
"""A metric that a package adds is named wherever one of pybench's own can be: bounds, published values and curves."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.plugins.installation import Installation, ran

pytestmark = [pytest.mark.process, pytest.mark.slow]

PLAN = """\
schema_version: 1
name: sorts
repetitions: 3
defaults: {warmup_iterations: 1, iterations: 5, idle_window_s: 0, device: cpu}
matrix:
  - {workload: sort, sorting.count: [1000, 3000, 10000], threads: [1, 2]}
  - {workload: noop}
criteria:
  baseline: {threads: 1}
  accept: {sorted_numbers_per_s_ratio_min: 0.0001}
  reference:
    sorted_numbers_per_s: {value: 1.0e+6, source: a paper, where: {threads: 2, sorting.count: 1000}}
    sorted_numbers_per_s_ratio: {value: 1, source: a paper}
curves:
  - {over: sorting.count, metric: sorted_numbers_per_s}
  - {over: sorting.count, metric: sorted_numbers_per_s_ratio}
"""
RESULTS = "results/sorts"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    made = Installation.create(tmp_path_factory.mktemp("environment") / "venv")
    made.install("sorting")
    return made


@pytest.fixture(scope="module")
def campaign(installed: Installation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ran(installed, tmp_path_factory.mktemp("campaign"), PLAN)


def test_the_report_judges_draws_and_compares_it(campaign: Path, installed: Installation) -> None:
    assert installed.pybench("report", RESULTS, "--out", "page", cwd=campaign).returncode == 0
    published = _rows(campaign / "page", "published")
    assert [row["name"] for row in published] == ["sorted_numbers_per_s"] + ["sorted_numbers_per_s_ratio"] * 3
    verdicts = _rows(campaign / "page", "verdicts-1")
    assert [row["verdict"] for row in verdicts] == ["accepted"] * 3
    assert all(float(row["sorted_numbers_per_s_ratio_min"]) > 0 for row in verdicts)
    analysed = json.loads(installed.pybench("analyse", RESULTS, "--json", cwd=campaign).stdout)
    assert [(curve["metric"], curve["contrast"] is None, len(curve["lines"])) for curve in analysed["curves"]] == [
        ("sorted_numbers_per_s", True, 2),
        ("sorted_numbers_per_s", False, 1),
    ]
    page = (campaign / "page" / "index.html").read_text()
    assert "Numbers sorted ratio" in page


def test_without_the_package_the_report_is_the_same_and_can_be_replayed(
    campaign: Path, installed: Installation, bare: Installation
) -> None:
    for made, out in ((installed, "with"), (bare, "without")):
        assert made.pybench("report", RESULTS, "--out", out, cwd=campaign).returncode == 0
    files = {path.relative_to(campaign / "with"): path for path in (campaign / "with").rglob("*") if path.is_file()}
    assert len(files) > 10
    assert all((campaign / "without" / name).read_bytes() == path.read_bytes() for name, path in files.items())
    assert bare.pybench("publish", RESULTS, "--archive", "sorts.zip", cwd=campaign).returncode == 0
    replayed = bare.pybench("replay", "sorts.zip", cwd=campaign)
    assert "equal: all" in replayed.stdout, replayed.stderr


def test_a_part_of_the_campaign_without_its_cases_is_still_read(campaign: Path, installed: Installation) -> None:
    """None of the stored cases has the metric then, so its row is stored with the comparison."""
    ended = installed.pybench("run", "plan.yaml", "--filter", "workload=noop", "--out", "part", cwd=campaign)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert installed.pybench("report", "part", cwd=campaign).returncode == 0


def test_a_misspelt_name_is_told_the_right_one(campaign: Path, installed: Installation) -> None:
    (campaign / "wrong.yaml").write_text(PLAN.replace("_numbers_per_s", "_number_per_s"))
    said = installed.pybench("validate", "wrong.yaml", cwd=campaign).stderr
    for name in ("sorted_numbers_per_s_ratio_min", "sorted_numbers_per_s_ratio", "sorted_numbers_per_s"):
        assert f"did you mean `{name}`?" in said


def test_the_schema_for_editors_lists_it(campaign: Path, installed: Installation) -> None:
    schema = json.loads(installed.pybench("schema", cwd=campaign).stdout)["$defs"]
    assert "sorted_numbers_per_s_ratio_min" in schema["Accept"]["properties"]
    assert "sorted_numbers_per_s" in schema["References"]["properties"]
    assert "sorted_numbers_per_s" in schema["Curve"]["properties"]["metric"]["anyOf"][0]["enum"]


def _rows(page: Path, table: str) -> list[dict[str, str]]:
    with (page / "tables" / f"{table}.csv").open(newline="") as file:
        return list(csv.DictReader(file))
