# SPDX-License-Identifier: Apache-2.0
"""`pybench quick` on a real GPU: one case in one block, with its joules."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from pybench.cli import main  # noqa: E402

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU")]


def test_a_captured_model_is_measured_with_its_joules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("--runtime", "torch-graph", "--precision", "fp16", "--batch", "8", "--minutes", "0.01", "--json")
    assert main(["quick", "resnet50", *words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["blocks"] == 1
    (row,) = found["cases"]
    assert (row["runtime"], row["precision"], row["batch"], row["failed"]) == ("torch-graph", "fp16", 8, None)
    assert row["latency_ms"]["value"] > 0
    assert row["energy_per_sample_j"]["value"] > 0
    assert Path(found["report"]).is_file()
