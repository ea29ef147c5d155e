# SPDX-License-Identifier: Apache-2.0
"""The campaign's directory: its runs and artefacts, and how their files are read and closed.

The two halves of pybench meet only here (docs/formats/rundir.md describes the format). A run's directory is written by
its worker (case, environment, channels, summary) and closed by the runner (run.json, then `complete`). A directory
without `complete` counts as missing; one with it and unreadable files is corrupt (`CorruptError`, exit code 4).

This module knows bytes, not what a plan or a workload is. Names of files are in `layout`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pybench.campaign import digests, storage
from pybench.campaign.hashed import CheckedFiles, HashedRuns
from pybench.campaign.layout import (
    ARTEFACTS,
    CASE,
    CLAIM_SUFFIX,
    CLUSTER,
    COMPLETE,
    ENERGY,
    ENVIRONMENT,
    ENVIRONMENTS,
    GUARDED,
    MAKING,
    OUTCOMES,
    PLAN,
    PLAN_RESOLVED,
    PROFILE,
    RECIPE,
    REPORT,
    RUN,
    RUNS,
    SCHEMA_VERSION,
    SENSORS,
    STOPPED,
    SUMMARY,
    UNFINISHED_SUFFIX,
)
from pybench.case import Case, case_from_json
from pybench.catalogue.validities import VALIDITIES
from pybench.errors import CorruptError, UsageError

_BLOCK = re.compile(r"block-(\d{3,})")
_ATTEMPT = re.compile(r"attempt-(\d{2,})")
_SUBMISSION = re.compile(r"submission-(\d{2,})")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


# --- reading -------------------------------------------------------------------------------------------------------


def read_json(path: Path, hint: str | None = None, *, text: bytes | None = None) -> dict[str, Any]:
    """A JSON object, or `CorruptError` that names the file and the place. `hint`: what helps where it is no file of a
    campaign's. `text`: the file's content where it has been read."""
    try:
        content = json.loads(path.read_bytes() if text is None else text, parse_constant=_refuse_constant)
    except FileNotFoundError as error:
        gone = "the run says `complete`, so somebody removed it"
        raise CorruptError(f"{path} is missing", hint=hint or gone) from error
    except (OSError, ValueError, RecursionError) as error:  # ValueError: no JSON, no UTF-8, or no number
        raise CorruptError(f"{path} cannot be read: {error}", hint=hint or restore_hint(path)) from error
    if not isinstance(content, dict):
        raise CorruptError(f"{path} contains {type(content).__name__}, not an object", hint=hint or restore_hint(path))
    return content


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is no number of JSON")


def restore_hint(path: Path) -> str:
    """What to do about a stored file that is damaged: a plan's is not remade by running, a run's is."""
    if path.name == STOPPED:
        return f"remove it and run {path.parent} again: what was decided follows from the runs"
    if path.parent.name == ENVIRONMENTS:
        return "restore it; without it pybench cannot tell whether the environment is still the same"
    if path.name == PLAN_RESOLVED:
        return f"restore it; or run {path.with_name(PLAN)} again with another --out: nothing here was changed"
    return f"restore it, or remove its folder {path.parent} and run again"


# --- one run -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KnownCase:
    """A case and the forms in which runs store it: a run that stores one has this case, without a look at each factor.

    forms: that of the plan, which the pybench wrote that began the campaign, and this pybench's
    """

    case: Case
    forms: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """One attempt of one run: `runs/<case_id>/block-NNN/attempt-NN`. Blocks and attempts count from 1."""

    path: Path
    case_id: str
    block: int
    attempt: int
    contents: Mapping[str, bytes] = field(default_factory=dict, compare=False, repr=False)
    """Name -> content of files that have been read, so that they are not read twice."""
    decode: Callable[[bytes], Any] = field(default=json.loads, compare=False, repr=False)
    """Reads `contents`. It may be quicker than that of Python, and may refuse what that one reads."""

    def file(self, name: str) -> Path:
        return self.path / name

    def has(self, name: str) -> bool:
        return name in self.contents or _exists(self.path, name)

    def read(self, name: str) -> bytes:
        """Raises OSError."""
        found = self.contents.get(name)
        return self.file(name).read_bytes() if found is None else found

    def with_contents(self, checked: CheckedFiles, decode: Callable[[bytes], Any] = json.loads) -> RunDirectory:
        """The same run with what was read of it already. To be let go soon: contents are large."""
        return RunDirectory(self.path, self.case_id, self.block, self.attempt, checked.contents, decode)

    def _object(self, name: str, *required: str) -> dict[str, Any]:
        text = self.contents.get(name)
        if text is not None:
            with contextlib.suppress(Exception):  # Python's own reader is asked below, and explains it
                found: dict[str, Any] = self.decode(text)
                if _is_sound(found, required):
                    return found
        return read_checked(self.file(name), required, text)

    @property
    def claim(self) -> Path:
        """Beside the folder: who made, or is making, this attempt."""
        return self.path.with_name(self.path.name + CLAIM_SUFFIX)

    @property
    def is_complete(self) -> bool:
        return _exists(self.path, COMPLETE)

    def complete(self, run: Mapping[str, Any]) -> None:
        """Writes run.json, makes every file of the run durable, then writes `complete` with their digests: the last
        of a run's life."""
        storage.write_json(self.file(RUN), {"schema_version": SCHEMA_VERSION, GUARDED: True, **run})
        try:
            for _, path in digests.files_of(self.path):
                storage.sync(path)
            listed = digests.render(digests.of_folder(self.path))
        except OSError as error:  # with delayed allocation a full disk shows only here
            raise storage.storage_error(error, self.path) from error
        storage.write_bytes(self.file(COMPLETE), listed)

    def check_files(self, hashed: HashedRuns) -> CheckedFiles:
        """Looks for changes since the run finished. Raises `CorruptError` where its files differ from the digests in
        `complete`, and names the file, the run and both digests. An older pybench left `complete` empty."""
        checked = hashed.check(self.path)
        if not checked.is_guarded and self.with_contents(checked).read_run().get(GUARDED) is True:
            raise CorruptError(f"{self.file(COMPLETE)} is empty, and {RUN} says that it has digests")
        return checked

    def read_case(self, known: Mapping[str, KnownCase] | None = None) -> Case:
        """The case of case.json. `known`: cases by their ids, one of which it can be."""
        stored = self._object(CASE, "case")["case"]
        alike = (known or {}).get(self.case_id)
        if alike is not None and stored in alike.forms:
            return alike.case
        try:
            case = case_from_json(stored)
        except (ValueError, TypeError) as error:
            raise CorruptError(f"{self.file(CASE)}: {error}") from error
        if case.id != self.case_id:
            raise CorruptError(f"{self.file(CASE)} is of case {case.id[:12]}, its folder says {self.case_id[:12]}")
        return case

    def read_recipe(self) -> dict[str, Any]:
        """What an artefact was made by: its kind and parameters, as `pybench.campaign.recipe` stores them."""
        recipe: dict[str, Any] = self._object(RECIPE, "recipe")["recipe"]
        return recipe

    def read_run(self) -> dict[str, Any]:
        record = self._object(RUN, "outcome", "valid", "case_id", "block", "attempt")
        absent = [name for name in VALIDITIES if not isinstance(record["valid"], dict) or name not in record["valid"]]
        if absent:
            raise CorruptError(f"{self.file(RUN)} says nothing of the validity of {', '.join(absent)}")
        if record["outcome"] not in OUTCOMES:
            raise CorruptError(
                f"{self.file(RUN)}: no outcome is {record['outcome']!r}", hint=restore_hint(self.file(RUN))
            )
        return record

    def read_summary(self) -> dict[str, Any]:
        """summary.json; an `ok` run must have one, other outcomes may not: then the metrics are empty."""
        if not self.has(SUMMARY) and self.read_run()["outcome"] != "ok":
            return {"schema_version": SCHEMA_VERSION, "metrics": {}, "windows": {}, "labels": {}}
        return self._object(SUMMARY, "metrics", "windows", "labels")

    def read_energy(self) -> dict[str, Any] | None:
        """energy.json; None where there is none: no GPU was sampled."""
        if not self.has(ENERGY):
            return None
        return self._object(ENERGY, "sensor", "windows")

    def read_profile(self) -> dict[str, Any] | None:
        """profile.json; None where there is none: the runtime did not tell its kernels."""
        if not self.has(PROFILE):
            return None
        return self._object(PROFILE, "kernels")

    def read_environment(self) -> dict[str, Any]:
        if not self.has(ENVIRONMENT) and self.read_run()["outcome"] != "ok":
            return {"schema_version": SCHEMA_VERSION}
        return self._object(ENVIRONMENT)


def _is_sound(content: object, required: tuple[str, ...]) -> bool:
    if not isinstance(content, dict) or content.get("schema_version") != SCHEMA_VERSION:
        return False
    return all(name in content for name in required)


def _exists(folder: Path, name: str) -> bool:
    """A report asks 50,000 times, and a `Path` for each would show."""
    return os.access(f"{folder}/{name}", os.F_OK)


def read_checked(path: Path, required: tuple[str, ...], text: bytes | None = None) -> dict[str, Any]:
    """A JSON object of this schema version with the `required` keys, or `CorruptError`. `text`: as in `read_json`."""
    content = read_json(path, text=text)
    if content.get("schema_version") != SCHEMA_VERSION:
        found = content.get("schema_version")
        raise CorruptError(
            f"{path} has schema version {found}, this pybench reads {SCHEMA_VERSION}",
            hint=restore_hint(path) if found is None else "read it with the pybench that wrote it",
        )
    absent = [name for name in required if name not in content]
    if absent:
        raise CorruptError(f"{path} lacks {', '.join(absent)}", hint=restore_hint(path))
    return content


# --- the campaign ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CampaignDirectory:
    """`results/<campaign>`: where everything of one campaign lies."""

    path: Path

    @property
    def plan(self) -> Path:
        return self.path / PLAN

    @property
    def plan_resolved(self) -> Path:
        return self.path / PLAN_RESOLVED

    @property
    def stopped(self) -> Path:
        """Why no further block is run; there where the plan has a rule for it, and it ended the campaign."""
        return self.path / STOPPED

    @property
    def report(self) -> Path:
        return self.path / REPORT

    def read_plan_text(self) -> str:
        """plan.yaml as it was given, or empty text when somebody removed it; plan.resolved.json has its meaning."""
        return self.plan.read_text(encoding="utf-8", errors="replace") if self.plan.is_file() else ""

    @property
    def artefacts(self) -> Path:
        return self.path / ARTEFACTS

    def artefact(self, digest: str) -> Path:
        return self.path / ARTEFACTS / digest

    def made_digest(self, file: Path) -> str | None:
        """The sha256 of an artefact's file when it was made; None: it was not made, or an older pybench made it."""
        if not (file.parent / COMPLETE).exists():
            return None
        making = RunDirectory(file.parent, file.parent.name, MAKING, 1)
        found = making.read_run().get("made", {}).get(file.name)
        return None if found is None else str(found)

    def unfinished(self, digest: str) -> Path:
        """What the maker of an artefact found before it was ended early, where its kind has `trials`."""
        return self.path / ARTEFACTS / f".{digest}{UNFINISHED_SUFFIX}"

    def made(self) -> Iterator[RunDirectory]:
        """The making of every artefact that ended, in the order of their addresses."""
        for path in sorted(self.artefacts.glob("[!.]*")):
            making = RunDirectory(path, path.name.partition(".")[0], MAKING, 1)
            if making.is_complete:
                yield making

    @property
    def cluster(self) -> Path:
        """What was handed to a batch system: a folder a submission, with its scripts and logs."""
        return self.path / CLUSTER

    def submission(self, number: int) -> Path:
        return self.cluster / f"submission-{number:02d}"

    def submissions(self) -> list[int]:
        """Numbers of the submissions, oldest first, recorded or not."""
        names = [entry.name for entry in self.cluster.iterdir()] if self.cluster.is_dir() else []
        return sorted(int(match[1]) for name in names if (match := _SUBMISSION.fullmatch(name)))

    def environment(self, name: str) -> Path:
        """What an environment of the plan has installed; there where its runs have begun."""
        return self.path / ENVIRONMENTS / f"{name}.json"

    def environments(self) -> list[Path]:
        """The files of all environments whose runs have begun, by name."""
        return sorted((self.path / ENVIRONMENTS).glob("[!.]*.json"))

    def sensor(self, uuid: str) -> Path:
        """The profile of one GPU's power sensor that every run of this campaign under one driver uses."""
        return self.path / SENSORS / f"{_UNSAFE.sub('_', uuid)}.json"

    def read_sensors(self) -> dict[Path, dict[str, Any]]:
        """Every sensor profile of this campaign, by its file."""
        return {path: read_json(path) for path in sorted((self.path / SENSORS).glob("[!.]*.json"))}

    def block(self, case_id: str, block: int) -> Path:
        return self.path / RUNS / case_id / _block_name(block)

    def attempt(self, case_id: str, block: int, attempt: int) -> RunDirectory:
        return RunDirectory(self.block(case_id, block) / f"attempt-{attempt:02d}", case_id, block, attempt)

    def attempts(self, case_id: str, block: int) -> list[RunDirectory]:
        """Every attempt at one run, oldest first, complete or not."""
        return _attempts_in(self.path / RUNS / case_id, case_id, block)

    def latest(self, case_id: str, block: int) -> RunDirectory | None:
        """The attempt that counts: the latest complete one."""
        complete = [attempt for attempt in self.attempts(case_id, block) if attempt.is_complete]
        return complete[-1] if complete else None

    def finished(self) -> Iterator[RunDirectory]:
        """Every complete attempt of every (case, block), whether it counts or not, then every complete making."""
        yield from self.finished_runs()
        yield from self.made()

    def finished_runs(self) -> Iterator[RunDirectory]:
        """Every complete attempt of every (case, block), whether it counts or not."""
        runs, known = self.path / RUNS, ""
        for case_id, block in self.started():
            if case_id != known:
                known, folder = case_id, runs / case_id
            yield from (attempt for attempt in _attempts_in(folder, case_id, block) if attempt.is_complete)

    def claims(self, case_id: str, block: int) -> list[RunDirectory]:
        """Every attempt that has been claimed, oldest first, whether its folder exists or not."""
        folder = self.block(case_id, block)
        names = [entry.name.removesuffix(CLAIM_SUFFIX) for entry in folder.iterdir()] if folder.is_dir() else []
        numbers = sorted({int(match[1]) for name in names if (match := _ATTEMPT.fullmatch(name))})
        return [self.attempt(case_id, block, number) for number in numbers]

    def runs(self) -> Iterator[RunDirectory]:
        """The attempt that counts of every (case, block): the latest complete one, in the order of id and block."""
        for case_id, block in self.started():
            latest = self.latest(case_id, block)
            if latest is not None:
                yield latest

    def started(self) -> Iterator[tuple[str, int]]:
        """(case id, block) of everything that has a folder."""
        folder = self.path / RUNS
        for case_id in sorted(_names_in(folder)):
            for name in sorted(_names_in(folder / case_id)):
                match = _BLOCK.fullmatch(name)
                if match:
                    yield case_id, int(match[1])


def _block_name(block: int) -> str:
    return f"block-{block:03d}"


def _attempts_in(case: Path, case_id: str, block: int) -> list[RunDirectory]:
    """Every attempt at one run, oldest first. `case`: the folder of the case."""
    name = _block_name(block)
    numbers = sorted(int(match[1]) for found in _names_in(f"{case}/{name}") if (match := _ATTEMPT.fullmatch(found)))
    return [RunDirectory(case / f"{name}/attempt-{number:02d}", case_id, block, number) for number in numbers]


def _names_in(folder: Path | str) -> list[str]:
    """What a folder has; nothing where it is none."""
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def not_a_campaign(campaign: CampaignDirectory) -> UsageError:
    """A folder that holds something else: pybench writes nothing into it."""
    return UsageError(
        f"{campaign.path} is not empty and not a campaign: it has no {PLAN_RESOLVED}",
        hint="choose another folder with --out",
    )


def open_campaign(path: str | os.PathLike[str]) -> CampaignDirectory:
    """The campaign in a folder, or `UsageError` when that is none."""
    campaign = CampaignDirectory(Path(path))
    if not campaign.plan_resolved.is_file():
        what = "is not a folder" if not campaign.path.is_dir() else f"is not a campaign: it has no {PLAN_RESOLVED}"
        hint = "give the folder that `pybench run` printed, such as results/quickstart"
        if campaign.path.is_file() and campaign.path.name.endswith((".zip", ".tar.zst")):
            hint = f"`pybench fetch {shlex.quote(str(path))}` unpacks a published archive into a folder; give that one"
        raise UsageError(f"{path} {what}", hint=hint)
    return campaign
