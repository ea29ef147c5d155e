# SPDX-License-Identifier: Apache-2.0
"""One run as the worker does it, of a workload that pybench itself does not have."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from pybench.campaign.layout import CASE, SUMMARY
from pybench.case import Case, case_to_json
from pybench.catalogue.catalogue import BUILT_IN
from pybench.catalogue.metrics import Metric
from pybench.catalogue.workloads import Workload

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
