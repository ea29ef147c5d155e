# SPDX-License-Identifier: Apache-2.0
"""What `run` and `submit` are given: a plan with the directory that it fills, or a campaign that exists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from errno import EACCES, EROFS
from pathlib import Path

from pybench import runner
from pybench.campaign import layout
from pybench.campaign.directory import CampaignDirectory
from pybench.campaign.resolved_plan import ResolvedPlan, check_plan_text, is_stored, parse_resolved_plan, read_planned
from pybench.case import Case, catalogue_of, distinct_titles
from pybench.case.factors import factors_of
from pybench.cli.options import joined
from pybench.cli.show import say
from pybench.document import Place
from pybench.errors import PlanError, RefusedValuesError, UsageError


@dataclass(frozen=True, slots=True)
class Source:
    """What is to be run.

    text: of the plan that was given; None where it was a campaign's directory, whose own plan stays as it is
    file: the plan that was given
    places: (factor, value) -> where that plan names a model or file
    """

    campaign: CampaignDirectory
    plan: ResolvedPlan
    text: str | None = None
    file: str = ""
    places: Mapping[tuple[str, str], Place] = field(default_factory=dict)

    @contextmanager
    def judged(self) -> Iterator[None]:
        """Values that are found wrong inside become errors of the plan, each with its place."""
        try:
            yield
        except RefusedValuesError as error:
            if self.text is None:
                raise
            problems = [
                self.places[one.factor, one.value].problem(f"`{one.factor}`: {one.what}", one.hint)
                for one in error.values
            ]
            raise PlanError(self.file, problems) from error

    def refuse_changed_files(self, cases: Sequence[Case]) -> None:
        """Raises InputError where files of these cases have changed since the plan of a campaign's directory was read.
        The files of a plan that was given have just been read."""
        if self.text is None and any(case.sources for case in cases):
            from pybench.plan.files import refuse_changed

            refuse_changed(cases, self.plan.files)

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Where a campaign's directory was given and cannot be written, the hint names the plan: --out requires it."""
        try:
            yield
        except UsageError as error:
            cause = error.__cause__
            if self.text is not None or not isinstance(cause, OSError) or cause.errno not in (EACCES, EROFS):
                raise
            hint = "ask the owner for permission to write, or give the plan file and another folder with --out"
            raise UsageError(error.message, hint=hint) from error


def read_source(path: Path, out: Path | None, overrides: Sequence[str] | None, repetitions: int | None) -> Source:
    """A plan with the campaign's directory that is meant, or a campaign that exists.

    A directory that the plan cannot fill is refused here, so that a dry run refuses what the run would.
    """
    if CampaignDirectory(path).plan_resolved.is_file():
        if overrides or repetitions or out:
            raise UsageError(
                f"{path} is an existing campaign, and --set, --repetitions and --out cannot be combined with it",
                hint="give the plan file to change it (--set, --repetitions) or to run it in another folder (--out)",
            )
        campaign = CampaignDirectory(path)
        resolved = read_planned(campaign)
        check_plan_text(campaign, resolved)
        return Source(campaign, resolved)
    from pybench.plan import load_plan, resolve

    plan = load_plan(path, tuple(overrides or ()), repetitions=repetitions)
    resolved = parse_resolved_plan(resolve(plan, plan.cases))
    campaign = CampaignDirectory(out or layout.RESULTS / resolved.name)
    runner.planned_before(campaign, resolved)
    return Source(campaign, resolved, path.read_text(encoding="utf-8"), str(path), plan.places)


def open_source(source: Source) -> None:
    """Creates the campaign's directory, or brings its plan up to date and says what that changes."""
    if source.text is not None:
        _name_changes(source.plan, *runner.open_for_running(source.campaign, source.plan.content, source.text))


@contextmanager
def opened(source: Source) -> Iterator[None]:
    """`open_source` for a block, in a directory that is there: where the block raises, the former plan is back."""
    if source.text is None:
        yield
        return
    with runner.opened_for_running(source.campaign, source.plan.content, source.text) as changes:
        yield
    _name_changes(source.plan, *changes)


def make_directory(source: Source) -> None:
    """Creates the campaign's directory where there is none; one that is there keeps its plan."""
    if source.text is not None and runner.planned_before(source.campaign, source.plan) is None:
        open_source(source)


def open_for_trial(source: Source) -> bool:
    """For a dry run, whose scripts need a directory: says what `open_source` would change of one that is there.
    Returns whether it holds this plan."""
    if source.text is None:
        return True
    make_directory(source)
    name_coming_changes(source)
    return is_stored(source.campaign, source.plan.content)


def name_coming_changes(source: Source) -> None:
    """Says what `open_source` would, and changes nothing."""
    _name_changes(source.plan, *runner.changed_cases(runner.planned_before(source.campaign, source.plan), source.plan))


def selected_cases(plan: ResolvedPlan, filters: list[str] | None) -> frozenset[str] | None:
    expression = joined(filters)
    if expression is None:
        return None
    from pybench.plan.filter import parse_filter

    accepts = parse_filter(expression, factors_of(catalogue_of(plan.cases)))
    selected = frozenset(case.id for case in plan.cases if accepts(case))
    if not selected:
        raise UsageError(f"--filter {expression}: no case matches", hint="`pybench expand PLAN` lists the cases")
    return selected


def _name_changes(plan: ResolvedPlan, added: Sequence[Case], orphaned: Sequence[Case]) -> None:
    titles = distinct_titles([*plan.cases, *orphaned])  # all of the former plan and of this one
    for what, cases in (
        ("added to the plan:", added),
        ("removed from the plan, kept on disk but not counted:", orphaned),
    ):
        for case in cases:
            say(f"{what} {case.id[:12]} {titles[case.id]}")
