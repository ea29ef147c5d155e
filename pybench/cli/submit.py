# SPDX-License-Identifier: Apache-2.0
"""`pybench submit`: a campaign as the jobs of a batch cluster."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from pybench import runner
from pybench.campaign.directory import CampaignDirectory
from pybench.campaign.resolved_plan import ResolvedPlan
from pybench.case import Case
from pybench.cli.containers import not_here, refuse_environments, refuse_images
from pybench.cli.options import (
    DEFAULT_TIMEOUT_S,
    FilterOption,
    JsonOption,
    NoSensorOption,
    OutOption,
    RepetitionsOption,
    RetryFailedOption,
    SetOption,
    TimeoutOption,
)
from pybench.cli.show import print_json, say
from pybench.cli.source import Source, make_directory, open_for_trial, opened, read_source, selected_cases
from pybench.cli.stopping import refuse_jobs
from pybench.errors import UsageError
from pybench.words import counted

if TYPE_CHECKING:
    from pybench.cluster.script import SubmissionWork
    from pybench.cluster.site import KubernetesSite, SlurmSite


_Site = Annotated[
    Optional[Path],
    typer.Option("--site", metavar="SITE.yaml", help="Site file: how jobs are submitted on this cluster."),
]


_Shards = Annotated[
    Optional[int],
    typer.Option(
        "--shards",
        min=1,
        metavar="N",
        help="Divide the blocks among N jobs [default: as before, or one job for each block].",
    ),
]


_DryRun = Annotated[bool, typer.Option("--dry-run", "-n", help="Write the scripts, submit nothing.")]


def _print_example(kind: str | None) -> None:
    if kind is None:
        return
    from pybench.cluster.site import KINDS, example_site

    if kind not in KINDS:
        raise UsageError(f"--example-site {kind}: unknown kind", hint=f"one of {', '.join(KINDS)}")
    print(example_site(kind), end="")
    raise typer.Exit


_ExampleSite = Annotated[
    Optional[str],
    typer.Option(
        "--example-site",
        metavar="KIND",
        help="Print a commented site file for slurm or kubernetes, and exit.",
        is_eager=True,
        callback=_print_example,
    ),
]


def submit(
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="The plan, or a campaign's directory to continue.")],
    site: _Site = None,
    out: OutOption = None,
    shards: _Shards = None,
    filters: FilterOption = None,
    overrides: SetOption = None,
    repetitions: RepetitionsOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT_S,
    retry_failed: RetryFailedOption = False,
    no_sensor: NoSensorOption = False,
    dry_run: _DryRun = False,
    as_json: JsonOption = False,
    example_site: _ExampleSite = None,
) -> None:
    """Submit a campaign to a batch cluster.

    Writes scripts that can be read, and submits what is missing. Blocks stay whole: each job runs some blocks on one
    node. Work that earlier submissions still have in the queue is left to them.
    """
    if site is None:
        raise UsageError("--site is missing", hint="`pybench submit --example-site slurm > site.yaml` makes one")
    from pybench.cluster.site import KubernetesSite, SlurmSite, read_site

    found = read_site(site)
    source = read_source(plan, out, overrides, repetitions)
    if source.plan.repetitions.rule is not None:
        refuse_jobs()
    request = _Request(
        source,
        site.read_text(encoding="utf-8"),
        shards,
        runner.Options(selected=selected_cases(source.plan, filters), retry_failed=retry_failed),
        _arguments(filters, timeout, retry_failed, no_sensor),
        as_json,
    )
    pending = {run.case.id for run in runner.pending_runs(request.campaign, request.plan, request.options)}
    source.refuse_changed_files([case for case in request.cases if case.id in pending])
    if isinstance(found, SlurmSite) and found.image:
        refuse_environments(request.cases)
    if isinstance(found, KubernetesSite):
        refuse_images(request.cases, source.plan.environments)
    for name, path in not_here(source.plan.environments).items():
        say(f"environment {name}: {path} is not on this machine; every node has to have it there")
    with source.explained():
        if isinstance(found, KubernetesSite):
            _write_for_kubernetes(request, found, is_tried=dry_run)
        elif dry_run:
            _write_for_slurm(request, found)
        else:
            _submit_to_slurm(request, found)


def _arguments(filters: list[str] | None, timeout: float, retry_failed: bool, no_sensor: bool) -> tuple[str, ...]:
    """What every `pybench run` of the submission is given beside its shard."""
    found = [word for expression in filters or () for word in ("--filter", expression)]
    found += ["--timeout", f"{timeout:g}"] if timeout != DEFAULT_TIMEOUT_S else []
    return (*found, *(["--retry-failed"] if retry_failed else []), *(["--no-sensor"] if no_sensor else []))


@dataclass(frozen=True, slots=True)
class _Request:
    """What `submit` was asked for.

    shards: as asked, or None
    arguments: for every `pybench run` of it
    """

    source: Source
    site_text: str
    shards: int | None
    options: runner.Options
    arguments: tuple[str, ...]
    as_json: bool

    @property
    def campaign(self) -> CampaignDirectory:
        return self.source.campaign

    @property
    def plan(self) -> ResolvedPlan:
        return self.source.plan

    @property
    def cases(self) -> list[Case]:
        """Those that are selected."""
        selected = self.options.selected
        return [case for case in self.plan.cases if selected is None or case.id in selected]

    def work(self, folder: Path, count: int) -> SubmissionWork:
        """Jobs start elsewhere: their paths are absolute."""
        from pybench.cluster.script import SubmissionWork
        from pybench.cluster.submission import planned_digest

        path, planned = self.campaign.path.absolute(), planned_digest(self.plan)
        return SubmissionWork(path, self.plan.name, folder.absolute(), count, self.arguments, planned)


def _submit_to_slurm(request: _Request, site: SlurmSite) -> None:
    from pybench.cluster import slurm, submission
    from pybench.cluster.ending import close_ended
    from pybench.cluster.signals import held_signals

    slurm.find_sbatch()
    if site.image:
        submission.check_image(site.image)
    make_directory(request.source)
    with submission.locked(request.campaign):
        former = submission.submissions(request.campaign)
        count = submission.shard_count(request.plan, request.shards, former)
        live = submission.live_shards(former, count)
        close_ended(request.campaign, request.plan)
        missing = submission.missing_shards(request.campaign, request.plan, request.options, count)
        submission.refuse_elsewhere(request.campaign, request.plan, missing, count)
        number = submission.next_number(request.campaign)
        work = request.work(request.campaign.submission(number), count)
        busy = submission.left_to(live, missing, work)
        wanted = [shard for shard in missing if shard not in busy]
        scripts = submission.scripts_of(work, site, wanted, request.cases, again=bool(former)) if wanted else []
        with held_signals() as came, opened(request.source):  # before a job may begin, which reads the plan
            if wanted:
                submission.write_scripts(work.folder, scripts, request.site_text)
                submitted = submission.submit(number, work, scripts, bool(site.job.throttle), came)
    if request.as_json:
        jobs = [{"role": job.role, "id": job.id} for job in submitted.jobs] if wanted else []
        print_json({"directory": str(request.campaign.path), "shards": wanted, "of": count, "jobs": jobs})
    elif wanted:
        for job in submitted.jobs:
            print(f"{job.id}  {job.role}  {submitted.folder / job.script}")
        say(f"{_extent(wanted, count)} submitted{_left_to(busy)}")
    else:
        print(f"nothing to submit{_left_to(busy)}")


def _write_for_slurm(request: _Request, site: SlurmSite) -> None:
    """The scripts and no job: into a folder of their own, which the next such call replaces."""
    from pybench.cluster import submission

    is_current = open_for_trial(request.source)
    with submission.locked(request.campaign):
        former = submission.submissions(request.campaign)
        count = submission.shard_count(request.plan, request.shards, former)
        wanted = submission.missing_shards(request.campaign, request.plan, request.options, count)
        work = request.work(request.campaign.cluster / submission.DRY_RUN, count)
        scripts = submission.scripts_of(work, site, wanted, request.cases, again=bool(former)) if wanted else []
        shutil.rmtree(work.folder, ignore_errors=True)
        submission.write_scripts(work.folder, scripts, request.site_text)
    _print_written(request, wanted, count, [work.folder / script.name for script in scripts])
    if scripts and is_current and not request.as_json:
        say("submit them in this order, each with --dependency=afterany:JOB for the jobs before it")
    _name_former_plan(request, is_current)


def _write_for_kubernetes(request: _Request, site: KubernetesSite, *, is_tried: bool) -> None:
    """The YAML of a submission. `is_tried`: into the folder that the next dry run replaces; no number is taken."""
    from pybench.cluster import submission

    is_current = not is_tried or open_for_trial(request.source)
    make_directory(request.source)
    with submission.locked(request.campaign):
        count = submission.shard_count(request.plan, request.shards, ())
        wanted = submission.missing_shards(request.campaign, request.plan, request.options, count)
        with nullcontext() if is_tried else opened(request.source):
            paths = [_write_job(request, site, wanted, count, is_tried=is_tried)] if wanted else []
    _print_written(request, wanted, count, paths)
    if wanted and not request.as_json and not is_tried:
        where = f"{request.campaign.path} has to be {site.pod.directory} in the pods"
        say(f"next: kubectl apply -f {paths[0]}; {where}")
    _name_former_plan(request, is_current)


def _write_job(request: _Request, site: KubernetesSite, wanted: Sequence[int], count: int, *, is_tried: bool) -> Path:
    """The file with the Job for these shards."""
    from pybench.cluster import submission
    from pybench.cluster.kubernetes import job_name, job_yaml

    number = submission.next_number(request.campaign)
    text = job_yaml(job_name(request.plan.name, number), site, wanted, count, request.arguments)
    submitted, tried = request.campaign.submission(number), request.campaign.cluster / submission.DRY_RUN
    folder = (tried if is_tried else submitted).absolute()
    script = submission.Script("job.yaml", submission.SHARDS, text)
    if is_tried:
        shutil.rmtree(folder, ignore_errors=True)
    submission.write_scripts(folder, [script], request.site_text)
    return folder / script.name


def _name_former_plan(request: _Request, is_current: bool) -> None:
    """Why scripts of a dry run would not do what they were written for."""
    if not is_current:
        say(f"{request.campaign.path} keeps its former plan, which these scripts would run; `submit` stores this one")


def _print_written(request: _Request, wanted: Sequence[int], count: int, paths: Sequence[Path]) -> None:
    if request.as_json:
        scripts = [str(path) for path in paths]
        print_json({"directory": str(request.campaign.path), "shards": wanted, "of": count, "scripts": scripts})
        return
    for path in paths:
        print(path)
    say(f"{_extent(wanted, count)}, nothing submitted" if wanted else "nothing to submit")


def _extent(wanted: Sequence[int], count: int) -> str:
    return f"{len(wanted)} of {counted(count, 'shard')}"


def _left_to(busy: Sequence[int]) -> str:
    return f"; {counted(len(busy), 'shard')} already in the queue" if busy else ""
