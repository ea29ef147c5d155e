# SPDX-License-Identifier: Apache-2.0
"""What becomes of each unusual ONNX file: refused by the plan, or run; and how its cells end.

python -m tests.support.onnx_outcomes      # the table and its sums, in a minute
"""

from __future__ import annotations

import logging
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from pybench import runner
from pybench.campaign.directory import CampaignDirectory
from pybench.campaign.resolved_plan import parse_resolved_plan
from pybench.case import Case
from pybench.errors import PlanError
from pybench.launcher import Launcher
from pybench.machine import Machine
from pybench.plan import Plan, load_plan, resolve
from tests.runner.listening import Quiet
from tests.support.onnx_files import FILES, write
from tests.support.ready_workers import serve_workers

CELLS = tuple((precision, batch) for precision in ("fp32", "int8") for batch in (1, 2))

PLAN = """\
schema_version: 1
name: files
repetitions: 1
defaults: {{iterations: 1, warmup_iterations: 1, energy_window_s: 0, seq_len: 4, calibration_images: 4, threads: 1}}
matrix:
{entries}
"""
ENTRY = (
    "  - {{workload: infer, model: {name}/model.onnx, runtime: onnxruntime, precision: {precision}, batch: {batch}}}"
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of one file. `outcome`: `refused` by the plan, or a run's; `why`: the problem, or reason and detail."""

    file: str
    precision: str
    batch: int
    outcome: str
    why: str


def sweep(folder: Path, launcher: Launcher, names: Iterable[str] = FILES) -> list[Cell]:
    """Every cell of these files: each is judged by a plan of its own, then the sound ones are one campaign."""
    cells: list[Cell] = []
    entries: list[str] = []
    for name in names:
        write(name, folder / name)
        for precision, batch in CELLS:
            entry = ENTRY.format(name=name, precision=precision, batch=batch)
            refused = _refusal(folder, entry)
            if refused is None:
                entries.append(entry)
            else:
                cells.append(Cell(name, precision, batch, "refused", refused))
    return cells + _run(_plan(folder, entries), CampaignDirectory(folder / "campaign"), launcher)


def _refusal(folder: Path, entry: str) -> str | None:
    try:
        _plan(folder, [entry])
    except PlanError as error:
        return "; ".join(problem.render("plan.yaml") for problem in error.problems)
    return None


def _plan(folder: Path, entries: Iterable[str]) -> Plan:
    path = folder / "plan.yaml"
    path.write_text(PLAN.format(entries="\n".join(entries)))
    return load_plan(path)


def _run(plan: Plan, campaign: CampaignDirectory, launcher: Launcher) -> list[Cell]:
    content = resolve(plan, plan.cases)
    runner.open_for_running(campaign, content, plan.path.read_text())
    machine = replace(Machine.ask(plan.cases), launcher=launcher)
    runner.run_campaign(campaign, parse_resolved_plan(content), runner.Options(), machine, Quiet())
    return [_cell(case, campaign) for case in plan.cases]


def _cell(case: Case, campaign: CampaignDirectory) -> Cell:
    latest = campaign.latest(case.id, 1)
    record = latest.read_run() if latest else {"outcome": "missing", "reason": None, "detail": None}
    why = " ".join(filter(None, (record["reason"], " ".join((record["detail"] or "").split()))))
    return Cell(Path(case.model or "").parent.name, case.precision, case.batch, record["outcome"], why)


def table(cells: Iterable[Cell]) -> str:
    """A line for each file with the outcomes of its cells and the first reason, then the sums."""
    by_file: dict[str, list[Cell]] = {}
    for cell in cells:
        by_file.setdefault(cell.file, []).append(cell)
    lines = []
    for name in sorted(by_file):
        found = {(cell.precision, cell.batch): cell.outcome for cell in by_file[name]}
        why = next((cell.why for cell in by_file[name] if cell.outcome != "ok"), "")
        lines.append(f"{name:26}{''.join(f'{found[key]:14}' for key in CELLS)}{why[:150]}")
    sums = Counter(_verdict(found) for found in by_file.values())
    said = ", ".join(f"{number} {verdict}" for verdict, number in sums.most_common())
    header = f"{'file':26}{''.join(f'{precision} b{batch:<8}' for precision, batch in CELLS)}why"
    return "\n".join([header, *lines, f"of {len(by_file)} files: {said}"])


def _verdict(cells: list[Cell]) -> str:
    """The best that became of a file."""
    outcomes = {cell.outcome for cell in cells}
    return next((word for word in ("ok", "unsupported", "build_failed", "refused") if word in outcomes), "lost")


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as scratch, serve_workers() as workers:
        sys.stdout.write(table(sweep(Path(scratch), workers)) + "\n")
