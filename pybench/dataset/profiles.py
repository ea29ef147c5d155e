# SPDX-License-Identifier: Apache-2.0
"""The kernels of a case: the profiles that its runs stored, else the structure of the engine that they ran."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pybench.campaign.directory import RunDirectory, read_json
from pybench.campaign.layout import CASE, PROFILE
from pybench.dataset import Dataset
from pybench.errors import CorruptError
from pybench.kernels.engine import LAYERS_FILE, profile_of_engine
from pybench.kernels.profile import Profile, mean_profile, profile_from_json

MOST_PROFILES = 5  # of a case that are read: times of kernels are shares, and more runs change them little


def read_profile(dataset: Dataset, case_id: str, *, most: int = MOST_PROFILES) -> Profile | None:
    """The mean of the first profiles of a case's `ok` runs, `most` of them. An engine without one is read from what
    TensorRT's inspector said of it: a profile without times. None: there is neither.

    Raises CorruptError for a file that is none of these.
    """
    runs = _runs(dataset, case_id)
    profiles: list[Profile] = []
    for run in runs:
        stored = run.read_profile()
        if stored is not None:
            profiles.append(_parsed(stored, run.file(PROFILE)))
        if len(profiles) == most:
            break
    if profiles:
        return mean_profile(profiles)
    row = dataset.cases[case_id].runtime_row
    return _of_engine(dataset, runs[0]) if runs and row is not None and row.opens == "engine" else None


def why_no_profile(dataset: Dataset, case_id: str) -> str | None:
    """What a run of the case says of the profile that it could not make; None: nothing."""
    said = (labels.get("profile") for (case, _), labels in dataset.labels.items() if case == case_id)
    return next((str(text) for text in said if text), None)


def _runs(dataset: Dataset, case_id: str) -> list[RunDirectory]:
    first = dataset.runs["case_id"].search_sorted(case_id)  # the runs are in the order of case ids
    rows = dataset.runs[first : first + dataset.plan.repetitions.asked(dataset.cases[case_id])]
    rows = rows.filter(rows["case_id"] == case_id, rows["outcome"] == "ok")
    return [
        RunDirectory(dataset.campaign.path / folder, case_id, block, attempt)
        for folder, block, attempt in rows.select("folder", "block", "attempt").iter_rows()
    ]


def _parsed(stored: Mapping[str, Any], file: Path) -> Profile:
    try:
        return profile_from_json(stored)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CorruptError(f"{file} is no profile: {error}") from error


def _of_engine(dataset: Dataset, run: RunDirectory) -> Profile | None:
    engine = read_json(run.file(CASE)).get("artefacts", {}).get("engine")
    if engine is None:
        return None
    file = (dataset.campaign.path / engine).with_name(LAYERS_FILE)
    if not file.is_file():
        return None
    try:
        return profile_of_engine(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CorruptError(f"{file} has no layers: {error}") from error
