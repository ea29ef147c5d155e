# SPDX-License-Identifier: Apache-2.0
"""plan.resolved.json as a value: what a campaign's plan means, read without the room that reads plans.

Where the plan says when there are enough blocks, stopped.json has how many were. It follows from the runs: whoever runs
the campaign again finds the same, and replaces it.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from pybench.campaign import storage
from pybench.campaign.directory import CampaignDirectory, read_checked, restore_hint
from pybench.campaign.environments import PlannedEnvironment
from pybench.campaign.layout import PUBLICATION, SCHEMA_VERSION
from pybench.case import Case, Repetitions, case_from_json, distinct_titles, service_levels
from pybench.case.curves import PlannedCurve
from pybench.case.repetitions import Stop, StopReason
from pybench.errors import CorruptError, UsageError

_GUARD = "sha256"  # of everything else in plan.resolved.json; absent in campaigns of an older pybench


@dataclass(frozen=True, slots=True)
class ResolvedPlan:
    """plan.resolved.json: what a plan means, in words that need no plan to be read.

    Which cases are unsupported is not here: it depends on the machine and is in each run.

    criteria: as `pybench.case.contrasts` stores them
    require: parts of a run that have to be valid
    files: value of a `file` factor -> absolute path; the sha256 of the file is part of the case's identity
    environments: name -> where it is
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
    environments: Mapping[str, PlannedEnvironment]
    protocols: tuple[str, ...]
    curves: tuple[PlannedCurve, ...]
    content: Mapping[str, Any]

    @property
    def blocks(self) -> int:
        """How many blocks the campaign has."""
        return self.repetitions.blocks(self.cases)

    @property
    def is_guarded(self) -> bool:
        """Whether the file has a digest; without one nobody can tell whether it changed."""
        return _GUARD in self.content

    def stopped(self, stop: Stop | None) -> ResolvedPlan:
        """The same after a stop, or, with None, before any."""
        return replace(self, repetitions=self.repetitions.stopped(stop))

    def named(self, name: str, directory: Path) -> Case:
        """The one case that a title or the beginning of an id names. Raises UsageError for none or several.
        `directory`: of the campaign, which the hint lists."""
        titles = distinct_titles(self.cases)
        fitting = [case for case in self.cases if name in (titles[case.id], case.title())]
        fitting = fitting or [case for case in self.cases if name and case.id.startswith(name)]
        if len(fitting) != 1:
            what = "fits no case" if not fitting else f"fits {len(fitting)} cases"
            alike = [titles[case.id] for case in self.cases if not fitting and name.startswith(f"{case.workload} ")]
            near = difflib.get_close_matches(name, alike, 1)
            listing = f"`pybench status {shlex.quote(str(directory))}` lists cases with their ids"
            hint = f"did you mean `{near[0]}`?" if near else listing
            raise UsageError(f"{name} {what} of the plan", hint=hint)
        return fitting[0]


def read_resolved_plan(campaign: CampaignDirectory) -> ResolvedPlan:
    """Reads plan.resolved.json, and where the campaign stopped; `CorruptError` when one of them is malformed."""
    plan = read_planned(campaign)
    return plan if plan.repetitions.rule is None else plan.stopped(_read_stop(campaign, plan.repetitions.rule.at_most))


def read_planned(campaign: CampaignDirectory) -> ResolvedPlan:
    """Reads plan.resolved.json alone, for whoever finds the stop anew; `CorruptError` when it is malformed, or not
    as it was written: another threshold, baseline or seed would be another campaign."""
    content = read_checked(
        campaign.plan_resolved, ("name", "seed", "repetitions", "cases", "criteria", "require", "files")
    )
    if _GUARD in content and content != guarded(content):
        what = f"{campaign.plan_resolved} has changed since it was written"
        raise CorruptError(what, hint=restore_hint(campaign.plan_resolved))
    try:
        return parse_resolved_plan(content)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CorruptError(f"{campaign.plan_resolved}: {error}", hint=restore_hint(campaign.plan_resolved)) from error


def check_plan_text(campaign: CampaignDirectory, plan: ResolvedPlan) -> None:
    """Raises CorruptError where plan.yaml is not the file that was run: reports print it beside the runs. A runner that
    was killed between the names of the two files leaves this, too.

    Publications are left to their SHA256SUMS, because names in them may be redacted; a removed file says nothing.
    """
    ran = plan.content.get("plan_sha256")
    if ran is None or not campaign.plan.is_file() or (campaign.path / PUBLICATION).exists():
        return
    if hashlib.sha256(campaign.plan.read_bytes()).hexdigest() != ran:
        raise CorruptError(
            f"{campaign.plan} is not the plan that was run: it has changed since",
            hint=f"restore it; or run the changed plan, with --out {campaign.path} or another folder; where a run was "
            "ended while it stored a changed plan, run that plan again",
        )


def _read_stop(campaign: CampaignDirectory, at_most: int) -> Stop | None:
    if not campaign.stopped.is_file():
        return None
    content = read_checked(campaign.stopped, ("after_block", "reason"))
    after, reason = content["after_block"], content["reason"]
    if not isinstance(after, int) or not 1 <= after <= at_most or reason not in get_args(StopReason):
        what = f"{campaign.stopped}: no stop of a campaign of at most {at_most} blocks"
        raise CorruptError(what, hint=restore_hint(campaign.stopped))
    return Stop(after, reason)


def store_stop(campaign: CampaignDirectory, stop: Stop | None) -> None:
    """Writes where the campaign stopped. None: it has not, and a stop from before is no longer one."""
    if stop is not None:
        content = {"schema_version": SCHEMA_VERSION, "after_block": stop.after_block, "reason": stop.reason}
        storage.write_json(campaign.stopped, content)
    else:
        try:
            campaign.stopped.unlink(missing_ok=True)
        except OSError as error:
            raise storage.storage_error(error, campaign.stopped) from error


def store_planned(campaign: CampaignDirectory, content: Mapping[str, Any]) -> None:
    """Writes plan.resolved.json, with the digest by which `read_planned` knows it."""
    storage.write_json(campaign.plan_resolved, guarded(content))


def is_stored(campaign: CampaignDirectory, content: Mapping[str, Any]) -> bool:
    """Whether plan.resolved.json has this content, with a digest or without."""
    if not campaign.plan_resolved.is_file():
        return False
    return campaign.plan_resolved.read_bytes() in (storage.json_bytes(content), storage.json_bytes(guarded(content)))


def guarded(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content with the digest of all of it: the sha256 of its canonical JSON."""
    others = {name: value for name, value in content.items() if name != _GUARD}
    canonical = json.dumps(others, sort_keys=True, separators=(",", ":"))
    return {**others, _GUARD: hashlib.sha256(canonical.encode()).hexdigest()}


def guarded_anew(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """The digest of changed content, if it had one."""
    return guarded(content) if _GUARD in content else content


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
        environments={name: PlannedEnvironment(**entry) for name, entry in content.get("environments", {}).items()},
        protocols=_protocols(content.get("protocol", {}).get("analysis", ())),
        curves=tuple(PlannedCurve(one["over"], one["metric"]) for one in content.get("curves", ())),
        content=content,
    )


def _protocols(stored: str | Sequence[str]) -> tuple[str, ...]:
    """Campaigns of before there was more than one store a single name."""
    return (stored,) if isinstance(stored, str) else tuple(stored)
