# SPDX-License-Identifier: Apache-2.0
"""Campaigns over real virtual environments: runs and artefacts in their own, side by side in each block."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pybench.analysis import analyse
from pybench.analysis.comparability import Comparability
from pybench.campaign.directory import CampaignDirectory, RunDirectory
from pybench.campaign.environments import PlannedEnvironment, read_environments
from pybench.case import Case
from pybench.dataset import load
from pybench.errors import RefusedValuesError, UsageError
from pybench.machine import Machine
from tests.runner.conftest import Run, plan_content
from tests.support.onnx_files import write
from tests.support.virtual_environments import MARKER, install_marker, make_environment, packages_of

CASES = [Case(workload="noop", iterations=3, environment=name) for name in ("old", "new")]
DECLARED = [{"baseline": {"environment": "old"}}]
RELEASES = {"1.23": "1.23.2", "1.24": "1.24.1"}


@pytest.fixture
def pythons(tmp_path: Path) -> dict[str, str]:
    versions = {"old": "1.0", "new": "2.0"}
    return {name: str(make_environment(tmp_path / name, version)) for name, version in versions.items()}


def interpreters(pythons: dict[str, str]) -> dict[str, PlannedEnvironment]:
    return {name: PlannedEnvironment(python=python) for name, python in pythons.items()}


def content(cases: list[Case], repetitions: int, **more: Any) -> dict[str, Any]:
    return {**plan_content(cases, repetitions), "criteria": DECLARED, **more}


def test_each_case_runs_with_the_packages_of_its_environment_and_is_compared(
    campaign: CampaignDirectory, run: Run, pythons: dict[str, str]
) -> None:
    tally, _ = run(content(CASES, 2), Machine.ask(CASES, planned=interpreters(pythons)))
    assert dict(tally.outcomes) == {"ok": 4}
    loaded = {(run.read_case().environment, run.read_environment()["packages"][MARKER]) for run in campaign.runs()}
    assert loaded == {("old", "1.0"), ("new", "2.0")}
    kept = read_environments(campaign)
    assert {name: one.packages["acme-marker"] for name, one in kept.items()} == {"old": "1.0", "new": "2.0"}
    (pair,) = analyse(load(campaign.path)).contrasts[0].pairs
    assert pair.comparability.status is Comparability.COMPARABLE
    assert [one.text() for one in pair.comparability.brought] == [f"{MARKER} 1.0 against 2.0"]


def test_a_campaign_does_not_continue_in_an_environment_that_was_upgraded(
    campaign: CampaignDirectory, run: Run, pythons: dict[str, str]
) -> None:
    run(content(CASES, 1), Machine.ask(CASES, planned=interpreters(pythons)))
    before = {path: path.read_bytes() for path in campaign.path.rglob("*.json")}
    install_marker(packages_of(Path(pythons["new"]).parents[1]), "3.0")
    with pytest.raises(UsageError, match=r"environment new has changed since .* began: acme-marker 2\.0 is 3\.0 now"):
        run(content(CASES, 2), Machine.ask(CASES, planned=interpreters(pythons)))
    assert {path for path in before if path.name != "plan.resolved.json" and path.read_bytes() != before[path]} == set()
    assert len(list(campaign.runs())) == len(CASES)
    renamed = [CASES[0], CASES[1].with_factors(environment="newest")]
    tally, _ = run(
        content(renamed, 1), Machine.ask(renamed, planned=interpreters({**pythons, "newest": pythons["new"]}))
    )
    assert dict(tally.outcomes) == {"ok": 2}


def test_all_environments_that_lack_something_are_named_before_anything_runs(pythons: dict[str, str]) -> None:
    for python in pythons.values():
        (packages,) = [packages_of(Path(python).parents[1])]
        broken = packages / "onnxruntime"
        broken.mkdir()
        (broken / "__init__.py").write_text("raise ImportError('libcudart.so.13 is missing')")
    cases = [Case(workload="infer", model="mlp", runtime="onnxruntime", environment=name) for name in pythons]
    with pytest.raises(RefusedValuesError) as raised:
        Machine.ask(cases, planned=interpreters(pythons))
    found = {one.value: one for one in raised.value.values}
    assert set(found) == {"old", "new"}
    assert "onnxruntime cannot be used (ImportError: libcudart.so.13 is missing)" in found["new"].what
    assert found["new"].hint == f"`uv pip install --python {pythons['new']} onnxruntime`"


def test_an_environment_in_which_no_worker_runs_is_refused(pythons: dict[str, str]) -> None:
    broken = packages_of(Path(pythons["new"]).parents[1]) / "numpy.py"
    broken.write_text("raise ImportError('libgfortran.so.5 is missing')")
    with pytest.raises(RefusedValuesError) as raised:
        Machine.ask(CASES, planned=interpreters(pythons))
    (refused,) = raised.value.values
    assert refused.value == "new"
    assert f"no worker runs in {pythons['new']}: " in refused.what
    assert "libgfortran.so.5 is missing" in refused.what


@pytest.mark.slow
def test_artefacts_are_made_in_the_environment_of_their_case(
    campaign: CampaignDirectory, run: Run, pythons: dict[str, str]
) -> None:
    cases = [
        Case(workload="infer", model="mlp", runtime="onnxruntime", environment=name, iterations=2, idle_window_s=0)
        for name in pythons
    ]
    tally, _ = run(content(cases, 1), Machine.ask(cases, planned=interpreters(pythons)))
    assert dict(tally.outcomes) == {"ok": 2}
    makings = [RunDirectory(path, path.name, 0, 1) for path in campaign.artefacts.iterdir() if path.is_dir()]
    assert {making.read_environment()["packages"][MARKER] for making in makings} == {"1.0", "2.0"}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_releases_of_onnxruntime_are_compared(campaign: CampaignDirectory, run: Run, tmp_path: Path) -> None:
    pythons = {name: str(_released(tmp_path / name, version)) for name, version in RELEASES.items()}
    path = write("plain", tmp_path)
    model = Case(workload="infer", model="model.onnx", runtime="onnxruntime", sources=(("model", "a" * 64),))
    cases = [model.with_factors(environment=name, iterations=5, idle_window_s=0) for name in pythons]
    planned = {
        **plan_content(cases, 2),
        "criteria": [{"baseline": {"environment": "1.23"}}],
        "files": {"model.onnx": {"path": str(path)}},
    }
    machine = Machine.ask(cases, planned=interpreters(pythons))
    assert [machine.facts_in(name)["onnxruntime"]["version"] for name in RELEASES] == list(RELEASES.values())
    tally, _ = run(planned, machine)
    assert dict(tally.outcomes) == {"ok": 4}
    (pair,) = analyse(load(campaign.path)).contrasts[0].pairs
    assert pair.comparability.status is Comparability.COMPARABLE
    assert "onnxruntime 1.23.2 against 1.24.1" in [one.text() for one in pair.comparability.brought]
    assert pair.effects["latency_mean_ms"].effect is not None


def _released(folder: Path, version: str) -> Path:
    """An environment with nothing but that release and what every run needs."""
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("NOT TESTED: two releases of onnxruntime: installing them needs uv on PATH")
    python = folder / "bin" / "python"
    subprocess.run([uv, "venv", "--quiet", str(folder)], check=True, timeout=60)
    packages = [f"onnxruntime=={version}", "numpy", "nvidia-ml-py", "pillow", "zstandard"]
    command = [uv, "pip", "install", "--quiet", "--only-binary", ":all:", "--python", str(python), *packages]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    if done.returncode:
        pytest.skip(f"NOT TESTED: onnxruntime {version} cannot be installed: {done.stderr.strip()[-200:]}")
    return python
