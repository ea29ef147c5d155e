# SPDX-License-Identifier: Apache-2.0
"""What `pybench run PLAN --dry-run` says: cases, artefacts to make, and about how much time and disk they take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pybench import runner
from pybench.campaign import layout
from pybench.campaign.directory import CampaignDirectory
from pybench.campaign.environments import KnownEnvironment
from pybench.campaign.recipe import Recipe, in_making_order
from pybench.campaign.resolved_plan import ResolvedPlan
from pybench.case import Case, Repetitions, distinct_titles
from pybench.case.yields import is_required
from pybench.cli.show import SHORT_ID, duration_text
from pybench.cli.stopping import rule_text, stopping_json
from pybench.errors import UnsupportedError
from pybench.machine import CampaignEstimate, Machine, count_multiply_adds
from pybench.words import counted


@dataclass(frozen=True, slots=True)
class Preview:
    """`unsupported`: case id -> why this machine cannot run it, or None.
    `no_energy`: case id -> why its energy, which the plan requires, cannot be measured here."""

    directory: str
    cases: Sequence[Case]
    unsupported: Mapping[str, UnsupportedError | None]
    no_energy: Mapping[str, str]
    missing: Sequence[Recipe]
    repetitions: Repetitions
    blocks: int
    runs: int
    done: int
    guess: CampaignEstimate
    environments: Mapping[str, KnownEnvironment]

    def as_json(self) -> dict[str, Any]:
        titles = distinct_titles(self.cases)
        return {
            "directory": self.directory,
            "cases": [
                {
                    "case_id": case.id,
                    "title": titles[case.id],
                    "unsupported": _refusal(self.unsupported[case.id]),
                    "no_energy": self.no_energy.get(case.id),
                }
                for case in self.cases
            ],
            "artefacts": [{"digest": recipe.digest, "title": recipe.title()} for recipe in self.missing],
            "environments": {name: one.as_json() for name, one in self.environments.items()},
            "runs": self.runs,
            "done": self.done,
            **stopping_json(self.repetitions),
            "estimate_s": self.guess.seconds,
            "estimate_unknown_cases": self.guess.unknown,
            "estimate_bytes": self.guess.bytes,
        }


def _refusal(error: UnsupportedError | None) -> list[str] | None:
    """Code and sentence."""
    return None if error is None else [error.reason.stored_code, error.in_one_line()]


def preview(
    campaign: CampaignDirectory, plan: ResolvedPlan, cases: Sequence[Case], machine: Machine, shard: runner.Shard
) -> Preview:
    """Looks at what is there already, and starts nothing."""
    unsupported = {case.id: machine.unsupported(case) for case in cases}
    runnable = [case for case in cases if unsupported[case.id] is None]
    named = {f"{case.id}/{role}": recipe for case in runnable for role, recipe in machine.recipes(case).items()}
    missing = [
        recipe for recipe in in_making_order(named) if not (campaign.artefact(recipe.digest) / layout.COMPLETE).exists()
    ]
    blocks = sum(shard.takes(block) for block in range(1, plan.repetitions.blocks(cases) + 1))
    planned = list(runner.planned_runs(cases, plan.seed, plan.repetitions, shard))
    done = len(planned) - runner.tally(campaign, plan, planned).uncovered
    runs = Counter(run.case for run in planned if unsupported[run.case.id] is None)
    known_s = _known(campaign, cases)
    counted = count_multiply_adds([case for case in runs if case.id not in known_s], plan.files)
    return Preview(
        directory=str(campaign.path),
        cases=cases,
        unsupported=unsupported,
        no_energy=_without_energy(plan, runnable, machine),
        missing=missing,
        repetitions=plan.repetitions,
        blocks=blocks,
        runs=len(planned),
        done=done,
        guess=machine.estimate(runs, missing, known_s, counted),
        environments=machine.known_environments(),
    )


def _without_energy(plan: ResolvedPlan, runnable: Sequence[Case], machine: Machine) -> dict[str, str]:
    asked = [case for case in runnable if "energy" in plan.require and is_required("energy", case)]
    known = machine.with_sensors() if asked else machine
    return {case.id: why for case in asked if (why := known.why_no_energy(case)) is not None}


def _known(campaign: CampaignDirectory, cases: Sequence[Case]) -> dict[str, float]:
    """Mean seconds by case of the runs that exist."""
    ids = {case.id for case in cases}
    durations: dict[str, list[float]] = {}
    for attempt in campaign.runs():
        duration = attempt.read_run().get("duration_s") if attempt.case_id in ids else None
        if duration is not None:
            durations.setdefault(attempt.case_id, []).append(duration)
    return {case_id: sum(found) / len(found) for case_id, found in durations.items()}


def _time_text(guess: CampaignEstimate) -> str:
    if guess.unknown and not guess.seconds:
        return "an unknown time"
    return f"{'more than' if guess.unknown else 'about'} {duration_text(guess.seconds)}"


def _basis(guess: CampaignEstimate, runnable: str) -> str:
    known = f"{guess.measured} of {runnable} known from their runs, the others assumed within a factor of three"
    if not guess.unknown:
        return known
    return f"{known}, but for {guess.unknown}: what their models compute cannot be counted"


def print_preview(found: Preview) -> None:
    titles = distinct_titles(found.cases)
    for case in found.cases:
        error = found.unsupported[case.id]
        print(f"{case.id[:12]}  {titles[case.id]}" + (f"  [unsupported: {error.in_one_line()}]" if error else ""))
    for name, environment in found.environments.items():
        packages = counted(len(environment.packages), "package")
        image = "" if environment.image is None else f", image {environment.image}"
        print(f"{environment.sha256[:SHORT_ID]}  environment {name}: Python {environment.python}, {packages}{image}")
    for recipe in found.missing:
        print(f"to make  {recipe.title()}")
    codes = Counter(error.reason.stored_code for error in found.unsupported.values() if error)
    runnable = counted(len(found.cases) - codes.total(), "case")
    most, rule, stop = found.repetitions.most, found.repetitions.rule, found.repetitions.stop
    print(
        f"{counted(len(found.cases), 'case')} in {most}{counted(found.blocks, 'block')}: "
        f"{most}{counted(found.runs, 'run')} "
        f"({found.done} done), {counted(len(found.missing), 'artefact')} to make, into {found.directory}"
    )
    megabytes = f"{found.guess.bytes / 1e6:.1f} MB"
    if rule is not None:
        print(rule_text(rule) if stop is None else rule.told(stop))
    print(f"{most}{_time_text(found.guess)} and {megabytes} in all ({_basis(found.guess, runnable)})")
    if codes:
        why = ", ".join(f"{code} {number}" for code, number in codes.most_common())
        print(f"{codes.total()} of {counted(len(found.cases), 'case')} cannot run on this machine: {why}")
    for why, number in Counter(found.no_energy.values()).most_common():
        print(f"energy, which the plan requires, cannot be measured in {counted(number, 'case')}: {why}")
