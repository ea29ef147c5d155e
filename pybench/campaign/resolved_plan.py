# SPDX-License-Identifier: Apache-2.0
"""plan.resolved.json as a value: what a campaign's plan means, read without the room that reads plans."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pybench.campaign.directory import CampaignDirectory, read_checked, restore_hint
from pybench.case import Case, Repetitions, case_from_json, service_levels
from pybench.case.curves import PlannedCurve
from pybench.errors import CorruptError, UsageError


@dataclass(frozen=True, slots=True)
class ResolvedPlan:
    """plan.resolved.json: what a plan means, in words that need no plan to be read.

    Which cases are unsupported is not here: it depends on the machine and is in each run.

    criteria: as `pybench.case.contrasts` stores them
    require: parts of a run that have to be valid
    files: value of a `file` factor -> absolute path; the sha256 of the file is part of the case's identity
    protocols: names of `pybench.catalogue.protocols`
    content: all of the file, as read
    """

    name: str
    seed: int
    repetitions: Repetitions
    cases: tuple[Case, ...]
    criteria: tuple[Mapping[str, Any], ...]
    require: tuple[str, ...]
    files: Mapping[str, str]
    protocols: tuple[str, ...]
    curves: tuple[PlannedCurve, ...]
    content: Mapping[str, Any]

    @property
    def blocks(self) -> int:
        """How many blocks the campaign has."""
        return self.repetitions.blocks(self.cases)

    def named(self, name: str, directory: Path) -> Case:
        """The one case that a title or the beginning of an id names. Raises UsageError for none or several.
        `directory`: of the campaign, which the hint lists."""
        fitting = [case for case in self.cases if case.title() == name]
        fitting = fitting or [case for case in self.cases if name and case.id.startswith(name)]
        if len(fitting) != 1:
            what = "fits no case" if not fitting else f"fits {len(fitting)} cases"
            alike = [case.title() for case in self.cases if not fitting and name.startswith(f"{case.workload} ")]
            near = difflib.get_close_matches(name, alike, 1)
            listing = f"`pybench status {shlex.quote(str(directory))}` lists cases with their ids"
            hint = f"did you mean `{near[0]}`?" if near else listing
            raise UsageError(f"{name} {what} of the plan", hint=hint)
        return fitting[0]


def read_resolved_plan(campaign: CampaignDirectory) -> ResolvedPlan:
    """Reads plan.resolved.json; `CorruptError` when it is malformed."""
    content = read_checked(
        campaign.plan_resolved, ("name", "seed", "repetitions", "cases", "criteria", "require", "files")
    )
    try:
        return parse_resolved_plan(content)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CorruptError(f"{campaign.plan_resolved}: {error}", hint=restore_hint(campaign.plan_resolved)) from error


def parse_resolved_plan(content: Mapping[str, Any]) -> ResolvedPlan:
    """The content of plan.resolved.json as a value. Raises ValueError, TypeError or KeyError when it is malformed."""
    return ResolvedPlan(
        name=content["name"],
        seed=int(content["seed"]),
        repetitions=Repetitions.from_json(content),
        cases=service_levels.from_json((case_from_json(stored) for stored in content["cases"]), content),
        criteria=tuple(content["criteria"]),
        require=tuple(content["require"]),
        files={value: entry["path"] for value, entry in content["files"].items()},
        protocols=_protocols(content.get("protocol", {}).get("analysis", ())),
        curves=tuple(PlannedCurve(one["over"], one["metric"]) for one in content.get("curves", ())),
        content=content,
    )


def _protocols(stored: str | Sequence[str]) -> tuple[str, ...]:
    """Campaigns of before there was more than one store a single name."""
    return (stored,) if isinstance(stored, str) else tuple(stored)
