# SPDX-License-Identifier: Apache-2.0
"""A workload, a runtime and a model of three packages outside pybench, next to built-in ones: from plan to replay."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import pybench
from tests.plugins.installation import Installation, ran
from tests.support.folders import contents_of

pytestmark = [pytest.mark.process, pytest.mark.slow]

PLAN = """\
schema_version: 1
name: mixed
seed: 1
repetitions: 1
defaults: {warmup_iterations: 1, iterations: 5, idle_window_s: 0, device: cpu, threads: 1}
matrix:
  - {workload: sort, sorting.count: [1000, 10000]}
  - workload: infer
    model: [two-layers, mlp]
    runtime: [torch, torchscript]
  - {workload: infer, model: two-layers, runtime: onnxruntime}
criteria:
  - {baseline: {runtime: torch}, accept: {speedup_min: 0.001}}
"""
ALL = ("sorting", "scripted", "models")
RESULTS = "results/mixed"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    made = Installation.create(tmp_path_factory.mktemp("environment") / "venv")
    for name in ALL:
        made.install(name)
    return made


@pytest.fixture(scope="module")
def campaign(installed: Installation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the plan and the campaign that `run` made of it."""
    return ran(installed, tmp_path_factory.mktemp("campaign"), PLAN)


def test_a_plan_names_rows_of_packages_next_to_built_in_ones(installed: Installation, campaign: Path) -> None:
    ended = installed.pybench("validate", "plan.yaml", cwd=campaign)
    assert ended.stdout.startswith("mixed: 7 cases, 1 repetition"), ended.stdout + ended.stderr
    dry = installed.pybench("run", "plan.yaml", "--out", "elsewhere", "--dry-run", "--json", cwd=campaign)
    found = json.loads(dry.stdout)
    assert [case["unsupported"] for case in found["cases"]] == [None] * 7
    assert len(found["artefacts"]) == 1, "the model's ONNX file"


def test_each_run_stores_the_rows_of_its_case_and_what_they_came_from(campaign: Path) -> None:
    runs = sorted((campaign / RESULTS / "runs").glob("*/*/*/case.json"))
    assert len(runs) == 7
    for path in runs:
        case = json.loads(path.read_text())["case"]
        expected = {"sort": "acme-sorting", "torchscript": "acme-scripted", "two-layers": "acme-models"}
        used = {owner for name, owner in expected.items() if name in case.values()}
        assert {row["plugin"]["distribution"] for row in case.get("rows", ())} == used
        packages = json.loads(path.with_name("environment.json").read_text())["packages"]
        assert {name for name in packages if "acme" in name} == used
        assert all(packages[name].startswith("0.1 (code ") for name in used)


def test_metrics_of_a_package_are_measured_and_reported(campaign: Path, installed: Installation) -> None:
    summaries = [json.loads(path.read_text()) for path in (campaign / RESULTS / "runs").glob("*/*/*/summary.json")]
    found = [one["metrics"]["sorted_numbers_per_s"] for one in summaries if "sorted_numbers_per_s" in one["metrics"]]
    assert [one["unit"] for one in found] == ["numbers/s"] * 2
    assert all(one["value"] > 1000 for one in found)
    assert installed.pybench("report", RESULTS, cwd=campaign).returncode == 0
    page = (campaign / RESULTS / "report" / "index.html").read_text()
    assert "Numbers sorted" in page
    assert "torchscript" in page
    table = (campaign / RESULTS / "report" / "tables" / "cases-sort.csv").read_text().splitlines()
    assert table[0].startswith("sorting.count,")
    assert [line.split(",")[0] for line in table[1:]] == ["1000", "10000"]
    compiled = [one["metrics"]["compile_s"]["value"] for one in summaries if "compile_s" in one["metrics"]]
    assert len(compiled) >= 2


def test_a_campaign_is_read_published_and_replayed_without_the_packages(
    installed: Installation, bare: Installation, campaign: Path
) -> None:
    for made, out in ((installed, "with"), (bare, "without")):
        assert made.pybench("report", RESULTS, "--out", out, cwd=campaign).returncode == 0
    assert contents_of(campaign / "with") == contents_of(campaign / "without")
    for command in ("status", "check", "analyse"):
        ended = bare.pybench(command, RESULTS, cwd=campaign)
        assert ended.returncode == 0, ended.stderr
    published = bare.pybench("publish", RESULTS, "--archive", "mixed.zip", cwd=campaign)
    assert published.returncode == 0, published.stderr
    replayed = bare.pybench("replay", "mixed.zip", cwd=campaign)
    assert replayed.returncode == 0, replayed.stderr
    assert "equal: all" in replayed.stdout


def test_a_missing_package_is_told_from_a_missing_file(bare: Installation, campaign: Path) -> None:
    ended = bare.pybench("validate", "plan.yaml", cwd=campaign)
    assert ended.returncode == 2
    lines = ended.stderr.splitlines()
    assert "install the package that adds sort to pybench" in lines[0]
    assert "install the package that adds sorting.count to pybench" in lines[1]
    assert "no model and no file is called two-layers" in lines[2]
    assert "install the package that adds two-layers to pybench" in lines[2]
    assert "install the package that adds torchscript to pybench" in lines[3]
    changed = ("--set", "matrix.1.model=two-layers.onnx")
    named = bare.pybench("validate", "plan.yaml", *changed, cwd=campaign).stderr
    assert "no such file: two-layers.onnx" in named
    assert "adds two-layers.onnx" not in named


def test_where_a_package_is_missing_its_cases_are_unsupported(bare: Installation, campaign: Path) -> None:
    """The stored plan has the rows, so `run DIR` works on a machine, or in an image, that lacks the packages."""
    taken = campaign / "taken"
    shutil.copytree(campaign / RESULTS, taken)
    shutil.rmtree(taken / "runs")
    ended = bare.pybench("run", "taken", "--json", cwd=campaign)
    assert json.loads(ended.stdout)["outcomes"] == {"unsupported": 6, "ok": 1}, ended.stderr
    records = [json.loads(path.read_text()) for path in (taken / "runs").glob("*/*/*/run.json")]
    reasons = {record["reason"]: record["detail"] for record in records if record["outcome"] == "unsupported"}
    assert set(reasons) == {"no_plugin"}
    assert "install it" in reasons["no_plugin"]


def test_a_frame_has_a_column_for_each_option(campaign: Path) -> None:
    frame = pybench.load(campaign / RESULTS)
    found = frame.select("workload", "sorting.count").unique().rows()
    assert sorted(found, key=str) == [("infer", None), ("sort", 1000), ("sort", 10000)]
