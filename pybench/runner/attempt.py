# SPDX-License-Identifier: Apache-2.0
"""One attempt at a run: what its worker is told, what the worker may touch, and what came of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pybench.campaign import extract, layout, storage
from pybench.campaign.batch_job import SLURM
from pybench.campaign.directory import RunDirectory
from pybench.campaign.recipe import Recipe
from pybench.case import Case, case_to_json
from pybench.catalogue.causes import Cause
from pybench.catalogue.reasons import Reason
from pybench.errors import UnsupportedError
from pybench.launcher import FileAccess
from pybench.machine import Machine
from pybench.runner.call import RunnerCall
from pybench.runner.outcome import Outcome, judge, no_result, run_record
from pybench.runner.process import run_worker
from pybench.runner.schedule import PlannedRun
from pybench.runner.standing import AGAIN


def known_beforehand(
    cases: Iterable[Case], unsupported: Mapping[str, UnsupportedError], made: Mapping[str, Outcome], machine: Machine
) -> dict[str, Outcome]:
    """Case id -> the outcome of a case that needs no worker: the machine cannot do it, or an artefact was not made.

    unsupported: case id -> why the machine cannot do it
    made: digest -> what came of making an artefact
    """
    known = {}
    for case in cases:
        refusal = unsupported.get(case.id)
        if refusal is not None:
            known[case.id] = Outcome("unsupported", replace(refusal.reason, detail=refusal.in_one_line()))
        elif (failed := _failed_artefact(case, made, machine)) is not None:
            known[case.id] = failed
    return known


def _failed_artefact(case: Case, made: Mapping[str, Outcome], machine: Machine) -> Outcome | None:
    for role, recipe in machine.recipes(case).items():
        outcome = made.get(recipe.digest)  # None: somebody asked to stop before it was made, so no run begins
        if outcome is not None and outcome.name != "ok":
            title = _first_failed(recipe, made).title()
            said = f"{role}: {title}: {(outcome.reason and outcome.reason.detail) or outcome.name}"
            return replace(outcome, reason=outcome.reason and replace(outcome.reason, detail=said))
    return None


def _first_failed(recipe: Recipe, made: Mapping[str, Outcome]) -> Recipe:
    """What was not made, of an artefact that was not made and of all that it builds on."""
    failed = next((needed for _, needed in recipe.needs if made[needed.digest].name != "ok"), None)
    return recipe if failed is None else _first_failed(failed, made)


def perform(
    planned: PlannedRun, attempt: RunDirectory, known: Outcome | None, call: RunnerCall, beat: Callable[[], None]
) -> tuple[Outcome, float]:
    """Does a claimed attempt and completes its directory. Returns its outcome and its seconds.

    known: the outcome where it needs no worker
    beat: is called each time the wait for the worker wakes up
    """
    storage.make_folder(attempt.path)
    storage.write_json(attempt.file(layout.CASE), _request(planned, attempt, call))
    if known is not None:
        extract.finish(attempt, run_record(planned.case.id, planned.block, attempt.attempt, known, None))
        return known, 0.0
    end = run_worker(
        call.machine.launcher_in(planned.case.environment),
        [str(attempt.path.absolute()), "--campaign", str(call.campaign.path.absolute())],
        attempt.path,
        _access(planned.case, attempt, call),
        call.options.timeout_s,
        call.interruption,
        beat,
    )
    error = no_result(end)
    if error:
        shutil.rmtree(attempt.path)
        attempt.claim.unlink()
        raise error
    outcome = judge(end)
    if _is_for_batch_system_to_say(outcome, call):
        said = "the batch system ended this job; the reason is added after the job"
        return Outcome("interrupted", Reason(Cause.JOB_ENDING, said)), end.wall_s
    extract.finish(attempt, run_record(planned.case.id, planned.block, attempt.attempt, outcome, end))
    return outcome, end.wall_s


def _is_for_batch_system_to_say(outcome: Outcome, call: RunnerCall) -> bool:
    """Whether a Slurm job is being ended around this run.

    Only Slurm knows whether for its time, for a preemption or because somebody cancelled it. So the attempt stays
    open and `pybench.cluster.ending` closes it.

    The worker gets SIGTERM when the runner does, and may be seen to end before the runner's own arrives.
    """
    if outcome.name not in AGAIN or call.claimant.job is None or call.claimant.job.scheduler != SLURM:
        return False
    killed = Outcome("killed", Reason(Cause.SIGNAL, names=("SIGTERM",)))
    return call.interruption.job_is_ending or outcome == killed


def _access(case: Case, attempt: RunDirectory, call: RunnerCall) -> FileAccess:
    """A worker writes nothing of the campaign but its own run's folder."""
    factors = case.factors()
    files = tuple(Path(call.plan.files[factors[name]]) for name, _ in case.sources)
    onnx = Path(call.plan.files[str(case.model)]) if case.names_onnx else None
    return FileAccess(writes=(attempt.path.absolute(),), reads=(call.campaign.path.absolute(), *files), onnx=onnx)


def _request(planned: PlannedRun, attempt: RunDirectory, call: RunnerCall) -> dict[str, Any]:
    """The content of case.json; paths of artefacts are relative to the campaign's folder."""
    recipes = call.machine.recipes(planned.case)
    made = {role: call.campaign.artefact(recipe.digest) / recipe.file for role, recipe in recipes.items()}
    digests = {role: call.campaign.made_digest(path) for role, path in made.items()}
    factors = planned.case.factors()
    return {
        "schema_version": layout.SCHEMA_VERSION,
        "case": case_to_json(planned.case),
        "block": planned.block,
        "attempt": attempt.attempt,
        "seed": planned.seed,
        "artefacts": {role: str(path.relative_to(call.campaign.path)) for role, path in made.items()},
        "artefacts_sha256": {role: digest for role, digest in digests.items() if digest is not None},
        "files": {name: call.plan.files[factors[name]] for name, _ in planned.case.sources},
    }
