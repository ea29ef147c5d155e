# SPDX-License-Identifier: Apache-2.0
"""Runs of the runtime `native` whose process hangs, dies or gives NaN: each has an outcome with its reason."""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path

import pytest
import torch

from pybench.campaign.directory import CampaignDirectory
from pybench.case import Case
from pybench.models.building import build
from pybench.preprocess.program import VARIABLE
from tests.runner.conftest import Run, plan_content
from tests.support.waiting import wait_for

pytestmark = pytest.mark.process  # the orchestrator

CASE = Case(
    workload="infer", model="tinylm-tiny", runtime="native", path="go_rust", device="cpu", batch=1, seq_len=8,
    threads=1, iterations=3, warmup_iterations=1, idle_window_s=0.0, energy_window_s=0.0,
    corpus_limit_bytes=100_000,
)  # fmt: skip


def test_a_native_process_that_dies_or_hangs_ends_its_run_and_is_gone(
    campaign: CampaignDirectory, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, program = tmp_path / "pid", tmp_path / "program"
    monkeypatch.setenv(VARIABLE, str(program))
    outcomes = []
    for last, limit_s in (("kill -SEGV $$", 300.0), ("exec sleep 600", 6.0)):  # the first makes the ONNX file, too
        program.write_text(f"#!/bin/sh\necho $$ > {told}\n{last}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        run(plan_content([CASE], 1), timeout_s=limit_s, retry_failed=True)
        record = campaign.attempts(CASE.id, 1)[-1].read_run()
        outcomes.append((record["outcome"], record["reason"]))
        assert record["detail"]
        wait_for(lambda: not Path(f"/proc/{told.read_text().strip()}").exists())
    assert outcomes == [("crashed", "NativeProcessError"), ("timeout", "timeout")]


def test_nan_of_a_native_process_is_told_with_its_output(campaign: CampaignDirectory, run: Run, tmp_path: Path) -> None:
    state = build("tinylm-tiny").state_dict()
    state["norm.weight"] = torch.full_like(state["norm.weight"], float("nan"))
    weights = tmp_path / "weights.pt"
    torch.save(state, weights)
    case = CASE.with_factors(
        checkpoint=str(weights), sources=(("checkpoint", hashlib.sha256(weights.read_bytes()).hexdigest()),)
    )
    run({**plan_content([case], 1), "files": {str(weights): {"path": str(weights)}}})
    record = next(campaign.runs()).read_run()
    assert (record["outcome"], record["reason"]) == ("crashed", "NativeOutputError")
    assert "values of the output logits are NaN" in record["detail"]
