# SPDX-License-Identifier: Apache-2.0
"""Makings that were ended early and whose trials are kept: the next run goes on from there.

Read from the folders that makers leave, `artefacts/.<sha256>.unfinished/`. What a trial is only its maker knows; here
they are counted.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path

from pybench.campaign import layout
from pybench.campaign.claims import is_alive, this_process
from pybench.campaign.directory import CampaignDirectory, RunDirectory
from pybench.campaign.recipe import Recipe
from pybench.catalogue.kinds import KINDS
from pybench.errors import CorruptError
from pybench.words import counted


@dataclass(frozen=True, slots=True)
class UnfinishedMaking:
    """An artefact that is not complete, and of which trials are kept.

    title: what is made, in words
    trials: how many are kept
    is_busy: whether a runner is making it now
    has_failed: whether an attempt is stored as failed, so that only `--retry-failed` goes on
    """

    digest: str
    title: str
    trials: int
    is_busy: bool
    has_failed: bool

    def text(self, directory: Path) -> str:
        """A line for people."""
        if self.is_busy:
            return f"{self.title} is being made: {counted(self.trials, 'trial')} so far"
        command = f"pybench run {shlex.quote(str(directory))}{' --retry-failed' if self.has_failed else ''}"
        return f"{self.title} was ended early: {kept_text(self.trials)}, and `{command}` goes on from there"

    def as_json(self) -> dict[str, object]:
        return {
            "artefact": self.digest,
            "title": self.title,
            "trials": self.trials,
            "busy": self.is_busy,
            "failed": self.has_failed,
        }


def unfinished_makings(campaign: CampaignDirectory) -> list[UnfinishedMaking]:
    """Those of a campaign with at least one trial, in the order of their addresses."""
    found = []
    for folder in sorted(campaign.artefacts.glob(f".*{layout.UNFINISHED_SUFFIX}")):
        digest = folder.name.removeprefix(".").removesuffix(layout.UNFINISHED_SUFFIX)
        recipe = _recipe_of(folder)
        if recipe is None or (trials := stored_trials(folder, recipe.kind)) == 0:
            continue
        claims = campaign.artefacts.glob(f".{digest}.attempt-*{layout.CLAIM_SUFFIX}")
        is_busy = any(is_alive(claim, this_process()) for claim in claims)
        ended = next((made for made in campaign.made() if made.case_id == digest), None)
        if ended is not None and _is_made(ended):
            continue  # its maker ended after it was made, and before the trials were removed
        found.append(UnfinishedMaking(digest, recipe.title(), trials, is_busy, has_failed=ended is not None))
    return found


def stored_trials(folder: Path, kind: str) -> int:
    """How many whole lines follow the first one in the file of trials; 0 where there is none."""
    name = KINDS[kind].trials
    try:
        return 0 if name is None else max((folder / name).read_bytes().count(b"\n") - 1, 0)
    except OSError:
        return 0


def kept_text(trials: int) -> str:
    """That so many trials are kept, in words."""
    return f"{counted(trials, 'trial')} {'is' if trials == 1 else 'are'} kept"


def _is_made(making: RunDirectory) -> bool:
    try:
        return bool(making.read_run()["outcome"] == "ok")
    except CorruptError:
        return False  # for readers to tell


def _recipe_of(folder: Path) -> Recipe | None:
    """Of what a folder is, without the recipes that it builds on; None where it does not say so."""
    try:
        stored = json.loads((folder / layout.RECIPE).read_text())["recipe"]
        recipe = Recipe(stored["kind"], tuple(stored["parameters"].items()))
        return recipe if recipe.kind in KINDS else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
