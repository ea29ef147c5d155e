# SPDX-License-Identifier: Apache-2.0
"""What becomes of ONNX files of many exporters: each is inspected, validated, previewed and run, in FP32 and in INT8.

    .venv/bin/python bench/onnx_files/sweep.py FOLDER [--files GLOB] [--again] [--page PAGE.md]

Makes the files under FOLDER/files that are not there yet, with `uv` for the packages of `made.ENVIRONMENTS`. Each
command is a process of its own, with a limit of time and of address space. What became of a file is kept in
FOLDER/found, and looked at anew with --again. A file is promised to run, or to be refused with one error that has a
place and a hint; nothing prints a traceback. The exit code is 1 where a file breaks the promise.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from made import ENVIRONMENTS

HERE = Path(__file__).parent
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
# 8 GiB of address space, 120 s of CPU time.
LIMITED = 'ulimit -v 8388608; ulimit -t 120; exec "$@"'
LARGEST_RSS_MB = 3000  # a file of 400 MB is in memory as bytes, as weights, and repacked for its kernels
PRECISIONS = ("fp32", "int8")
NEED_A_HINT = ("unsupported", "build_failed")
NO_MEMORY = "memory ran out"  # needs no hint: it is in the size that it names
LONGEST_SAID = 100  # characters of an error in the page
TOLD = ("runs", "oom", *NEED_A_HINT)  # outcomes of a run that break no promise
COMMANDS = (("validate",), ("run", "--dry-run"), ("run", "--out", "campaign"))
PLAN = """\
schema_version: 1
name: file
repetitions: 1
defaults: {{iterations: 3, warmup_iterations: 1, energy_window_s: 0, idle_window_s: 0, calibration_images: 4,
           threads: 1}}
matrix:
  - {{workload: infer, model: model.onnx, runtime: onnxruntime, provider: cpu, precision: {precision}, {settings}}}
"""
SETTINGS = {  # of files whose sizes a plan has to state
    "torch-tracing-fixed": "batch: 2",
    "torch-dynamo-cond": "batch: 2",
    "torch-tracing-anonymous": "batch: 2",
    "torch-tracing-ids": "seq_len: 7",
    "paddle-any-size": 'shapes: {x: {"2": 16, "3": 24}}',
    "paddle-ids": "seq_len: 7",
    "keras-lstm": 'shapes: {keras_tensor_3: {"1": 5}}',
    "helper-dots-in-names": 'shapes: {"a.b/c:0": {"step size": 5}}',
}


@dataclass(slots=True)
class Cell:
    """One file in one precision. `outcome`: `runs`, `refused`, or the outcome of its run; `said`: its one error;
    `faults`: what breaks the promise."""

    outcome: str = ""
    said: str = ""
    peak_mb: float = 0.0
    faults: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Ended:
    status: int
    text: str
    peak_mb: float


def main() -> int:
    parser = argparse.ArgumentParser(description="What becomes of ONNX files of many exporters.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", default="*", help="names of files, as a glob")
    parser.add_argument("--again", action="store_true", help="also files that were looked at before")
    parser.add_argument("--page", type=Path, help="where the page is written")
    asked = parser.parse_args()
    files = asked.folder.absolute() / "files"
    make_files(files)
    found = {}
    for folder in sorted(made.parent for made in files.glob(f"{asked.files}/made.json")):
        store = asked.folder / "found" / f"{folder.name}.json"
        if asked.again or not store.exists():
            store.parent.mkdir(exist_ok=True)
            store.write_text(json.dumps({name: asdict(cell) for name, cell in judged(folder).items()}, indent=1))
        found[folder.name] = {name: Cell(**cell) for name, cell in json.loads(store.read_text()).items()}
        print(line(folder.name, found[folder.name]), flush=True)
    if asked.page:
        asked.page.write_text(page(files, found))
    print(summary(found))
    return int(any(cell.faults for cells in found.values() for cell in cells.values()))


def make_files(files: Path) -> None:
    """Makes what is missing, one environment after the other."""
    for module, packages in ENVIRONMENTS.items():
        done = files.parent / f"{module}.done"
        if done.exists():
            continue
        files.mkdir(parents=True, exist_ok=True)
        python = [sys.executable]
        if packages is not None:
            python = ["uv", "run", "--no-project", "--python", PYTHON, *(f"--with={one}" for one in packages), "python"]
        words = [*python, str(HERE / "made.py"), module, str(files)]
        ended = subprocess.run(words, cwd=files, env=environment(), capture_output=True, text=True, check=False)
        if ended.returncode:
            sys.exit(f"{module}: {ended.stderr[-2000:]}")
        done.touch()


def environment() -> dict[str, str]:
    """Without what would make an exporter import from this environment, or a worker differ from a user's."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}


# --- one file --------------------------------------------------------------------------------------------------------


def judged(folder: Path) -> dict[str, Cell]:
    cells = {precision: judge(folder, precision) for precision in PRECISIONS}
    cells["fp32"].faults += inspected(folder)
    return cells


def judge(folder: Path, precision: str) -> Cell:
    """Validated, previewed and run in a folder next to the file, until one of them refuses it."""
    cell = Cell()
    settings = SETTINGS.get(folder.name, "batch: 1")
    (folder / "plan.yaml").write_text(PLAN.format(precision=precision, settings=settings))
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        for words in COMMANDS:
            here = [*words, "plan.yaml"]
            ended = called([scratch if word == "campaign" else word for word in here], folder)
            cell.peak_mb = max(cell.peak_mb, ended.peak_mb)
            cell.faults += [f"{words[0]}: {fault}" for fault in faults_of(ended)]
            if ended.status == 2:
                cell.outcome, cell.said = "refused", said_in(ended.text)
                cell.faults += ["refused without a hint"] * (not has_hint(cell.said))
                break
        else:
            cell.outcome, cell.said = outcome_in(Path(scratch))
            cell.faults += faults_of_outcome(cell)
    if cell.peak_mb > LARGEST_RSS_MB:
        cell.faults.append(f"{cell.peak_mb:.0f} MB of memory")
    return cell


def inspected(folder: Path) -> list[str]:
    ended = called(["inspect", "model.onnx", "--json"], folder)
    faults = [f"inspect: {fault}" for fault in faults_of(ended)]
    if ended.status == 2 and not has_hint(said_in(ended.text)):
        faults.append("inspect: refused without a hint")
    return faults


def called(words: Sequence[str], folder: Path) -> Ended:
    """One command of pybench. What it prints goes to a file, so that a child that lives on cannot hold a pipe open."""
    with tempfile.TemporaryFile() as talk:
        process = subprocess.Popen(
            ["sh", "-c", LIMITED, "sh", sys.executable, "-P", "-m", "pybench.cli", *words],
            cwd=folder, env=environment(), stdout=talk, stderr=talk, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        talk.seek(0)
        return Ended(process.returncode, talk.read().decode(errors="replace"), usage.ru_maxrss / 1000)


def faults_of(ended: Ended) -> Iterator[str]:
    if "Traceback" in ended.text:
        yield "a traceback"
    if ended.status not in (0, 1, 2):
        yield f"exit code {ended.status}"
    if ended.status == 2 and len(re.findall("^error: ", ended.text, re.MULTILINE)) != 1:
        yield "not one error"


def faults_of_outcome(cell: Cell) -> Iterator[str]:
    """A run may refuse a file that the plan took, with a hint; it may not crash, hang or be killed."""
    if cell.outcome not in TOLD:
        yield f"its run ended as `{cell.outcome}`"
    elif cell.outcome in NEED_A_HINT and NO_MEMORY not in cell.said and not has_hint(cell.said):
        yield f"{cell.outcome} without a hint"


def said_in(text: str) -> str:
    """The error, with its hint."""
    lines = text.splitlines()
    for number, one in enumerate(lines):
        if one.startswith("error: "):
            rest = [more.strip() for more in lines[number + 1 : number + 2] if more.startswith("  hint: ")]
            return " ".join([one.removeprefix("error: "), *rest])
    return ""


def has_hint(said: str) -> bool:
    return "hint: " in said or bool(re.search(r"\(.+\)$", said))


def outcome_in(campaign: Path) -> tuple[str, str]:
    """The outcome of the one run, and why."""
    for path in campaign.glob("runs/*/*/attempt-*/run.json"):
        run: dict[str, Any] = json.loads(path.read_text())
        detail = " ".join((run["detail"] or "").split())
        return ("runs" if run["outcome"] == "ok" else run["outcome"]), detail
    return "no run", ""


# --- the table -------------------------------------------------------------------------------------------------------


def line(name: str, cells: dict[str, Cell]) -> str:
    faults = "; ".join(fault for cell in cells.values() for fault in cell.faults)
    outcomes = "".join(f"{cell.outcome:14}" for cell in cells.values())
    return f"{name:32}{outcomes}{peak_mb(cells):6.0f} MB  {'FAULT ' + faults if faults else ''}"


def summary(found: dict[str, dict[str, Cell]]) -> str:
    counts = {
        precision: Counter(cells[precision].outcome for cells in found.values()).most_common()
        for precision in PRECISIONS
    }
    words = [
        f"{precision}: {', '.join(f'{number} {outcome}' for outcome, number in outcomes)}"
        for precision, outcomes in counts.items()
    ]
    faults = sum(bool(cell.faults) for cells in found.values() for cell in cells.values())
    return f"{len(found)} files; {'; '.join(words)}; {faults} faults"


def page(files: Path, found: dict[str, dict[str, Cell]]) -> str:
    """The page in bench/results: outcomes by exporter, then what is said, each thing once."""
    exporters: dict[str, list[str]] = {}
    for name, cells in found.items():
        made = json.loads((files / name / "made.json").read_text())
        row = f"| {name} | {made['odd']} | {outcome_of(cells)} | {peak_mb(cells):.0f} |"
        exporters.setdefault(made["exporter"].partition(", ")[0], []).append(row)
    lines = [*beginning(files, found), *counts(found), *broken(found)]
    for exporter, rows in sorted(exporters.items(), key=lambda item: item[0].lower()):
        lines += [f"## {exporter}", "", "| file | what is odd | outcome | MB |", "| --- | --- | --- | --- |", *rows, ""]
    return "\n".join([*lines, *messages(found)])


def beginning(files: Path, found: dict[str, dict[str, Cell]]) -> Iterator[str]:
    total = len(list(files.glob("*/made.json")))
    part = "each one" if len(found) == total else f"{len(found)} of them"
    yield from (
        "# ONNX files of many exporters",
        "",
        f"- Date: {datetime.now(UTC):%Y-%m-%d}",
        "- Command: `python bench/onnx_files/sweep.py FOLDER --page PAGE.md`, which writes this page",
        f"- Machine: {os.cpu_count()} cores; onnxruntime {version('onnxruntime')} on its CPU provider",
        "- Limits: 8 GiB of address space and 120 s of CPU time for each command",
        "",
        f"The sweep makes {total} files; it inspects, validates, previews and runs {part}, in FP32 and in INT8.",
        "`refused` means one error with place and hint, exit code 2, before a campaign exists.",
        "One outcome stands for both precisions where they agree; else FP32 comes first.",
        "MB is the largest memory of any command, most of it packages.",
        "",
    )


def counts(found: dict[str, dict[str, Cell]]) -> Iterator[str]:
    counted = {precision: Counter(cells[precision].outcome for cells in found.values()) for precision in PRECISIONS}
    yield from ("| outcome | FP32 | INT8 |", "| --- | --- | --- |")
    for outcome, _ in sum(counted.values(), Counter[str]()).most_common():
        yield f"| {outcome} | {' | '.join(str(counted[precision][outcome]) for precision in PRECISIONS)} |"
    yield ""


def broken(found: dict[str, dict[str, Cell]]) -> Iterator[str]:
    """What breaks the promise of the sweep."""
    rows = [
        f"| {name} | {precision} | {fault} |"
        for name, cells in found.items()
        for precision, cell in cells.items()
        for fault in cell.faults
    ]
    if rows:
        yield from ("## Faults", "", "| file | precision | fault |", "| --- | --- | --- |", *rows, "")
    else:
        yield from ("No command printed a traceback, crashed, hung or refused a file without a hint.", "")


def messages(found: dict[str, dict[str, Cell]]) -> Iterator[str]:
    """What is said of files that do not run, without place and hint; names in it are left out, so that equal things
    are one row."""
    rows: dict[str, dict[str, None]] = {}
    for name, cells in found.items():
        for cell in cells.values():
            if cell.said:
                rows.setdefault(plain(cell.said), {})[name] = None
    yield from ("## What is said", "", "Places, hints and the names of nodes are left out.", "")
    yield from ("| what is said | files |", "| --- | --- |")
    for said, names in sorted(rows.items(), key=lambda item: (-len(item[1]), item[0])):
        first, *more = names
        yield f"| {said} | {first}{f' and {len(more)} more' if more else ''} |"
    yield ""


def plain(said: str) -> str:
    """An error without its place, its hint and names, at most `LONGEST_SAID` characters."""
    said, places = re.subn(r"^\S+:\d+:\d+: (`\w+`: )?", "", re.sub(r" hint: .*$", "", said))
    if places:  # of a plan: its hint is in brackets
        said = re.sub(r" \((?:[^()]|\([^()]*\))*\)$", "", said)
    said = re.sub(r"/\S+/files/[^\s/]+(?!\S*/)(?=\s|$)", "its folder", said)
    said = re.sub(r"^model: onnx-\w+ .*?=\d+: ", "", said)
    said = re.sub(r"\S*model\.onnx(: )?", lambda found: "" if found[1] else "the file", said)
    said = re.sub(r"\b(node|input|output|domain) (?!is\b|has\b|of\b)[^\s,]+", r"\1 …", said).replace("|", "/")
    return said if len(said) <= LONGEST_SAID else said[: LONGEST_SAID - 1].rstrip() + "…"


def outcome_of(cells: dict[str, Cell]) -> str:
    return ", ".join(dict.fromkeys(cells[precision].outcome for precision in PRECISIONS))


def peak_mb(cells: dict[str, Cell]) -> float:
    return max(cell.peak_mb for cell in cells.values())


if __name__ == "__main__":
    sys.exit(main())
