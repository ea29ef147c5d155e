# SPDX-License-Identifier: Apache-2.0
"""A user's model and labelled samples, from the plan in docs/user/models.md to a publication."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest

from pybench.campaign.storage import sha256_of
from pybench.cli import main
from tests.support.labelled import TOKENS, write_text_classifier

pytestmark = pytest.mark.usefixtures("ready_workers")
ROOT = Path(__file__).parents[2]


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The plan of the documentation, of a small classifier."""
    monkeypatch.chdir(tmp_path)
    write_text_classifier(tmp_path)
    (tmp_path / "text.onnx").rename("classifier.onnx")
    (tmp_path / "text.npz").rename("mine.npz")
    text = (ROOT / "docs/user/models.md").read_text()
    block = next(one for one in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL) if "mine.npz" in one)
    path = tmp_path / "plan.yaml"
    path.write_text(block.replace("seq_len: 128", f"seq_len: {TOKENS}, iterations: 5, energy_window_s: 0"))
    return path


@pytest.mark.slow
def test_samples_of_ones_own_are_judged_reported_and_not_published(
    plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(plan)]) == 0, capsys.readouterr().err
    assert main(["analyse", "results/my-classifier"]) == 0
    shown = capsys.readouterr().out
    assert "Accuracy, sample by sample" in shown
    assert "Samples of one group are alike: intervals and p values are of whole groups." in shown
    assert main(["analyse", "results/my-classifier", "--json"]) == 0
    (verdict,) = json.loads(capsys.readouterr().out)["contrasts"][0]["verdicts"]
    assert verdict["title"].startswith("infer")
    assert len(verdict["accuracy_case_ids"]) == 1
    assert main(["publish", "results/my-classifier", "--archive", "mine.zip"]) == 0
    with zipfile.ZipFile("mine.zip") as archive:
        names = archive.namelist()
        cases = [archive.read(name).decode() for name in names if name.endswith("case.json")]
        provenance = archive.read("provenance.intoto.json").decode()
    digest = sha256_of(Path("mine.npz"))
    assert not [name for name in names if name.endswith(".npz")]
    assert digest in provenance
    assert all(digest in case for case in cases if '"accuracy"' in case)


@pytest.mark.slow
def test_a_file_that_changed_makes_other_cases_and_no_run_of_the_old_ones(
    plan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    narrow = ["--filter", "workload=accuracy,precision=fp32"]
    assert main(["run", str(plan), *narrow, "--repetitions", "1"]) == 0, capsys.readouterr().err
    (case,) = (Path("results/my-classifier") / "runs").iterdir()
    with np.load("mine.npz") as stored:
        arrays = dict(stored)
    np.savez("mine.npz", **arrays | {"labels": (arrays["labels"] + 1) % 3})
    capsys.readouterr()
    assert main(["run", "results/my-classifier", *narrow, "--rerun", case.name]) == 2
    assert "mine.npz has changed since the plan was read" in capsys.readouterr().err
    assert main(["run", str(plan), *narrow, "--repetitions", "1"]) == 0
    said = capsys.readouterr().err
    assert "added to the plan" in said
    assert "kept on disk but not counted" in said
