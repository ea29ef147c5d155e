# SPDX-License-Identifier: Apache-2.0
"""A user's file that cannot be used fails its own cells, and the campaign goes on."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from pybench.campaign.directory import CampaignDirectory
from pybench.case import Case
from tests.runner.conftest import Run, plan_content
from tests.support.onnx_files import write


def case_of(path: Path, **factors: Any) -> Case:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    quick = {"iterations": 2, "warmup_iterations": 1, "energy_window_s": 0.0}
    return Case(
        workload="infer", model=str(path), runtime="onnxruntime", sources=(("model", digest),), **(quick | factors)
    )


def campaign_of(cases: list[Case]) -> dict[str, Any]:
    return {**plan_content(cases, 1), "files": {case.model: {"path": case.model} for case in cases}}


@pytest.mark.usefixtures("ready_workers")
def test_bad_files_fail_their_own_cells_and_the_others_are_run(
    tmp_path: Path, campaign: CampaignDirectory, run: Run
) -> None:
    names = ("types-do-not-fit", "sizes-do-not-fit", "plain", "not-finite")
    paths = {name: write(name, tmp_path / name) for name in names}
    cases = [case_of(path, precision=precision) for path in paths.values() for precision in ("fp32", "int8")]
    tally, listener = run(campaign_of(cases))
    assert listener.pending == len(cases) == tally.outcomes.total()
    found = {
        (Path(attempt.read_case().model or "").parent.name, attempt.read_case().precision): attempt.read_run()
        for attempt in campaign.runs()
    }
    outcomes = {key: (record["outcome"], record["reason"]) for key, record in found.items()}
    refused = ("build_failed", "input_refused")
    assert outcomes == {
        ("types-do-not-fit", "fp32"): refused,
        ("types-do-not-fit", "int8"): refused,
        ("sizes-do-not-fit", "fp32"): refused,
        ("sizes-do-not-fit", "int8"): refused,
        ("plain", "fp32"): ("ok", None),
        ("plain", "int8"): ("ok", None),
        ("not-finite", "fp32"): ("ok", None),
        ("not-finite", "int8"): refused,
    }
    detail = found["types-do-not-fit", "fp32"]["detail"]
    assert f"{paths['types-do-not-fit']} is not a runnable ONNX model" in detail
    assert "hint:" in detail
    assert not tally.is_success
