# SPDX-License-Identifier: Apache-2.0
"""Directories of two machines are put together by copying, and a run says which build of an artefact it executed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import onnx
import pytest

from pybench.campaign import digests, layout, storage
from pybench.campaign.directory import CampaignDirectory
from pybench.case import Case
from pybench.cli import main
from tests.support.campaigns import CampaignBuilder

pytestmark = pytest.mark.usefixtures("ready_workers")
PLAN = """\
schema_version: 1
name: two
seed: 1
repetitions: 2
matrix:
  - {workload: infer, model: mlp, runtime: onnxruntime, device: cpu, iterations: 2, warmup_iterations: 0}
"""


@pytest.fixture
def plan(plan: Path) -> str:
    plan.write_text(PLAN)
    return str(plan)


def put_together(first: str, second: str) -> None:
    """What `rsync -a --ignore-existing` does."""
    for path in Path(second).rglob("*"):
        target = Path(first) / path.relative_to(second)
        if path.is_file() and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target)


def build_again(campaign: str) -> str:
    """The campaign's ONNX file as of another making. Returns its path in the campaign."""
    (making,) = CampaignDirectory(Path(campaign)).made()
    file = making.file("model.onnx")
    model = onnx.load(file)
    model.doc_string = "made elsewhere"
    onnx.save(model, file)
    record = making.read_run()
    storage.write_json(making.file(layout.RUN), {**record, "made": {file.name: storage.sha256_of(file)}})
    making.file(layout.COMPLETE).write_bytes(digests.render(digests.of_folder(making.path)))
    return str(file.relative_to(campaign))


def test_runs_of_a_copied_directory_are_those_of_one_campaign(plan: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", plan, "--out", "here", "--artefacts-only"]) == 0
    shutil.copytree("here", "there")
    assert main(["run", "here", "--shard", "1/2"]) == main(["run", "there", "--shard", "2/2"]) == 0
    assert main(["check", "here"]) == 3
    put_together("here", "there")
    capsys.readouterr()
    assert main(["check", "here", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["covered"], found["other_builds"], found["gone_artefacts"]) == (2, {}, {})


def test_runs_of_another_build_are_counted(plan: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", plan, "--out", "here", "--shard", "1/2"]) == 0
    shutil.copytree("here", "there")
    shutil.rmtree("there/runs")
    built = build_again("there")
    assert main(["run", "there", "--shard", "2/2"]) == 0
    put_together("here", "there")
    capsys.readouterr()
    assert main(["check", "here"]) == 0
    assert f"1 run executed another build of {built}: what the campaign says of this file" in capsys.readouterr().out


def test_a_run_whose_artefact_could_not_be_made_executed_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = Case(workload="infer", model="mlp", runtime="onnxruntime")
    builder = CampaignBuilder(tmp_path / "c", [case], repetitions=2)
    for block, outcome in ((1, "build_failed"), (2, "ok")):
        builder.run(case, block, outcome=outcome, artefacts={"onnx": f"artefacts/{'a' * 63}{block}/model.onnx"})
    assert main(["check", str(builder.path), "--json"]) == 3
    gone = json.loads(capsys.readouterr().out)["gone_artefacts"]
    assert gone == {f"artefacts/{'a' * 63}2/model.onnx": 1}


def test_an_artefact_that_is_gone_is_told(plan: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", plan, "--out", "here"]) == 0
    (making,) = CampaignDirectory(Path("here")).made()
    shutil.rmtree(making.path)
    capsys.readouterr()
    assert main(["check", "here"]) == 0
    told = capsys.readouterr().out
    assert f"artefacts/{making.path.name}/model.onnx is gone, which 2 runs executed" in told
    assert "another build" not in told
