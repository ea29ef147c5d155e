# SPDX-License-Identifier: Apache-2.0
"""What a container adds to a run: plain runs and runs in containers in turn, of the workload that does nothing.

    python bench/harness/container_overhead.py IMAGE [--engine NAME] [--runs 100]

Prints seconds by part. A container shows in `python_start` (from the runner's decision to the worker's first line) and
in `harness` (from its last line to the runner's next). Imports and writing differ as the two Pythons and file systems
do. Taking the image in, once, is told apart.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from pybench import runner
from pybench.campaign.directory import CampaignDirectory
from pybench.campaign.resolved_plan import parse_resolved_plan
from pybench.case import Case, case_to_json
from pybench.launcher import LOCAL, Launcher, open_container
from pybench.machine import Machine

CASE = Case(workload="noop")
CONTENT = {
    "schema_version": 1, "name": "overhead", "seed": 1, "repetitions": 1,
    "cases": [case_to_json(CASE)], "criteria": [], "require": [], "files": {},
}  # fmt: skip


class Silent:
    """A listener."""

    def begin(self, pending: int, done: Any) -> None: ...
    def preparing(self, recipe: Any) -> None: ...
    def running(self, planned: Any) -> None: ...
    def finished(self, planned: Any, outcome: Any, wall_s: float) -> None: ...
    def skipped(self) -> None: ...
    def stopping(self) -> None: ...
    def note(self, text: str) -> None: ...


def main() -> None:
    parser = argparse.ArgumentParser(description="What a container adds to a run, in seconds.")
    parser.add_argument("image")
    parser.add_argument("--engine")
    parser.add_argument("--runs", type=int, default=100)
    asked = parser.parse_args()
    begin = time.monotonic()
    container = open_container(asked.image, asked.engine, print)
    print(f"looked into and taken in within {time.monotonic() - begin:.1f} s by {container.engine_version}")
    launchers: dict[str, Launcher] = {"plain": LOCAL, "container": container}
    parts: dict[str, dict[str, list[float]]] = {name: {} for name in launchers}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(asked.runs):
            for name, launcher in launchers.items():
                for part, seconds in run_once(Path(folder) / f"{name}-{number}", launcher).items():
                    parts[name].setdefault(part, []).append(seconds)
    print(f"{'part':<14} {'plain s':>9} {'container s':>12} {'added s':>9} {'p95 s':>8}   medians of {asked.runs}")
    for part, plain in parts["plain"].items():
        added = [inside - outside for inside, outside in zip(parts["container"][part], plain, strict=True)]
        outside, inside = statistics.median(plain), statistics.median(parts["container"][part])
        middle, p95 = statistics.median(added), statistics.quantiles(added, n=20)[-1]
        print(f"{part:<14} {outside:9.3f} {inside:12.3f} {middle:9.3f} {p95:8.3f}")


def run_once(folder: Path, launcher: Launcher) -> dict[str, float]:
    """Seconds of one run by part, and of all of it."""
    campaign = CampaignDirectory(folder)
    runner.open_for_running(campaign, CONTENT, "")
    plan = parse_resolved_plan(CONTENT)
    runner.run_campaign(campaign, plan, runner.Options(), Machine({}, launcher), Silent())
    record = next(campaign.runs()).read_run()
    if record["outcome"] != "ok":
        raise SystemExit(f"a run was {record['outcome']}: {record['detail']}")
    seconds: dict[str, float] = record["parts_s"]
    return {**seconds, "start and end": seconds["python_start"] + seconds["harness"], "whole run": record["duration_s"]}


if __name__ == "__main__":
    main()
