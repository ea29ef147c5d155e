# SPDX-License-Identifier: Apache-2.0
"""A large campaign made of a small one, to measure how reading scales: `python bench/reading/multiply.py OUT`.

Each case of the small campaign becomes several, which differ in `threads`; each gets as many blocks as asked.
Every run is a copy of a finished run of its case, with all its files, in the format that pybench writes today.
Values get 2 % of noise, times and load differ from run to run as they do in a real campaign, and `complete` has the
digests of the files.
The numbers mean nothing; their amount, shape and variety are those of real runs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from pybench.campaign import digests, extract, layout
from pybench.campaign.directory import CampaignDirectory, RunDirectory, open_campaign
from pybench.campaign.resolved_plan import read_resolved_plan
from pybench.case import Case, Repetitions, case_to_json

SMALL = Path(__file__).parents[2] / "tests" / "data" / "earlier-campaign.tar.xz"
START = datetime(2026, 1, 1, tzinfo=UTC)
RUN_S = 6.0
NOISE = 0.02  # standard deviation of the logarithm of a value over its template
_WRITTEN = frozenset({layout.CASE, layout.ENVIRONMENT, layout.RUN, layout.SUMMARY, layout.COMPLETE})


@dataclass(frozen=True, slots=True)
class Template:
    """One finished run of the small campaign."""

    case: Mapping[str, Any]
    run: Mapping[str, Any]
    environment: Mapping[str, Any] | None
    summary: Mapping[str, Any] | None
    other: Mapping[str, bytes]
    """Name -> content of the files that are copied as they are."""
    other_digests: Mapping[str, str]


def main() -> None:
    arguments = _arguments()
    with tempfile.TemporaryDirectory() as folder:
        small = arguments.small
        if small.is_file():
            subprocess.run(["tar", "--extract", "--file", small, "--directory", folder], check=True)
            small = Path(folder)
        runs = multiply(small, arguments.out, runs=arguments.runs, repetitions=arguments.repetitions)
    print(f"{arguments.out}: {runs} runs")


def multiply(small: Path, out: Path, *, runs: int, repetitions: int) -> int:
    """Writes a campaign of at least `runs` runs, and returns how many it has."""
    source = open_campaign(small)
    plan = read_resolved_plan(source)
    templates = {case: _templates(source, case, plan.repetitions.of(case)) for case in plan.cases}
    present = [case for case, found in templates.items() if found]
    copies = -(-runs // Repetitions(repetitions).runs(present))
    variants = [
        (case, case if copy == 0 else case.with_factors(threads=copy)) for copy in range(copies) for case in present
    ]
    content = {**plan.content, "repetitions": repetitions, "cases": [case_to_json(variant) for _, variant in variants]}
    out.mkdir(parents=True)
    (out / layout.PLAN_RESOLVED).write_text(json.dumps(content, indent=1))
    shutil.copy(source.plan, out / layout.PLAN)
    if source.artefacts.is_dir():
        shutil.copytree(source.artefacts, out / layout.ARTEFACTS)
    rng = np.random.default_rng(1)
    campaign = CampaignDirectory(out)
    written = 0
    for block in range(1, repetitions + 1):
        for index in rng.permutation(len(variants)):
            case, variant = variants[int(index)]
            if block > Repetitions(repetitions).of(case):
                continue
            template = templates[case][block % len(templates[case])]
            _write_run(campaign.attempt(variant.id, block, 1), variant, template, written, rng)
            written += 1
    return written


def _templates(source: CampaignDirectory, case: Case, repetitions: int) -> list[Template]:
    found = (source.latest(case.id, block) for block in range(1, repetitions + 1))
    return [_template(run) for run in found if run is not None]


def _template(run: RunDirectory) -> Template:
    files = {name: path.read_bytes() for name, path in digests.files_of(run.path)}
    read = {name: json.loads(files[name]) for name in _WRITTEN & files.keys() if name.endswith(".json")}
    other = {name: content for name, content in files.items() if name not in _WRITTEN}
    return Template(
        case=read[layout.CASE],
        run=read[layout.RUN],
        environment=read.get(layout.ENVIRONMENT),
        summary=read.get(layout.SUMMARY),
        other=other,
        other_digests={name: hashlib.sha256(content).hexdigest() for name, content in other.items()},
    )


def _write_run(directory: RunDirectory, case: Case, template: Template, number: int, rng: np.random.Generator) -> None:
    began = START + timedelta(seconds=RUN_S * number)
    place = {"case_id": case.id, "block": directory.block, "attempt": directory.attempt}
    times = {"started_utc": began.isoformat(), "finished_utc": (began + timedelta(seconds=RUN_S)).isoformat()}
    contents: dict[str, Mapping[str, Any]] = {
        layout.CASE: {**template.case, **place, "case": case_to_json(case)},
        layout.RUN: {**template.run, **place, **times, layout.GUARDED: True},
    }
    if template.summary is not None:
        contents[layout.SUMMARY] = _noisy(template.summary, rng)
    if template.environment is not None:
        contents[layout.ENVIRONMENT] = {**template.environment, "load_average": rng.uniform(0, 9, 3).tolist()}
    files = {name: json.dumps(content, indent=1).encode() for name, content in contents.items()}
    found = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    listed = digests.render(digests.Digests({**template.other_digests, **found}))
    directory.path.mkdir(parents=True)
    for name, content in _all_files(files, template, listed):
        target = directory.file(name)
        if "/" in name:
            target.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        os.write(descriptor, content)
        os.close(descriptor)
    extract.store(directory)


def _all_files(files: Mapping[str, bytes], template: Template, listed: bytes) -> Iterator[tuple[str, bytes]]:
    yield from template.other.items()
    yield from files.items()
    yield layout.COMPLETE, listed


def _noisy(summary: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """The summary with each value times its own noise; counts of right answers stay, because a file has them too."""
    metrics = {}
    for name, metric in summary["metrics"].items():
        value = metric["value"]
        exact = value is None or name.startswith("top")
        metrics[name] = metric if exact else {**metric, "value": value * float(np.exp(rng.normal(0, NOISE)))}
    return {**summary, "metrics": metrics}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="where the campaign is written; must not exist")
    parser.add_argument("--small", type=Path, default=SMALL, help="a campaign, or a tar archive of one")
    parser.add_argument("--runs", type=int, default=10_000, help="at least so many")
    parser.add_argument("--repetitions", type=int, default=30, help="blocks, the runs of each case")
    return parser.parse_args()


if __name__ == "__main__":
    main()
