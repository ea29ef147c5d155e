# SPDX-License-Identifier: Apache-2.0
"""One run as the worker does it, of a workload that pybench itself does not have."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pybench.campaign.directory import CampaignDirectory
from pybench.campaign.layout import CASE, RECIPE, SUMMARY
from pybench.case import Case, case_to_json
from pybench.catalogue.catalogue import BUILT_IN
from pybench.catalogue.metrics import Metric
from pybench.catalogue.workloads import Workload
from pybench.measure import ASSUMED, SensorProfile
from pybench.measure.energy.gpu_sampler import Gpus
from pybench.measurement.result import Result
from pybench.worker import job

ACME = """
from pybench.measure.quantity import Quantity
from pybench.measurement.result import Result

def run(request):
    return Result(metrics={"acme_echoes_per_s": Quantity(value=float(request.case.batch), window="timing")})
"""
DO = """
import json, sys, time
from pathlib import Path
from pybench.worker import job
now = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
report = job.do(Path(sys.argv[1]), Path(sys.argv[1]), spawned_ns=now - 1_500_000_002, started_ns=now)
print(json.dumps(report))
"""
ROWS = (
    Workload(
        name="acme-echo",
        label="Echo",
        meaning="one echo",
        module="acme_echo",
        takes=("run",),
        model="none",
        yields=("acme_echoes_per_s",),
    ),
    Metric(
        name="acme_echoes_per_s",
        group="time",
        unit="1/s",
        better="higher",
        label="Echo rate",
        meaning="echoes a second",
        rests_on="timing",
    ),
)


def test_a_run_is_done_and_stored_by_the_rows_of_its_case(tmp_path: Path) -> None:
    (tmp_path / "acme_echo.py").write_text(ACME)
    case = Case(workload="acme-echo", batch=3, catalogue=BUILT_IN.with_rows(ROWS))
    request = {"case": case_to_json(case), "block": 1, "attempt": 1, "seed": 0, "artefacts": {}, "files": {}}
    (tmp_path / CASE).write_text(json.dumps({"schema_version": 1, **request}))
    command = [sys.executable, "-c", DO, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["outcome"] == "ok"
    assert report["parts_s"].pop("python_start") == 1.500000002
    assert all(seconds > 0 for seconds in report["parts_s"].values())
    stored = json.loads((tmp_path / SUMMARY).read_text())["metrics"]["acme_echoes_per_s"]
    assert (stored["value"], stored["unit"], stored["window"]) == (3.0, "1/s", "timing")


def test_the_maker_of_an_artefact_knows_the_power_sensors_of_its_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = replace(ASSUMED, uuid="GPU-1", driver="580.1", origin="measured", name="A board")
    former = replace(profile, driver="570.9")
    campaign = CampaignDirectory(tmp_path)
    campaign.sensor("GPU-1").parent.mkdir()
    for name, each in (("GPU-1", former), ("GPU-1_driver-580.1", profile)):
        campaign.sensor(name).write_text(json.dumps(each.as_json()))
    monkeypatch.setattr("pybench.measure.gpus", lambda: Gpus("580.1", (), None))
    (tmp_path / RECIPE).write_text(json.dumps({"recipe": {}, "inputs": {}, "files": {}}))
    given: list[Mapping[str, SensorProfile]] = []

    def make(*arguments: Any, sensors: Mapping[str, SensorProfile], unfinished: Path | None) -> Result:
        given.append(sensors)
        assert unfinished is None
        return Result()

    monkeypatch.setattr("pybench.artefacts.make", make)
    monkeypatch.setattr("pybench.worker.environment.collect", lambda *_: {})  # of this process, which is no worker
    now = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
    assert job.do(tmp_path, tmp_path, spawned_ns=now, started_ns=now)["outcome"] == "ok"
    assert given == [{"GPU-1": profile}]
