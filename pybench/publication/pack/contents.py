# SPDX-License-Identifier: Apache-2.0
"""What of a campaign's directory is published, and what is left out.

Published: the plan, sensors' profiles, every attempt's records and channels (.json, .csv, .log, `complete`), and of the
artefacts the records of their making. A link is refused, for what it leads to may be anything. Left out:

- the artefacts' own files (weights, ONNX files, engines) unless asked for, named by size and sha256
- claims and what was handed to a batch system, which name machines, accounts and processes
- the old report, which is made anew
- hidden files, and what pybench did not write
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pybench.campaign import layout, storage
from pybench.campaign.directory import CampaignDirectory, RunDirectory
from pybench.errors import CorruptError, UsageError
from pybench.publication.pack import sums

_ATTEMPT = re.compile(r"runs/[0-9a-f]{64}/block-\d{3,}/attempt-\d{2,}/[^/]+")
_ONE_FILE_EACH = re.compile(rf"(?:{layout.SENSORS}|{layout.ENVIRONMENTS})/[^/]+\.json")
_MADE = re.compile(r"artefacts/([0-9a-f]{64}(?:\.failed-\d+)?)/([^/]+)")
_RECORDS = (".json", ".csv", ".log")
_DOCUMENTS = (*sums.DOCUMENTS, sums.SUMS, sums.SIGNATURE)  # of a publication that is published again
_NEVER = (layout.REPORT, layout.CLUSTER)


@dataclass(frozen=True, slots=True)
class ArtefactFile:
    """A file that the making of an artefact left, and which `run.json` of its making names by its sha256."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Selection:
    """`files`: names relative to the campaign, sorted. `artefacts_left_out`: not published, but named.
    `foreign`: what pybench did not write, or did not finish, for the author to know."""

    files: tuple[str, ...]
    artefacts_left_out: tuple[ArtefactFile, ...]
    foreign: tuple[str, ...]


def select(campaign: CampaignDirectory, *, with_artefacts: bool) -> Selection:
    """Looks through the directory. Raises `UsageError` for links, `CorruptError` for an artefact that was changed."""
    files: list[str] = []
    left_out: list[ArtefactFile] = []
    foreign: list[str] = []
    made = _digests_of_made(campaign)
    is_publication = (campaign.path / sums.DESCRIPTION).is_file()
    for name in _walk(campaign.path):
        kind = _kind(name)
        if is_publication and name in _DOCUMENTS:
            continue
        if kind == "foreign" or (kind == "made" and name not in made):  # or a making that failed left it
            foreign.append(name)
        elif kind == "made":
            artefact = _check_made(campaign.path, name, made[name])
            if with_artefacts or name.endswith(".json"):
                files.append(name)
            else:
                left_out.append(artefact)
        elif kind == "record":
            files.append(name)
    odd = [name for name in files if not sums.is_plain_name(name)]
    foreign += odd
    return Selection(tuple(sorted(set(files) - set(odd))), tuple(left_out), tuple(sorted(foreign)))


def _kind(name: str) -> str:
    """`record`: published; `made`: an artefact's file; `own`: pybench's, and never published; `foreign`: not
    pybench's."""
    if name in sums.CAMPAIGN_FILES or _ONE_FILE_EACH.fullmatch(name):
        return "record"
    if name.endswith((layout.CLAIM_SUFFIX, storage.TEMPORARY_SUFFIX)):
        return "own"
    last = name.rpartition("/")[2]
    if made := _MADE.fullmatch(name):
        is_record = made[2] in layout.OF_EVERY_MAKING
        return "record" if is_record else "made"
    if _ATTEMPT.fullmatch(name) and (last == layout.COMPLETE or last.endswith(_RECORDS)):
        return "record"
    return "foreign"


def _walk(folder: Path, prefix: str = "") -> Iterator[str]:
    """Names of all files, sorted within each folder; hidden ones and folders of `_NEVER` are passed over. The folder of
    one artefact may be a link (into a cache); any other link is refused."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        name = f"{prefix}{entry.name}"
        if entry.name.startswith(".") or name in _NEVER:
            continue
        if entry.is_symlink() and not (prefix == f"{layout.ARTEFACTS}/" and entry.is_dir()):
            raise UsageError(
                f"{folder / entry.name} is a link: a publication contains only files",
                hint="replace the link with a copy of its target, or remove it",
            )
        if entry.is_dir():
            yield from _walk(folder / entry.name, f"{name}/")
        elif entry.is_file():
            yield name


def _digests_of_made(campaign: CampaignDirectory) -> dict[str, str]:
    """Name of an artefact's file -> the sha256 that the record of its making gives."""
    return {
        f"{layout.ARTEFACTS}/{making.path.name}/{file}": str(digest)
        for making in campaign.made()
        for file, digest in RunDirectory.read_run(making).get("made", {}).items()
    }


def _check_made(folder: Path, name: str, digest: str) -> ArtefactFile:
    path = folder / name
    if storage.sha256_of(path) != digest:
        raise CorruptError(
            f"{path} has changed since it was made",
            hint=f"restore it, or remove its folder {path.parent} and run the plan again",
        )
    return ArtefactFile(name, path.stat().st_size, digest)
