# SPDX-License-Identifier: Apache-2.0
"""`pybench quick`: which precision and runtime to take for one model, in minutes and without a plan."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from pybench import runner
from pybench.campaign import layout
from pybench.campaign.directory import CampaignDirectory
from pybench.campaign.resolved_plan import ResolvedPlan, parse_resolved_plan
from pybench.cli.inspect import ShapeOption, sizes_of
from pybench.cli.options import JsonOption
from pybench.cli.progress import Progress
from pybench.cli.show import print_json, say
from pybench.errors import EXIT_INTERRUPTED, InputError
from pybench.machine import Machine
from pybench.quick.candidates import Candidates, Restriction, find_candidates
from pybench.quick.plan_text import (
    campaign_name,
    keep_plan,
    kept_text,
    own_name,
    plan_text,
    refuse_other,
    with_repetitions,
)
from pybench.quick.target import Target, find_target
from pybench.runner.outcome import Outcome
from pybench.runner.schedule import PlannedRun
from pybench.words import counted

if TYPE_CHECKING:  # they compute, so they are imported when they are called
    from pybench.analysis.statistics.estimate import Estimate
    from pybench.quick.rounds import Rounds, RoundsSetup
    from pybench.quick.verdict import QuickVerdict, Row

CPU_MINUTES, ENGINE_MINUTES = 2.0, 5.0
NEXT_REPETITIONS = 30
FEWEST_RUNS = 3  # behind an interval that is printed
AGAIN = "runs that crashed, were killed or took too long"

_Runtimes = Annotated[Optional[list[str]], typer.Option(metavar="NAME", help="Only this runtime. May be repeated.")]
_Precisions = Annotated[Optional[list[str]], typer.Option(metavar="NAME", help="Only this precision. May be repeated.")]
_Batches = Annotated[
    Optional[list[int]], typer.Option(min=1, metavar="N", help="Only this batch [default: 1 and 8]. May be repeated.")
]
_Input = Annotated[
    Optional[Path],
    typer.Option("--input", metavar="FILE.npz", help="Feed these arrays, one for each input, by its name."),
]
_Minutes = Annotated[
    Optional[float],
    typer.Option(min=0.01, metavar="M", help="Begin no block that would end later [default: 2, or 5 with engines]."),
]
_Plan = Annotated[
    Optional[Path],
    typer.Option("--plan", metavar="PATH", help="Where the plan is written [default: quick-MODEL.yaml]."),
]
_Out = Annotated[
    Optional[Path],
    typer.Option("--out", "-o", metavar="DIR", help="The campaign's directory [default: results/quick-MODEL]."),
]


def quick(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="An ONNX file, or a model's name: built-in or timm/NAME.")
    ],
    runtime: _Runtimes = None,
    precision: _Precisions = None,
    batch: _Batches = None,
    shape: ShapeOption = None,
    arrays: _Input = None,
    minutes: _Minutes = None,
    plan: _Plan = None,
    out: _Out = None,
    as_json: JsonOption = False,
) -> None:
    """Measure one model here, and say which precision to take.

    Blocks of all cases are run until the ranking is decided, or the minutes are over. What was measured is an ordinary
    campaign, and `pybench run` continues it. Exit code 0: a verdict, or why there is none; 2: the model cannot be
    measured here.
    """
    from pybench.quick.rounds import MOST_BLOCKS, RoundsSetup
    from pybench.quick.verdict import judge

    begin_s = time.monotonic()
    target = find_target(model, Path() if plan is None else plan.parent, sizes_of(shape), arrays)
    if plan is not None:
        refuse_other(plan, target)
    _tell_target(target)
    found = find_candidates(target, Restriction(tuple(runtime or ()), tuple(precision or ()), tuple(batch or ())))
    _tell_candidates(found)
    name = campaign_name(target) if plan is not None else own_name(target, found, MOST_BLOCKS)
    plan = plan or Path(f"{name}.yaml")
    text = kept_text(plan, plan_text(target, found, MOST_BLOCKS, name))
    keep_plan(plan, with_repetitions(text, MOST_BLOCKS))
    campaign, resolved = _open(plan, out)
    setup = RoundsSetup(
        campaign,
        resolved,
        found.machine.asked_too(resolved.cases),
        _Lines(campaign),
        begin_s + 60 * (minutes or _minutes(found)),
        as_it_is=_is_no_fp32(target),
    )
    rounds = _measure(setup)
    if rounds.stopped_by == "interrupted":
        say(f"interrupted: the same command continues, and so does `pybench run {shlex.quote(str(plan))}`")
        raise typer.Exit(EXIT_INTERRUPTED)
    if not any(rounds.groups.values()):
        raise _unmeasurable(target, campaign, rounds)
    keep_plan(plan, with_repetitions(text, max(rounds.blocks, 1)))
    _open(plan, out)
    rows, page = _report(campaign, setup.machine, rounds)
    answer = Answer(target, name, plan, campaign, page, rounds, rows, judge(rounds, rows), found)
    answer.print_json() if as_json else answer.print()


@dataclass(frozen=True, slots=True)
class Answer:
    """Everything that is printed. `name`: of the campaign."""

    target: Target
    name: str
    plan: Path
    campaign: CampaignDirectory
    page: Path
    rounds: Rounds
    rows: Sequence[Row]
    verdict: QuickVerdict
    candidates: Candidates

    @property
    def run(self) -> str:
        """The command that continues the campaign."""
        is_usual = self.campaign.path == layout.RESULTS / self.name
        out = [] if is_usual else ["--out", str(self.campaign.path)]
        return shlex.join(["pybench", "run", str(self.plan), *out])

    @property
    def next_step(self) -> str:
        return f"{self.run} --repetitions {NEXT_REPETITIONS}"

    def print(self) -> None:
        from pybench.quick.rounds import is_repeated
        from pybench.quick.verdict import called

        table = [_HEAD, *(_cells(row) for row in self.rows if row.failed is None)]
        widths = [max(len(row[column]) for row in table) for column in range(len(_HEAD))]
        for row in table:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        for one in self.rows:
            if one.failed is not None:
                print(f"not measured: {called(one.case)}, batch {one.case.batch}: {one.failed}")
            elif one.failures:
                print(f"failed: {_failures(one, self.rounds)}")
        if any(is_repeated(why) for one in self.rows for why in one.failures):
            print(f"The same command repeats {AGAIN}, and so does `{self.run} --retry-failed`.")
        print()
        print(self.verdict.sentence)
        print(f"report: {self.page}")
        print(f"plan:   {self.plan} ({counted(self.rounds.blocks, 'block')})")
        print(f"next:   {self.next_step}")

    def print_json(self) -> None:
        print_json(
            {
                "model": self.target.model,
                "is_decided": self.verdict.is_decided,
                "verdict": self.verdict.sentence,
                "best": {str(batch): case_id for batch, case_id in self.verdict.best.items()},
                "blocks": self.rounds.blocks,
                "stopped_by": self.rounds.stopped_by,
                "rankings": {str(batch): ranking.as_json() for batch, ranking in self.rounds.rankings.items()},
                "cases": [row.as_json() for row in self.rows],
                "left_out": [{"case": one.called, "why": one.why} for one in self.candidates.left_out],
                "sizes": dict(self.target.sizes),
                "guessed": list(self.target.guessed),
                "report": str(self.page),
                "plan": str(self.plan),
                "directory": str(self.campaign.path),
                "next": self.next_step,
            }
        )


class _Lines(Progress):
    """The campaign's own progress, with the number that each run found."""

    def __init__(self, campaign: CampaignDirectory) -> None:
        super().__init__(sys.stderr)
        self._campaign = campaign

    def begin(self, pending: int, done: Mapping[str, int]) -> None:
        """Each block is a call of the runner: what is there from before is said once, by the caller."""

    def running(self, planned: PlannedRun) -> None:
        """A run takes a second: its end is enough."""

    def finished(self, planned: PlannedRun, outcome: Outcome, wall_s: float) -> None:
        from pybench.quick.rounds import latest_value
        from pybench.quick.verdict import called

        case = planned.case
        name = f"block {planned.block}  {called(case)}, batch {case.batch}"
        latest = self._campaign.latest(case.id, planned.block)
        value = latest_value(latest.read_summary()["metrics"]) if latest is not None else None
        found = f"{value:.4g} ms" if value is not None else f"{outcome.name}: {outcome.why}"
        self.note(f"{name}: {found}")


def _tell_target(target: Target) -> None:
    for key in target.guessed:
        say(f"{key} is free: {target.sizes[key]} is taken (--shape {key}=N states another)")
    facts = target.facts
    if facts is not None and _is_no_fp32(target):
        say(f"the file multiplies in {' and '.join(facts.multiplies_in)}: what is called fp32 is the file as it is")


def _is_no_fp32(target: Target) -> bool:
    return target.facts is not None and target.facts.multiplies_in not in ((), ("fp32",))


def _tell_candidates(found: Candidates) -> None:
    if found.first_look is not None:
        say(f"first look: one pass of {found.first_look.of} takes about {1000 * found.first_look.seconds:.3g} ms here")
    reasons: dict[str, list[str]] = {}
    for one in found.left_out:
        reasons.setdefault(one.what, []).append(one.called)
    for why, names in reasons.items():
        say(f"not here: {', '.join(names)}: {why}")
    say(counted(sum(len(entry.precisions) for entry in found.entries), "case"))


def _minutes(found: Candidates) -> float:
    from pybench.catalogue.runtimes import RUNTIMES

    builds = any(RUNTIMES[entry.runtime].making_s is not None for entry in found.entries)
    return ENGINE_MINUTES if builds else CPU_MINUTES


def _open(plan: Path, out: Path | None) -> tuple[CampaignDirectory, ResolvedPlan]:
    """The plan as a campaign that may be run."""
    from pybench.plan import load_plan, resolve

    loaded = load_plan(plan)
    resolved = parse_resolved_plan(resolve(loaded, loaded.cases))
    campaign = CampaignDirectory(out or layout.RESULTS / resolved.name)
    runner.open_for_running(campaign, resolved.content, plan.read_text(encoding="utf-8"))
    return campaign, resolved


def _measure(setup: RoundsSetup) -> Rounds:
    from pybench.quick.rounds import Rounds, run_rounds

    there = sum(1 for run in setup.campaign.runs() if run.case_id in {case.id for case in setup.plan.cases})
    if there:
        say(f"{counted(there, 'run')} from before in {setup.campaign.path}")
    listener = setup.listener
    try:
        return run_rounds(setup)
    except KeyboardInterrupt:  # between two runs: inside one the runner takes it
        return Rounds(stopped_by="interrupted")
    finally:
        if isinstance(listener, Progress):
            listener.close()


def _failures(row: Row, rounds: Rounds) -> str:
    """`int8 on onnxruntime (cpu), batch 1: 1 of 3 runs: crashed: ...`."""
    from pybench.quick.verdict import called

    times = rounds.groups.get(row.case.batch, {}).get(row.case.id, {})
    runs = counted(len(row.failures) + len(times), "run")
    left_out = "" if row.is_ranked else "; the verdict leaves it out"
    return f"{called(row.case)}, batch {row.case.batch}: {len(row.failures)} of {runs}: {row.failures[-1]}{left_out}"


def _unmeasurable(target: Target, campaign: CampaignDirectory, rounds: Rounds) -> InputError:
    from pybench.quick.rounds import is_repeated

    found = next(iter(rounds.failures.items()), None)
    if found is None:
        return InputError(f"{target.model}: no run ended in time", hint="raise --minutes")
    case_id, (why, *_) = found
    if not is_repeated(why):
        hint = f"`pybench inspect {target.model}` shows the file"
    else:
        logs = [attempt.file(layout.STDERR) for attempt in campaign.attempts(case_id, 1)]
        read = "".join(f"read {log}; " for log in logs[-1:] if log.exists())
        hint = f"{read}the same command repeats {AGAIN}"
    return InputError(f"{target.model} cannot be measured here: {why}", hint=hint)


def _report(campaign: CampaignDirectory, machine: Machine, rounds: Rounds) -> tuple[list[Row], Path]:
    from pybench.analysis import analyse
    from pybench.dataset import load
    from pybench.quick.verdict import rows_of
    from pybench.report import write_report

    dataset = load(campaign.path)
    rows = rows_of(analyse(dataset), campaign, machine, rounds)
    return rows, write_report(dataset)


_HEAD = ("batch", "runtime", "precision", "ms", "95 % interval", "samples/s", "J/sample", "MB", "outputs against FP32")


def interval_text(latency: Estimate | None) -> str:
    """Of two runs it would reach from a thousandth to a thousand times the value, which tells nobody anything."""
    if latency is None or not latency.has_interval:
        return "-"
    if latency.n < FEWEST_RUNS:
        return f"({latency.n} runs)"
    return f"{latency.lower:.4g} to {latency.upper:.4g}"


def energy_text(energy: Estimate | None, of: str | None) -> str:
    """`0.0123 GPU`: those of GPU and CPU are in one column, and are of different parts of the machine."""
    return "-" if energy is None else f"{energy.value:.3g} {of}"


def _cells(row: Row) -> tuple[str, ...]:
    case, latency = row.case, row.latency_ms
    runtime = f"{case.runtime}{f' ({case.provider})' if case.provider else ''}"
    return (
        str(case.batch),
        runtime,
        case.precision,
        "-" if latency is None else f"{latency.value:.4g}",
        interval_text(latency),
        "-" if row.samples_per_s is None else f"{row.samples_per_s.value:.4g}",
        energy_text(row.energy_per_sample_j, row.energy_of),
        "-" if row.model_bytes is None else f"{row.model_bytes / 1e6:.3g}",
        "-" if row.agreement is None else row.agreement.text(),
    )
