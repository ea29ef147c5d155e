# SPDX-License-Identifier: Apache-2.0
"""A package that changes: in a campaign it is refused, and what was made of its former code is made again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.plugins.installation import Installation
from tests.support.folders import contents_of

pytestmark = [pytest.mark.process, pytest.mark.slow]

PLAN = """\
schema_version: 1
name: wide
seed: 1
repetitions: 2
defaults: {warmup_iterations: 1, iterations: 5, idle_window_s: 0, device: cpu, threads: 1}
matrix:
  - {workload: infer, model: two-layers, runtime: [torch, onnxruntime]}
"""
WIDER = {"two_layers": ("WIDTH = 32", "WIDTH = 512")}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    made = Installation.create(tmp_path_factory.mktemp("environment") / "venv")
    made.install("models")
    return made


@pytest.fixture(scope="module")
def campaigns(installed: Installation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `old`, of which one block is done before the package changes, and `new`, all after it."""
    folder = tmp_path_factory.mktemp("campaigns")
    (folder / "plan.yaml").write_text(PLAN)
    begun = installed.pybench("run", "plan.yaml", "--out", "old", "--shard", "1/2", cwd=folder)
    assert begun.returncode == 0, begun.stderr
    installed.install("models", version="0.2", **WIDER)
    done = installed.pybench("run", "plan.yaml", "--out", "new", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("source", [("plan.yaml", "--out", "old"), ("old",)])
def test_a_campaign_does_not_continue_with_another_version(
    installed: Installation, campaigns: Path, source: tuple[str, ...]
) -> None:
    before = contents_of(campaigns / "old")
    ended = installed.pybench("run", *source, cwd=campaigns)
    assert ended.returncode == 2
    assert "acme-models (0.1, sha256 " in ended.stderr
    assert ") has changed since this campaign began: it is 0.2, sha256 " in ended.stderr
    assert "hint: choose another folder with --out, or install the former one" in ended.stderr
    assert contents_of(campaigns / "old") == before


def test_what_is_made_of_a_model_is_made_of_its_code(campaigns: Path) -> None:
    """torch and onnxruntime run the same network: 16 * 32 + 32 + 32 * 4 + 4 parameters, then sixteen times as wide."""
    sizes = {name: _model_bytes(campaigns / name) for name in ("old", "new")}
    assert sizes["old"]["torch"] == 4 * (16 * 32 + 32 + 32 * 4 + 4)
    assert sizes["new"]["torch"] == 4 * (16 * 512 + 512 + 512 * 4 + 4)
    assert sizes["old"]["onnxruntime"] < 2 * sizes["old"]["torch"]
    assert sizes["new"]["onnxruntime"] > sizes["new"]["torch"]
    made = {name: {path.name for path in (campaigns / name / "artefacts").iterdir()} for name in ("old", "new")}
    assert made["old"].isdisjoint(made["new"])


def test_two_versions_are_compared_and_the_difference_is_named(installed: Installation, campaigns: Path) -> None:
    ended = installed.pybench("compare", "old", "new", "--tolerance", "1000", cwd=campaigns)
    assert ended.returncode == 0, ended.stderr
    first = ended.stdout[: ended.stdout.index("Changes from A to B")]
    assert "acme-models" in first
    assert "0.1 (code " in first
    assert "0.2 (code " in first
    assert "Model size" in ended.stdout


def test_a_package_that_changes_under_a_worker_is_refused(
    installed: Installation, campaigns: Path, tmp_path: Path
) -> None:
    """The runner has asked this machine, then the code changes: no run is stored as one of the campaign."""
    from pybench.campaign.directory import CampaignDirectory
    from pybench.campaign.resolved_plan import read_resolved_plan

    case = read_resolved_plan(CampaignDirectory(campaigns / "new")).cases[0]
    (plugin,) = case.plugins()
    assert plugin.version == "0.2"
    stored = json.loads(next((campaigns / "new" / "runs" / case.id).glob("*/*/case.json")).read_text())
    stored["case"]["rows"][0]["plugin"]["sha256"] = "0" * 64
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "case.json").write_text(json.dumps(stored))
    report = installed.worker(tmp_path / "run", campaigns / "new")
    assert report["outcome"] == "usage_error"
    assert "has changed since this campaign began" in report["message"]


def test_a_crash_of_a_package_says_that_its_repair_needs_another_folder(tmp_path: Path) -> None:
    made = Installation.create(tmp_path / "venv")
    made.install("sorting", sort=("np.sort(numbers)", "np.sort(nombers)"))
    text = PLAN.replace("workload: infer, model: two-layers, runtime: [torch, onnxruntime]", "workload: [sort, noop]")
    (tmp_path / "plan.yaml").write_text(text)
    lines = made.pybench("run", "plan.yaml", "--out", "old", cwd=tmp_path).stdout.splitlines()
    index = lines.index("2 runs failed and stay as they are: --retry-failed repeats them")
    assert lines[index + 1].startswith("if you change acme-sorting, choose another folder with --out: ")
    made.install("sorting")
    assert made.pybench("run", "plan.yaml", "--out", "old", "--retry-failed", cwd=tmp_path).returncode == 2
    repaired = made.pybench("run", "plan.yaml", "--out", "new", cwd=tmp_path)
    assert repaired.returncode == 0, repaired.stderr
    assert "if you change" not in repaired.stdout


def _model_bytes(campaign: Path) -> dict[str, float]:
    found = {}
    for path in (campaign / "runs").glob("*/block-001/*/case.json"):
        summary = json.loads(path.with_name("summary.json").read_text())
        found[json.loads(path.read_text())["case"]["runtime"]] = summary["metrics"]["model_bytes"]["value"]
    return found
