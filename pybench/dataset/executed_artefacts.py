# SPDX-License-Identifier: Apache-2.0
"""Runs that executed another build of an artefact than the campaign keeps, as where directories were put together, or
one that the campaign keeps no more.

A recipe says how an artefact is made, and two makings of one recipe differ: two builds of an engine choose other
kernels, two trainings find other weights. What the campaign says of an artefact is of the making that it keeps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pybench.campaign.directory import CampaignDirectory, read_json
from pybench.campaign.layout import CASE, PUBLICATION
from pybench.words import counted


@dataclass(frozen=True, slots=True)
class ExecutedArtefacts:
    """Path of an artefact's file, relative to the campaign -> how many of the runs that count executed it.

    other: another build of it than the campaign keeps
    gone: the campaign keeps neither the file nor what its making said
    """

    other: Mapping[str, int]
    gone: Mapping[str, int]

    def sentences(self) -> list[str]:
        """A sentence for each artefact."""
        return [
            f"{counted(runs, 'run')} executed another build of {path}: what the campaign says of this file, such as "
            "its layers, is not about them."
            for path, runs in self.other.items()
        ] + [
            f"{path} is gone, which {counted(runs, 'run')} executed: nothing says what it was, and new runs make "
            "another one."
            for path, runs in self.gone.items()
        ]


def executed_artefacts(campaign: CampaignDirectory) -> ExecutedArtefacts:
    """Artefacts that are not as `ok` runs executed them. Runs of an older pybench do not say what they executed, and
    are not counted as of another build."""
    kept = cache(lambda path: campaign.made_digest(campaign.path / Path(path)))
    is_gone = cache(lambda path: not (campaign.path / path).parent.exists())
    other: Counter[str] = Counter()
    gone: Counter[str] = Counter()
    is_published = (campaign.path / PUBLICATION).exists()
    for run in campaign.runs():
        if run.read_run()["outcome"] != "ok":  # where a making failed, nothing was executed
            continue
        stored = read_json(run.file(CASE))
        executed = stored.get("artefacts_sha256", {})
        for role, path in stored.get("artefacts", {}).items():
            if is_gone(path):
                gone[path] += not is_published  # whose making is left out by choice
            elif executed.get(role) not in (None, kept(path)):
                other[path] += 1
    return ExecutedArtefacts(dict(sorted(other.items())), dict(sorted((+gone).items())))
