# SPDX-License-Identifier: Apache-2.0
"""`pybench run`: what is missing of a campaign is done, with a line of progress."""

from __future__ import annotations

import signal
import sys
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Optional

import typer

from pybench import runner
from pybench.campaign import storage
from pybench.campaign.directory import CampaignDirectory
from pybench.campaign.environments import refuse_changed_environments
from pybench.campaign.resolved_plan import ResolvedPlan, read_resolved_plan
from pybench.case import Case
from pybench.cli.batch_jobs import close_ended_quietly
from pybench.cli.containers import image_opener, launcher_for
from pybench.cli.dry_run import preview, print_preview
from pybench.cli.options import (
    DEFAULT_TIMEOUT_S,
    ContainerOption,
    EngineOption,
    FilterOption,
    JsonOption,
    NoSensorOption,
    OutOption,
    PlanOrDirectory,
    RepetitionsOption,
    RetryFailedOption,
    SetOption,
    TimeoutOption,
)
from pybench.cli.progress import Progress
from pybench.cli.show import counts_text, print_json
from pybench.cli.source import Source, name_coming_changes, open_source, read_source, selected_cases
from pybench.cli.stopping import LastBlock, as_stopped, progress_text, refuse_parts, stopping_json
from pybench.cli.tally import name_uncounted, name_unfinished, tally_json
from pybench.errors import EXIT_CHECKPOINTED, EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK, UsageError
from pybench.machine import Machine
from pybench.words import counted

_MaxFailures = Annotated[Optional[int], typer.Option(min=1, metavar="N", help="Stop after N failed runs.")]


_Rerun = Annotated[
    Optional[list[str]],
    typer.Option(
        "--rerun", metavar="CASE", help="Repeat every run of this case (beginning of its id), with each call anew."
    ),
]


_Shard = Annotated[str, typer.Option(metavar="I/N", help="Only every N-th block, starting with block I.")]


_WholeBlocks = Annotated[
    bool,
    typer.Option(
        "--whole-blocks",
        help="Repeat a whole block that began on another machine or GPU, or with another number of CPUs.",
    ),
]


_ArtefactsOnly = Annotated[
    bool,
    typer.Option("--artefacts-only", help="Make the artefacts of the selected cases, such as engines; start no run."),
]


_DryRun = Annotated[bool, typer.Option("--dry-run", "-n", help="List cases, artefacts, time and disk; start nothing.")]


def run(
    plan: PlanOrDirectory,
    out: OutOption = None,
    filters: FilterOption = None,
    overrides: SetOption = None,
    repetitions: RepetitionsOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT_S,
    max_failures: _MaxFailures = None,
    retry_failed: RetryFailedOption = False,
    rerun: _Rerun = None,
    shard: _Shard = "1/1",
    whole_blocks: _WholeBlocks = False,
    no_sensor: NoSensorOption = False,
    artefacts_only: _ArtefactsOnly = False,
    dry_run: _DryRun = False,
    as_json: JsonOption = False,
    container: ContainerOption = None,
    engine: EngineOption = None,
) -> None:
    """Run a plan, or continue it.

    Finished runs are kept; missing, killed and interrupted runs are done. Ctrl-C finishes the current run and stops; a
    second Ctrl-C stops that run, too. Exit code 0: every selected run ended ok, oom or unsupported, at least one is ok,
    and everything in the plan's `require` is valid. Exit code 75: SIGUSR1 stopped the campaign; the same command
    continues it, but begins --rerun anew.
    """
    source = read_source(plan, out, overrides, repetitions)
    campaign, resolved = source.campaign, source.plan
    if resolved.repetitions.rule is not None and not artefacts_only:
        refuse_parts(filters, shard)
    options = runner.Options(
        shard=_shard(resolved, shard),
        selected=selected_cases(resolved, filters),
        rerun=frozenset(_case_id(resolved, prefix) for prefix in rerun or []),
        timeout_s=timeout,
        max_failures=max_failures,
        retry_failed=retry_failed,
        whole_blocks=whole_blocks,
        may_measure_sensors=not no_sensor,
    )
    selected = [case for case in resolved.cases if options.selected is None or case.id in options.selected]
    pending = {run.case.id for run in runner.pending_runs(campaign, resolved, options)}
    launcher = launcher_for(container, engine, selected)
    open_image = image_opener(engine, selected, resolved.environments)
    with source.judged():
        machine = Machine.ask(selected, launcher, resolved.environments, open_image)
        machine = _with_files(source, selected, pending, machine, options, is_all=artefacts_only)
    refuse_changed_environments(campaign, machine.known_environments())
    if dry_run:
        _preview(source, selected, machine, options.shard, as_json)
        return
    open_source(source)
    close_ended_quietly(campaign, resolved)
    name_uncounted(runner.uncounted(campaign, resolved), resolved)
    with source.explained():
        if artefacts_only:
            raise typer.Exit(_make_artefacts(campaign, resolved, options, machine, as_json))
        result = _do(campaign, resolved, options, machine)
    _print_result(campaign, result, is_rerun=bool(rerun), as_json=as_json)
    raise typer.Exit(_exit_code(result))


def _with_files(
    source: Source,
    selected: Sequence[Case],
    pending: Collection[str],
    machine: Machine,
    options: runner.Options,
    *,
    is_all: bool,
) -> Machine:
    """The machine after the files of the pending cases (their ids) were compared with the plan and opened.

    Files of the other cases are compared, too, where whole blocks may be done again or, with `is_all`, any artefact
    may be made. Raises what `Source.refuse_changed_files` and `Machine.open_files` raise.
    """
    is_all = is_all or bool(options.whole_blocks and pending)
    runnable = [case for case in selected if machine.unsupported(case) is None]
    source.refuse_changed_files([case for case in runnable if is_all or case.id in pending])
    return machine.open_files(selected, pending, source.plan.files)


def _preview(source: Source, selected: Sequence[Case], machine: Machine, shard: runner.Shard, as_json: bool) -> None:
    name_coming_changes(source)
    found = preview(source.campaign, as_stopped(source.campaign, source.plan), selected, machine, shard)
    print_json(found.as_json()) if as_json else print_preview(found)


def _do(campaign: CampaignDirectory, plan: ResolvedPlan, options: runner.Options, machine: Machine) -> runner.Tally:
    """Runs what is missing, with a line of progress."""
    rule = plan.repetitions.rule
    progress = Progress(sys.stderr, plan.cases, plan.repetitions.most)
    if rule is not None:
        options = replace(options, last_block=LastBlock(campaign, plan, rule, progress.note))
    try:
        return runner.run_campaign(campaign, plan, options, machine, progress)
    except UsageError as error:
        if error.hint in storage.FULL.values():
            raise UsageError(error.message, hint=f"{error.hint}; finished runs are kept") from error
        raise
    finally:
        progress.close()


def _exit_code(result: runner.Tally) -> int:
    if result.checkpointed and result.left:
        return EXIT_CHECKPOINTED
    if result.interrupted and not result.checkpointed:
        return EXIT_INTERRUPTED
    return EXIT_OK if result.is_success else EXIT_FAILED


def _make_artefacts(
    campaign: CampaignDirectory, plan: ResolvedPlan, options: runner.Options, machine: Machine, as_json: bool
) -> int:
    """Makes what is missing, says what failed, and returns the exit code."""
    progress = Progress(sys.stderr)
    try:
        outcomes, stopped_by = runner.make_artefacts(campaign, plan, options, machine, progress)
    finally:
        progress.close()
    counts = Counter(outcome.name for outcome in outcomes.values())
    if as_json:
        print_json({"directory": str(campaign.path), "artefacts": dict(counts), "interrupted": stopped_by is not None})
    else:
        for digest, outcome in outcomes.items():
            if outcome.name != "ok":
                print(f"{digest[:12]}  {outcome.name}: {outcome.why}")
        made = f"{counts_text(counts)} of {counted(len(outcomes), 'artefact')}" if outcomes else "no artefact to make"
        print(f"{made} in {campaign.path}")
        _name_failures(counts, "artefact")
        selected = [case for case in plan.cases if options.selected is None or case.id in options.selected]
        if left := sum(machine.unsupported(case) is not None for case in selected):
            print(
                f"no artefact was made for {counted(left, 'case')} that cannot run on this machine: "
                "--dry-run lists the reasons"
            )
    if stopped_by is not None:
        return EXIT_CHECKPOINTED if stopped_by == signal.SIGUSR1 else EXIT_INTERRUPTED
    return EXIT_OK if set(counts) <= {"ok"} else EXIT_FAILED


def _shard(plan: ResolvedPlan, text: str) -> runner.Shard:
    shard = runner.parse_shard(text)
    if not any(shard.takes(block) for block in range(1, plan.blocks + 1)):
        raise UsageError(
            f"--shard {text}: has no block: the plan has {plan.blocks} blocks, one for each repetition",
            hint=f"use at most {plan.blocks} shards",
        )
    return shard


def _case_id(plan: ResolvedPlan, prefix: str) -> str:
    fitting = [case.id for case in plan.cases if case.id.startswith(prefix)]
    if len(fitting) != 1:
        what = "matches no case" if not fitting else f"matches {len(fitting)} cases"
        raise UsageError(
            f"--rerun {prefix} {what} of the plan", hint="`pybench expand PLAN` lists cases with their ids"
        )
    return fitting[0]


def _name_failures(outcomes: Mapping[str, int], what: str) -> None:
    failed = runner.failures(outcomes)
    if failed:
        stays, each = ("stays as it is", "it") if failed == 1 else ("stay as they are", "them")
        print(f"{counted(failed, what)} failed and {stays}: --retry-failed repeats {each}")


def _name_packages(campaign: CampaignDirectory, plan: ResolvedPlan) -> None:
    """What to do after a repair, where runs with rows of a package have failed."""
    packages: dict[str, None] = {}
    for case in plan.cases:
        plugins = case.plugins()
        planned = list(runner.planned_runs([case], plan.seed, plan.repetitions)) if plugins else []
        if runner.failures(runner.tally(campaign, plan, planned).outcomes):
            packages |= dict.fromkeys(plugin.distribution for plugin in plugins)
    if packages:
        names = " or ".join(packages)
        print(f"if you change {names}, choose another folder with --out: a campaign keeps one version of a package")


def _print_result(campaign: CampaignDirectory, result: runner.Tally, *, is_rerun: bool, as_json: bool) -> None:
    plan = read_resolved_plan(campaign)
    if as_json:
        print_json({"directory": str(campaign.path), **tally_json(result), **stopping_json(plan.repetitions)})
        return
    print(f"{counts_text(result.outcomes)} of {counted(result.outcomes.total(), 'run')} in {campaign.path}")
    _name_failures(result.outcomes, "run")
    _name_packages(campaign, plan)
    for name, count in sorted(result.invalid.items()):
        told = Counter({reason: runs for (part, reason), runs in result.reasons.items() if part == name})
        why = f", mostly {told.most_common(1)[0][0]}" if told else ""
        print(f"required by the plan but not valid: {name} in {counted(count, 'run')}{why}")
    if plan.repetitions.rule is not None:
        print(progress_text(campaign, plan, plan.repetitions.rule))
    if result.busy:
        print(f"in progress in another process: {counted(result.busy, 'run')}")
    if result.too_many_failures:
        print("stopped after --max-failures failures")
    if result.unrepeated:
        print(f"not repeated: {counted(result.unrepeated, 'run')}")
    if result.interrupted:
        print(
            "interrupted: the same command begins --rerun anew; without --rerun it does only what is missing"
            if is_rerun
            else "interrupted: run the same command again to continue"
        )
        name_unfinished(campaign)
