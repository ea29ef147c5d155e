# SPDX-License-Identifier: Apache-2.0
"""What the harness costs a run: 200 runs of the workload that does nothing, by part.

Prints a table: Python's start (of `python -P -c pass` beside it, interleaved), imports, workload, writing, and what the
runner adds on top. The bound is 0.3 s a run on top of Python's start and the imports.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from pybench import runner
from pybench.campaign.directory import CampaignDirectory
from pybench.campaign.resolved_plan import parse_resolved_plan
from pybench.case import Case, case_to_json
from pybench.machine import Machine

RUNS = 200
BOUND_S = 0.3


class Silent:
    """A listener that also times a bare Python after each run, so that both see the same machine."""

    def __init__(self) -> None:
        self.bare_s: list[float] = []

    def begin(self, pending: int, done: Any) -> None: ...
    def preparing(self, recipe: Any) -> None: ...

    def skipped(self) -> None: ...
    def stopping(self) -> None: ...
    def note(self, text: str) -> None: ...
    def running(self, planned: Any) -> None: ...

    def finished(self, planned: Any, outcome: Any, wall_s: float) -> None:
        begin = time.monotonic()
        subprocess.run([sys.executable, "-P", "-c", "pass"], check=True)
        self.bare_s.append(time.monotonic() - begin)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        campaign = CampaignDirectory(Path(folder) / "campaign")
        content = {
            "schema_version": 1, "name": "harness", "seed": 1, "repetitions": RUNS,
            "cases": [case_to_json(Case(workload="noop"))], "criteria": [], "require": [], "files": {},
        }  # fmt: skip
        runner.open_for_running(campaign, content, "")
        silent = Silent()
        begin = time.monotonic()
        runner.run_campaign(campaign, parse_resolved_plan(content), runner.Options(), Machine({"machine": {}}), silent)
        wall_s = (time.monotonic() - begin - sum(silent.bare_s)) / RUNS
        records = [run.read_run() for run in campaign.runs()]
    parts = {name: [record["parts_s"][name] for record in records] for name in records[0]["parts_s"]}
    print(f"{'part':<34} {'median s':>9} {'p95 s':>9}")
    for name, values in (("bare `python -P -c pass`", silent.bare_s), *parts.items()):
        print(f"{name:<34} {statistics.median(values):9.4f} {statistics.quantiles(values, n=20)[-1]:9.4f}")
    paid = {"python_start", "imports"}
    own_s = wall_s - statistics.fmean(sum(record["parts_s"][name] for name in paid) for record in records)
    print(f"{'wall time a run, mean of ' + str(RUNS):<34} {wall_s:9.4f}")
    print(f"{'on top of start and imports, mean':<34} {own_s:9.4f}   (bound {BOUND_S})")


if __name__ == "__main__":
    main()
