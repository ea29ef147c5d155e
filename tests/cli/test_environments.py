# SPDX-License-Identifier: Apache-2.0
"""Environments of a plan by command line: validated, shown, run, reported, published, and refused with a place."""

from __future__ import annotations

import csv
import json
import zipfile
from pathlib import Path

import pytest

from pybench.case import Case
from pybench.cli import main
from pybench.cluster.site import example_site
from pybench.errors import EXIT_OK, EXIT_USAGE
from tests.support.campaigns import CampaignBuilder
from tests.support.environments import environment
from tests.support.virtual_environments import MARKER, install_marker, make_environment, packages_of

Captured = pytest.CaptureFixture[str]

PLAN = """\
schema_version: 1
name: upgrade
repetitions: 2
environments:
  old: {python: venvs/old/bin/python}
  new: {python: venvs/new/bin/python}
matrix:
  - {workload: noop, environment: [old, new], iterations: 3}
criteria:
  name: the upgrade
  baseline: {environment: old}
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    for name, version in (("old", "1.0"), ("new", "2.0")):
        make_environment(tmp_path / "venvs" / name, version)
    path = tmp_path / "upgrade.yaml"
    path.write_text(PLAN)
    return path


def test_from_the_plan_to_the_publication(plan: Path, tmp_path: Path, capsys: Captured) -> None:
    assert main(["validate", str(plan)]) == EXIT_OK
    assert f"  environment new: {tmp_path}/venvs/new/bin/python\n" in capsys.readouterr().out
    campaign = tmp_path / "campaign"
    assert main(["run", str(plan), "--out", str(campaign), "--dry-run"]) == EXIT_OK
    assert "environment old: Python 3." in capsys.readouterr().out
    assert not campaign.exists()
    assert main(["run", str(plan), "--out", str(campaign)]) == EXIT_OK
    assert main(["report", str(campaign)]) == EXIT_OK
    assert table(campaign, "environments") == [{"package": MARKER, "environment=old": "1.0", "environment=new": "2.0"}]
    (software,) = table(campaign, "software")
    assert software["brought_by_environment"] == f"{MARKER} 1.0 against 2.0"
    archive = tmp_path / "published.zip"
    assert main(["publish", str(campaign), "--archive", str(archive), "--license", "CC-BY-4.0"]) == EXIT_OK
    assert "check before you publish" not in capsys.readouterr().err
    with zipfile.ZipFile(archive) as published:
        texts = {
            Path(name).name: published.read(name).decode() for name in published.namelist() if "/runs/" not in name
        }
    assert str(tmp_path) not in texts["plan.resolved.json"] + texts["new.json"]
    assert json.loads(texts["plan.resolved.json"])["environments"]["new"] == {"python": "python"}
    assert json.loads(texts["new.json"])["packages"]["acme-marker"] == "2.0"
    assert "| `environments/` |" in texts["README.md"]
    fetched = tmp_path / "fetched"
    assert main(["fetch", str(archive), "--out", str(fetched)]) == EXIT_OK
    assert main(["replay", str(fetched)]) == EXIT_OK
    assert main(["check", str(fetched)]) == EXIT_OK
    assert main(["run", str(fetched)]) == EXIT_USAGE
    assert "`environment`: old: python is not the whole path of an interpreter" in capsys.readouterr().err
    assert main(["run", str(plan), "--out", str(fetched)]) == EXIT_OK


def table(campaign: Path, name: str) -> list[dict[str, str]]:
    with open(campaign / "report/tables" / f"{name}.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_what_only_some_cases_need_is_no_difference_between_environments(tmp_path: Path) -> None:
    """Each environment of the table has the packages of its own cases."""
    cases = [Case(workload="noop", environment=name) for name in ("old", "package")]
    builder = CampaignBuilder(tmp_path / "campaign", cases, repetitions=1)
    for case, loaded in zip(cases, ({"torch": "2.10"}, {"torch": "2.11", "onnx": "1.23"}), strict=True):
        builder.run(case, 1, {}, environment={**environment(), "packages": loaded})
    assert main(["report", str(tmp_path / "campaign")]) == EXIT_OK
    assert table(tmp_path / "campaign", "environments") == [
        {"package": "torch", "environment=old": "2.10", "environment=package": "2.11"}
    ]


def test_environments_of_the_same_versions_are_said_to_be_so(tmp_path: Path) -> None:
    cases = [Case(workload="noop", environment=name) for name in ("one", "other")]
    builder = CampaignBuilder(tmp_path / "campaign", cases, repetitions=1)
    for case in cases:
        builder.run(case, 1, {}, environment={**environment(), "packages": {"torch": "2.11"}})
    assert main(["report", str(tmp_path / "campaign")]) == EXIT_OK
    (row,) = table(tmp_path / "campaign", "environments")
    assert row["package"] == "python"
    assert row["environment=one"] == row["environment=other"]
    page = (tmp_path / "campaign/report/index.html").read_text()
    assert "The runs of all environments loaded the same versions." in page


def test_a_plan_that_drops_environments_keeps_a_table_of_facts_alone(tmp_path: Path) -> None:
    path = tmp_path / "plain.yaml"
    path.write_text("schema_version: 1\nname: plain\nrepetitions: 1\nmatrix: [{workload: noop}]\n")
    assert main(["run", str(path), "--out", str(tmp_path / "campaign")]) == EXIT_OK
    assert main(["report", str(tmp_path / "campaign")]) == EXIT_OK
    tables = {table.name for table in (tmp_path / "campaign/report/tables").iterdir()}
    assert "environment.csv" in tables
    assert "environments.csv" not in tables
    assert not (tmp_path / "campaign/environments").exists()


def test_an_environment_that_cannot_run_its_cases_is_an_error_of_the_plan(plan: Path, capsys: Captured) -> None:
    (packages_of(plan.parent / "venvs/new") / "here.pth").unlink()
    assert main(["run", str(plan), "--out", str(plan.parent / "campaign")]) == EXIT_USAGE
    python = plan.parent / "venvs/new/bin/python"
    assert capsys.readouterr().err == (
        f"{plan}:6:17: `environment`: new: {python} lacks numpy, nvidia-ml-py, pillow, zstandard, "
        f"which every run needs (`uv pip install --python {python} numpy nvidia-ml-py pillow zstandard`)\n"
    )
    assert not (plan.parent / "campaign").exists()
    assert main(["run", str(plan), "--out", str(plan.parent / "campaign"), "-k", "environment=old"]) == EXIT_OK


def test_a_plan_for_another_machine_is_valid_and_submitted_and_does_not_run_here(plan: Path, capsys: Captured) -> None:
    plan.write_text(PLAN.replace("venvs/new", "/gpu-server/new"))
    assert main(["validate", str(plan)]) == EXIT_OK
    shown = capsys.readouterr().out.splitlines()
    assert "  environment new: /gpu-server/new/bin/python (not on this machine)" in shown
    assert f"  environment old: {plan.parent}/venvs/old/bin/python" in shown
    assert main(["validate", str(plan), "--json"]) == EXIT_OK
    assert json.loads(capsys.readouterr().out)["environments_not_here"] == ["new"]
    campaign = plan.parent / "campaign"
    assert main(["run", str(plan), "--out", str(campaign)]) == EXIT_USAGE
    assert capsys.readouterr().err == (
        f"{plan}:6:17: `environment`: new: /gpu-server/new/bin/python cannot be started: No such file or directory "
        "(give the path of a Python, such as bin/python of a virtual environment)\n"
    )
    assert not campaign.exists()
    site = plan.parent / "site.yaml"
    site.write_text('kind: slurm\njob: {time: "10"}\n')
    assert main(["submit", str(plan), "--site", str(site), "--out", str(campaign), "--dry-run"]) == EXIT_OK
    said = "environment new: /gpu-server/new/bin/python is not on this machine; every node has to have it there\n"
    assert said in capsys.readouterr().err


def test_a_dry_run_of_a_changed_environment_says_so(plan: Path, capsys: Captured) -> None:
    campaign = str(plan.parent / "campaign")
    assert main(["run", str(plan), "--out", campaign, "-k", "environment=new"]) == EXIT_OK
    install_marker(packages_of(plan.parent / "venvs/new"), "2.1")
    capsys.readouterr()
    for arguments in (["run", str(plan), "--out", campaign, "--dry-run"], ["run", campaign]):
        assert main(arguments) == EXIT_USAGE
        assert "the environment new has changed since" in capsys.readouterr().err


def test_an_image_and_environments_exclude_each_other(plan: Path, capsys: Captured) -> None:
    site = plan.parent / "site.yaml"
    site.write_text(f'kind: slurm\njob: {{time: "10"}}\nimage: {{path: image.sif, sha256: {"a" * 64}}}\n')
    for arguments in (["run", str(plan), "--container", "image.oci"], ["submit", str(plan), "--site", str(site)]):
        assert main(arguments) == EXIT_USAGE
        assert "the plan's environments say where cases run" in capsys.readouterr().err


def test_an_image_is_absent_where_its_file_is_and_needs_a_node_that_starts_containers(
    plan: Path, capsys: Captured
) -> None:
    images = {"old": f"old.sif@sha256:{'a' * 64}", "new": f"registry.example/new@sha256:{'b' * 64}"}
    text = plan.read_text()
    for name, image in images.items():
        text = text.replace(f"{{python: venvs/{name}/bin/python}}", f"{{image: {image}}}")
    plan.write_text(text)
    assert main(["validate", str(plan)]) == EXIT_OK
    shown = capsys.readouterr().out.splitlines()
    assert f"  environment old: {plan.parent}/{images['old']} (not on this machine)" in shown
    assert f"  environment new: docker://{images['new']}" in shown
    campaign = plan.parent / "campaign"
    assert main(["run", str(plan), "--out", str(campaign), "-k", "environment=old"]) == EXIT_USAGE
    said = f"{plan}:5:16: `environment`: old: the image {plan.parent}/{images['old']}: no such file (give an OCI"
    assert capsys.readouterr().err.startswith(said)
    assert not campaign.exists()
    site = plan.parent / "site.yaml"
    site.write_text('kind: slurm\njob: {time: "10"}\n')
    submit = ["submit", str(plan), "--site", str(site), "--out", str(campaign), "--dry-run"]
    assert main(submit) == EXIT_OK
    said = f"environment old: {plan.parent}/old.sif is not on this machine; every node has to have it there\n"
    assert capsys.readouterr().err.startswith(said)
    site.write_text(example_site("kubernetes"))
    assert main(submit) == EXIT_USAGE
    assert "a pod of Kubernetes starts no containers" in capsys.readouterr().err


def test_doctor_says_what_another_environment_can_measure(plan: Path, capsys: Captured) -> None:
    python = str(plan.parent / "venvs/new/bin/python")
    assert main(["doctor", "--python", python, "--json"]) == EXIT_OK
    assert json.loads(capsys.readouterr().out)["facts"]["machine"]["available"]
    assert main(["doctor", "--python", python, "--container", "image.oci"]) == EXIT_USAGE
    assert main(["doctor", "--python", str(plan.parent / "none")]) == EXIT_USAGE
    assert "none cannot be started: No such file or directory" in capsys.readouterr().err


def test_an_engine_that_cannot_be_is_no_fault_of_the_plan(
    plan: Path, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = tmp_path / "images.yaml"
    images.write_text(PLAN.replace("python: venvs/old/bin/python", f"image: old.oci.tar@sha256:{'0' * 64}"))
    select = ["--dry-run", "--filter", "environment=new"]
    for command in (["run", str(images)], ["run", str(plan)], ["doctor"]):
        assert main([*command, "--engine", "podmann"]) == EXIT_USAGE
        assert capsys.readouterr().err.startswith("error: --engine podmann: unknown engine\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["run", str(images), "--engine", "docker"]) == EXIT_USAGE
    assert capsys.readouterr().err.startswith("error: docker is not installed\n")
    assert main(["run", str(images), "--engine", "docker", *select]) == EXIT_OK  # no case in the image
