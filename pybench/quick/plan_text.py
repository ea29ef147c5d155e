# SPDX-License-Identifier: Apache-2.0
"""The plan of what `quick` measures, as YAML: an ordinary plan, which `pybench run` continues."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from pybench.campaign import layout
from pybench.catalogue.precisions import quantised_type
from pybench.errors import UsageError
from pybench.onnx_file.inputs import takes_ids
from pybench.quick.candidates import BASELINE, GPU_ENERGY_WINDOW_S, CandidateEntry, Candidates
from pybench.quick.target import Target

_REPETITIONS = re.compile(r"^repetitions: \d+$", re.MULTILINE)


def plan_text(target: Target, candidates: Candidates, repetitions: int, name: str) -> str:
    """The plan; equal targets, candidates and names give equal texts."""
    return "\n".join([*_lines(target, candidates, repetitions, name), ""])


def campaign_name(target: Target, number: int = 1) -> str:
    """`quick-MODEL`, `quick-MODEL-2`: the name of the campaign, and of the plan's file."""
    return f"quick-{target.name}" if number == 1 else f"quick-{target.name}-{number}"


def own_name(target: Target, candidates: Candidates, repetitions: int) -> str:
    """The first name whose plan file, and whose campaign, is not there or is of the same plan."""
    names = (campaign_name(target, number) for number in count(1))
    return next(name for name in names if _is_free(name, plan_text(target, candidates, repetitions, name)))


def _is_free(name: str, text: str) -> bool:
    files = (Path(f"{name}.yaml"), layout.RESULTS / name / layout.PLAN)
    return all(_is_same(path, text) for path in files if path.exists())


def refuse_other(path: Path, target: Target) -> None:
    """Raises UsageError for a file that is no plan of `quick` for this model: before anything is probed."""
    if path.exists() and _read(path).partition("\n")[0] != _header(target):
        raise _is_another(path)


def keep_plan(path: Path, text: str) -> None:
    """Writes the plan. A file that differs in more than its repetitions is somebody's, and stays: UsageError."""
    if path.exists() and not _is_same(path, text):
        raise _is_another(path)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror}", hint="give --plan a path in a writable folder"
        ) from error


def _is_another(path: Path) -> UsageError:
    return UsageError(
        f"{path} exists and is another plan", hint="give the plan another name with --plan, or remove the file"
    )


def kept_text(path: Path, text: str) -> str:
    """The plan that is there, if it is the same but for its measuring; else `text`."""
    return path.read_text(encoding="utf-8") if path.exists() and _is_same(path, text) else text


def with_repetitions(text: str, repetitions: int) -> str:
    return _REPETITIONS.sub(f"repetitions: {repetitions}", text)


# What a first look decides anew each time: a plan that differs in nothing else is the same.
_MEASURED = re.compile(r"^(repetitions|    (warmup_)?iterations|    calibration_images): \d+$", re.MULTILINE)


def _is_same(path: Path, text: str) -> bool:
    return _MEASURED.sub("", _read(path)) == _MEASURED.sub("", text)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{path} cannot be read as a plan: {error}", hint="give the plan another name with --plan"
        ) from error


def _header(target: Target) -> str:
    return (
        f"# Written by `pybench quick {target.model}`. To measure more of the same: pybench run PLAN --repetitions 30"
    )


def _lines(target: Target, candidates: Candidates, repetitions: int, name: str) -> Iterator[str]:
    yield _header(target)
    yield "schema_version: 1"
    yield f"name: {name}"
    yield "description: precisions and runtimes of one model, compared by pybench quick"
    yield "seed: 1"
    yield f"repetitions: {repetitions}"
    yield "matrix:"
    for entry in candidates.entries:
        yield from _entry(target, entry)
    if any(BASELINE in entry.precisions and len(entry.precisions) > 1 for entry in candidates.entries):
        yield "criteria:"
        yield f"  baseline: {{precision: {BASELINE}}}"
    yield "require: [timing]"


def _entry(target: Target, entry: CandidateEntry) -> Iterator[str]:
    yield "  - workload: infer"
    yield f"    model: {json.dumps(target.model)}"
    if target.sizes:
        sizes: dict[str, dict[str, int]] = {}
        for key, size in target.sizes.items():
            name, _, dimension = key.rpartition(".")
            sizes.setdefault(name, {})[dimension] = size
        yield f"    shapes: {json.dumps(sizes)}"
    yield f"    runtime: {entry.runtime}"
    if entry.provider is not None:
        yield f"    provider: {entry.provider}"
    yield f"    precision: [{', '.join(entry.precisions)}]"
    yield f"    batch: {entry.batch}"
    inputs = () if target.facts is None else target.facts.inputs
    if takes_ids(inputs) or (target.given is not None and target.given.seq_len is not None):
        yield f"    seq_len: {target.seq_len}"
    if any(quantised_type(name) is not None for name in entry.precisions) and not _is_quantised(target):
        yield f"    calibration_images: {entry.calibration_images}"
    if target.given is not None:
        yield f"    inputs: {json.dumps(target.given.named)}"
    yield f"    warmup_iterations: {entry.warmup_iterations}"
    yield f"    iterations: {entry.iterations}"
    if entry.on_gpu:
        yield f"    energy_window_s: {GPU_ENERGY_WINDOW_S}"
    else:
        yield "    idle_window_s: 0"


def _is_quantised(target: Target) -> bool:
    return target.facts is not None and target.facts.is_quantised
