# SPDX-License-Identifier: Apache-2.0
"""The kernels of a case: the profiles that its runs stored, else the structure of the engine that they ran."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from pybench.campaign.directory import RunDirectory, read_json
from pybench.campaign.layout import CASE, PROFILE
from pybench.dataset import Dataset
from pybench.errors import CorruptError
from pybench.kernels.engine import LAYERS_FILE, profile_of_engine
from pybench.kernels.profile import Profile, mean_profile, profile_from_json

MOST_PROFILES = 5  # of a case that are read: times of kernels are shares, and more runs change them little


class _Run(NamedTuple):
    folder: str
    block: int
    attempt: int


def read_profile(dataset: Dataset, case_id: str) -> Profile | None:
    """The mean of the first profiles of a case's `ok` runs. An engine without one is read from what
    TensorRT's inspector said of it: a profile without times. None: there is neither.

    Raises CorruptError for a file that is none of these.
    """
    return _profile_of(
        dataset, case_id, _runs(dataset, dataset.runs["case_id"] == case_id).get(case_id, []), MOST_PROFILES
    )


def first_profiles(dataset: Dataset) -> dict[str, Profile]:
    """Case id -> `read_profile` of its first run alone, of every case that has one."""
    runs = _runs(dataset, pl.lit(value=True))
    found = ((case, _profile_of(dataset, case, some, most=1)) for case, some in runs.items())
    return {case: profile for case, profile in found if profile is not None}


def _profile_of(dataset: Dataset, case_id: str, runs: Sequence[_Run], most: int) -> Profile | None:
    profiles: list[Profile] = []
    for run in (_directory(dataset, case_id, run) for run in runs):
        stored = run.read_profile()
        if stored is not None:
            profiles.append(_parsed(stored, run.file(PROFILE)))
        if len(profiles) == most:
            break
    if profiles:
        return mean_profile(profiles)
    row = dataset.cases[case_id].runtime_row
    is_engine = bool(runs) and row is not None and row.opens == "engine"
    return _of_engine(dataset, _directory(dataset, case_id, runs[0])) if is_engine else None


def why_no_profile(dataset: Dataset, case_id: str) -> str | None:
    """What a run of the case says of the profile that it could not make; None: nothing."""
    said = (labels.get("profile") for (case, _), labels in dataset.labels.items() if case == case_id)
    return next((str(text) for text in said if text), None)


def _runs(dataset: Dataset, which: pl.Expr | pl.Series) -> dict[str, list[_Run]]:
    """Case id -> its `ok` runs, of those rows. One look at all runs, because one for each case takes as long."""
    found: dict[str, list[_Run]] = {}
    rows = dataset.runs.filter(which, pl.col("outcome") == "ok")
    for case_id, *run in rows.select("case_id", "folder", "block", "attempt").iter_rows():
        found.setdefault(case_id, []).append(_Run._make(run))
    return found


def _directory(dataset: Dataset, case_id: str, run: _Run) -> RunDirectory:
    return RunDirectory(dataset.campaign.path / run.folder, case_id, run.block, run.attempt)


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
