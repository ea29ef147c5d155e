# SPDX-License-Identifier: Apache-2.0
"""Runs that executed another build of an artefact than the campaign keeps, as where directories were put together.

A recipe says how an artefact is made, and two makings of one recipe differ: two builds of an engine choose other
kernels, two trainings find other weights. What the campaign says of an artefact is of the making that it keeps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from pybench.campaign.directory import CampaignDirectory, read_json
from pybench.campaign.layout import CASE
from pybench.words import counted


def other_builds(campaign: CampaignDirectory) -> dict[str, int]:
    """Path of an artefact's file, relative to the campaign -> how many of the runs that count executed another build.

    Runs of an older pybench do not say what they executed, and are not counted.
    """
    kept = cache(lambda path: campaign.made_digest(campaign.path / Path(path)))
    found: Counter[str] = Counter()
    for run in campaign.runs():
        stored = read_json(run.file(CASE))
        made, executed = stored.get("artefacts", {}), stored.get("artefacts_sha256", {})
        found.update(path for role, path in made.items() if executed.get(role) not in (None, kept(path)))
    return dict(sorted(found.items()))


def describe(found: Mapping[str, int]) -> list[str]:
    """A sentence for each artefact."""
    return [
        f"{counted(runs, 'run')} executed another build of {path}: what the campaign says of this file, such as its "
        "layers, is not about them."
        for path, runs in found.items()
    ]
