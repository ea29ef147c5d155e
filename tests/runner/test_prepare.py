# SPDX-License-Identifier: Apache-2.0
"""Artefacts: made once by a real worker, shared by runners that come and go, never half there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pybench import rundir
from pybench.case import Case
from pybench.recipe import recipes_of
from pybench.rundir import CampaignDirectory
from tests.runner.conftest import Run, plan_content


def test_a_users_checkpoint_becomes_an_onnx_file_of_its_weights(
    campaign: CampaignDirectory, run: Run, tmp_path: Path
) -> None:
    torch = pytest.importorskip("torch")
    from pybench.models.building import build

    torch.save(build("digits-cnn", seed=5).state_dict(), tmp_path / "weights.pt")
    case = Case(
        workload="infer",
        model="digits-cnn",
        runtime="onnxruntime",
        checkpoint="weights.pt",
        iterations=2,
        device="cpu",
        sources=(("checkpoint", "a" * 64),),
    )
    files = {"weights.pt": {"path": str(tmp_path / "weights.pt")}}
    tally, _ = run({**plan_content([case], 1), "files": files})
    assert dict(tally.outcomes) == {"ok": 1}
    made = campaign.artefact(recipes_of(case)["model"].digest)
    assert json.loads((made / rundir.RECIPE).read_text())["files"] == {"checkpoint": str(tmp_path / "weights.pt")}
