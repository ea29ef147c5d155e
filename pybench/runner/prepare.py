# SPDX-License-Identifier: Apache-2.0
"""Artefacts: each made once in a campaign, by a worker of its own, before the runs that need it.

An artefact is made in a hidden folder and renamed to its address when it is complete, so nobody opens half of one. Two
runners share the work by claims, as with runs: who finds one being made goes on to the next. What a maker found before
it was ended early is in a hidden folder of its own, until the artefact is complete.
"""

from __future__ import annotations

import itertools
import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pybench.campaign import layout, storage
from pybench.campaign.claims import Claimant, claim, is_alive, is_dead, owner_text, touch
from pybench.campaign.directory import CampaignDirectory, RunDirectory
from pybench.campaign.recipe import Recipe
from pybench.case.case import ROWS
from pybench.catalogue.catalogue import Row
from pybench.catalogue.causes import Cause
from pybench.catalogue.kinds import KINDS
from pybench.catalogue.models import Model
from pybench.catalogue.reasons import Reason
from pybench.catalogue.stored import row_to_json
from pybench.errors import CorruptError
from pybench.launcher import LOCAL, FileAccess, Launcher
from pybench.runner.interruption import Interruption
from pybench.runner.outcome import Outcome, judge, no_result, outcome_from_json, run_record
from pybench.runner.process import WorkerEnd, run_worker
from pybench.runner.standing import AGAIN
from pybench.runner.unfinished import kept_text, stored_trials

WAIT_S = 0.5  # between two looks at an artefact that another runner is making


@dataclass(frozen=True, slots=True)
class Maker:
    """What making needs to know.

    files: value of a `file` factor -> absolute path of the user's file
    announce: is called before an artefact is made
    note: is told at once which artefact was not made, and why
    launcher_in: what starts workers in an environment of the plan
    rows: those of the campaign that are not pybench's own
    """

    campaign: CampaignDirectory
    claimant: Claimant
    interruption: Interruption
    timeout_s: float
    retry_failed: bool
    files: Mapping[str, str]
    announce: Callable[[Recipe], None]
    note: Callable[[str], None]
    launcher_in: Callable[[str | None], Launcher] = lambda _: LOCAL
    rows: tuple[Row, ...] = ()


def prepare(recipes: Iterable[Recipe], maker: Maker) -> dict[str, Outcome]:
    """Makes what is missing, in the order given (needs first). Returns digest -> outcome; stops early when asked to.

    What another runner is making is passed over until the rest is done, so runners that begin together share the work.
    """
    _remove_leftovers(maker)
    outcomes: dict[str, Outcome] = {}
    named: set[str] = set()
    missing = list(recipes)
    while missing and not maker.interruption.asked:
        made_elsewhere = []
        for recipe in missing:
            outcome = None if maker.interruption.asked else _outcome(recipe, outcomes, maker)
            if outcome is None:
                made_elsewhere.append(recipe)
            else:
                outcomes[recipe.digest] = outcome
        if len(made_elsewhere) == len(missing) and not maker.interruption.asked:
            _name_others([recipe for recipe in missing if recipe.digest not in named], named, maker)
            time.sleep(WAIT_S)
        missing = made_elsewhere
    return outcomes


def _outcome(recipe: Recipe, known: Mapping[str, Outcome], maker: Maker) -> Outcome | None:
    """The outcome of one artefact; None while another runner is making it, or something that it needs."""
    needed = [known.get(need.digest) for _, need in recipe.needs]  # None: it comes earlier in the order, and is missing
    failed = [outcome for outcome in needed if outcome is not None and outcome.name != "ok"]
    if failed:
        return failed[0]
    return None if None in needed else _made(recipe, maker)


def _name_others(recipes: Iterable[Recipe], named: set[str], maker: Maker) -> None:
    """Says who is making what this runner waits for; adds the digests of what was said to `named`."""
    for recipe in recipes:
        claims = maker.campaign.artefacts.glob(f".{recipe.digest}.attempt-*{layout.CLAIM_SUFFIX}")
        path = next((path for path in claims if is_alive(path, maker.claimant)), None)
        if path is not None and (text := owner_text(path, maker.claimant)) is not None:
            named.add(recipe.digest)
            maker.note(f"waiting for {recipe.title()}, which {text} is making")


def _remove_leftovers(maker: Maker) -> None:
    """Removes half-made artefacts that runners have left which were killed."""
    for folder in maker.campaign.artefacts.glob(".*.attempt-*/"):
        attempt = RunDirectory(folder, "", layout.MAKING, 1)
        if is_dead(attempt.claim, maker.claimant):
            shutil.rmtree(folder, ignore_errors=True)
        elif claim(attempt.claim, maker.claimant):
            shutil.rmtree(folder, ignore_errors=True)
            attempt.claim.unlink(missing_ok=True)


def _made(recipe: Recipe, maker: Maker) -> Outcome | None:
    """The outcome of an artefact that exists, or of making it; None while another runner is making it."""
    folder = maker.campaign.artefact(recipe.digest)
    outcome = _usable(folder, maker)
    if outcome is not None:
        if outcome.name == "ok":  # its maker may have been killed before it did this
            shutil.rmtree(maker.campaign.unfinished(recipe.digest), ignore_errors=True)
        return outcome
    for number in itertools.count(1):
        attempt = RunDirectory(folder.with_name(f".{recipe.digest}.attempt-{number:02d}"), recipe.digest, 0, number)
        if not attempt.claim.exists() and claim(attempt.claim, maker.claimant):
            return _make_claimed(recipe, attempt, maker)
        if not is_dead(attempt.claim, maker.claimant):
            break
        shutil.rmtree(attempt.path, ignore_errors=True)
    return None


def _make_claimed(recipe: Recipe, attempt: RunDirectory, maker: Maker) -> Outcome:
    """Makes what is still missing now. The claim stands only meanwhile: its owner lives on, and nobody waits for it."""
    folder = maker.campaign.artefact(recipe.digest)
    try:
        outcome = _usable(folder, maker)  # another runner may have finished between the look and the claim
        if outcome is not None:
            return outcome
        if folder.exists():
            os.rename(folder, _free_name(folder))
        shutil.rmtree(attempt.path, ignore_errors=True)
        return _make(recipe, attempt, maker)
    finally:
        attempt.claim.unlink(missing_ok=True)


def _make(recipe: Recipe, attempt: RunDirectory, maker: Maker) -> Outcome:
    end = _worked(recipe, attempt, maker)
    for scratch in attempt.path.glob(".*/"):  # of a maker that was killed
        shutil.rmtree(scratch, ignore_errors=True)
    outcome = judge(end)
    error = no_result(end)
    if error or outcome.name in AGAIN:
        shutil.rmtree(attempt.path)
    if error:
        raise error
    if outcome.name in AGAIN:
        return _with_trials(outcome, recipe, maker.campaign)
    unfinished = maker.campaign.unfinished(recipe.digest)
    was_ended = outcome.name in ("crashed", "timeout", "oom")
    if was_ended:
        outcome = replace(_with_rest(outcome, end) if unfinished.exists() else outcome, name="build_failed")
    if outcome.name == "ok" and not attempt.file(recipe.file).is_file():
        why = Reason(Cause.NO_FILE, f"the maker reported success but left no {recipe.file}")
        outcome = Outcome("build_failed", why)
    if outcome.name != "ok":
        maker.note(f"not made: {recipe.title()}: {outcome.why or outcome.name}")
    made = _digests(attempt.path) if outcome.name == "ok" else {}
    attempt.complete({**run_record(recipe.digest, 0, attempt.attempt, outcome, end), "made": made})
    outcome = _publish(attempt, maker.campaign.artefact(recipe.digest), outcome)
    if not was_ended:  # not before, because a runner may be killed between the two
        shutil.rmtree(unfinished, ignore_errors=True)
    return outcome


def _worked(recipe: Recipe, attempt: RunDirectory, maker: Maker) -> WorkerEnd:
    maker.announce(recipe)
    storage.make_folder(attempt.path)
    inputs = {role: maker.campaign.artefact(needed.digest) / needed.file for role, needed in recipe.needs}
    storage.write_json(attempt.file(layout.RECIPE), _request(recipe, inputs, maker))
    files = tuple(Path(maker.files[value]) for _, value in recipe.files)
    unfinished = maker.campaign.unfinished(recipe.digest)
    kept = (unfinished,) if KINDS[recipe.kind].trials else ()
    for folder in kept:
        storage.make_folder(folder, exist_ok=True)
        storage.write_json(folder / layout.RECIPE, _recipe_record(recipe))
    return run_worker(
        maker.launcher_in(recipe.environment),
        [str(attempt.path.absolute()), "--campaign", str(maker.campaign.path.absolute())],
        attempt.path,
        FileAccess(
            writes=tuple(folder.absolute() for folder in (attempt.path, *kept)),
            reads=(maker.campaign.path.absolute(), *files),
            onnx=next((Path(maker.files[value]) for factor, value in recipe.files if factor == "model"), None),
        ),
        maker.timeout_s,
        maker.interruption,
        lambda: touch(attempt.claim),
    )


def _with_trials(outcome: Outcome, recipe: Recipe, campaign: CampaignDirectory) -> Outcome:
    """The outcome of a maker that the next call makes again by itself, with what is kept for it."""
    kept = stored_trials(campaign.unfinished(recipe.digest), recipe.kind)
    if not kept or outcome.reason is None:
        return outcome
    said = f"{outcome.why}; {kept_text(kept)}, and the next run goes on from there"
    return replace(outcome, reason=replace(outcome.reason, detail=said))


def _with_rest(outcome: Outcome, end: WorkerEnd) -> Outcome:
    """The outcome of a maker that was ended early, with how far it came and what goes on from there."""
    reason = outcome.reason or Reason(Cause.NO_REPORT)
    rest = "run again with --retry-failed to go on from there, and with a longer --timeout if it was too short"
    said = "; ".join(filter(None, (outcome.why, end.last_words if end.stopped else "", rest)))
    return replace(outcome, reason=replace(reason, detail=said))


def _publish(attempt: RunDirectory, folder: Path, outcome: Outcome) -> Outcome:
    """Renames an attempt to its address. Who was taken for dead finds another's there: that one stays."""
    try:
        os.rename(attempt.path, folder)
        storage.sync(folder.parent)
    except OSError as error:
        if not (folder / layout.COMPLETE).exists():
            raise storage.storage_error(error, folder) from error
        shutil.rmtree(attempt.path, ignore_errors=True)
        return _settled_outcome(folder) or outcome
    return outcome


def _recipe_record(recipe: Recipe) -> dict[str, object]:
    return {"schema_version": layout.SCHEMA_VERSION, "recipe": recipe.as_json()}


def _request(recipe: Recipe, inputs: Mapping[str, Path], maker: Maker) -> dict[str, object]:
    """The content of recipe.json; paths of inputs are relative to the campaign's folder."""
    unfinished = maker.campaign.unfinished(recipe.digest)
    rows = [row for row in maker.rows if isinstance(row, Model) and row.name == dict(recipe.parameters).get("model")]
    return {
        **_recipe_record(recipe),
        **({ROWS: [row_to_json(row) for row in rows]} if rows else {}),
        **({"unfinished": str(unfinished.relative_to(maker.campaign.path))} if KINDS[recipe.kind].trials else {}),
        "inputs": {role: str(path.relative_to(maker.campaign.path)) for role, path in inputs.items()},
        "files": {factor: maker.files[value] for factor, value in recipe.files},
    }


def _usable(folder: Path, maker: Maker) -> Outcome | None:
    """The outcome of an artefact that is complete, unless it failed and is to be tried again."""
    outcome = _settled_outcome(folder)
    if outcome is None or (maker.retry_failed and outcome.name not in layout.COVERING):
        return None
    return outcome


def _settled_outcome(folder: Path) -> Outcome | None:
    """The outcome of a complete artefact, None where there is none.

    A runner that tries a failed one again sets it aside, maybe while it is read: what is missing is not corrupt.
    """
    while (identity := _identity(folder / layout.COMPLETE)) is not None:
        try:
            return _stored_outcome(folder)
        except CorruptError:
            if _identity(folder / layout.COMPLETE) == identity:
                raise
    return None


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns


def _stored_outcome(folder: Path) -> Outcome:
    """Raises CorruptError where a file is no longer what was made: runs that need it would fail, or be others."""
    run = RunDirectory(folder, folder.name, 0, 1).read_run()
    for name, digest in run.get("made", {}).items():
        path = folder / name
        if not path.is_file() or storage.sha256_of(path) != digest:
            what = "has changed since it was made" if path.is_file() else "is missing"
            raise CorruptError(f"{path} {what}", hint=f"restore it, or remove the folder {folder} and run again")
    return outcome_from_json(run)


def _digests(folder: Path) -> dict[str, str]:
    """The sha256 of each file that a maker left, by its name."""
    made = [path for path in sorted(folder.iterdir()) if path.is_file() and path.name not in layout.OF_EVERY_MAKING]
    return {path.name: storage.sha256_of(path) for path in made}


def _free_name(folder: Path) -> Path:
    number = 1
    while (name := folder.with_name(f"{folder.name}.failed-{number:02d}")).exists():
        number += 1
    return name
