# SPDX-License-Identifier: Apache-2.0
"""Environments of a plan: where each is, and environments/NAME.json, what it was when the campaign began with it.

A campaign does not continue in an environment whose image, Python or packages have changed: its runs would be other
runs of the same cases. Paths are no part of it, so the same packages elsewhere are the same environment. Runners that
begin at the same time, as those of an array of jobs do, agree on one: each file is created once, and never written
again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pybench.campaign import storage
from pybench.campaign.directory import CampaignDirectory, read_checked, restore_hint
from pybench.campaign.layout import SCHEMA_VERSION
from pybench.errors import CorruptError, UsageError

REGISTRY = "docker://"  # how the name of an image in a registry begins
_NAMED = 4  # differences that an error lists


@dataclass(frozen=True, slots=True)
class PlannedEnvironment:
    """What a plan says of an environment; one of the two is set.

    python: absolute path of an interpreter
    image: `NAME@sha256:DIGEST` of a container image; NAME is an absolute path, or `docker://` and a name in a registry
    """

    python: str | None = None
    image: str | None = None

    @property
    def text(self) -> str:
        """What the plan names, made absolute."""
        return self.python or self.image or ""

    @property
    def path(self) -> Path | None:
        """What has to be on a machine; None for an image that is in a registry."""
        name = self.text if self.image is None else self.image.rpartition("@")[0]
        return None if name.startswith(REGISTRY) else Path(name)

    def as_json(self) -> dict[str, Any]:
        """Its entry in plan.resolved.json."""
        return {"python": self.python} if self.image is None else {"image": self.image}


@dataclass(frozen=True, slots=True)
class KnownEnvironment:
    """What an environment has installed, loaded or not.

    python: the version of its interpreter
    packages: distribution -> version
    image: the digest of its container image; None for an interpreter of the machine
    """

    python: str
    packages: Mapping[str, str]
    image: str | None = None

    @property
    def sha256(self) -> str:
        """64 hexadecimal digits: the sha256 of the canonical JSON of all of it."""
        content = {"python": self.python, "packages": dict(self.packages), **self._image()}
        return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    def as_json(self) -> dict[str, Any]:
        """The content of its file."""
        content = {"python": self.python, "sha256": self.sha256, "packages": dict(self.packages)}
        return {"schema_version": SCHEMA_VERSION, **self._image(), **content}

    def _image(self) -> dict[str, str]:
        return {} if self.image is None else {"image": self.image}


def read_environments(campaign: CampaignDirectory) -> dict[str, KnownEnvironment]:
    """By their names; empty where none has begun. Raises CorruptError for a file that is malformed."""
    return {path.stem: _read(path) for path in campaign.environments()}


def _read(path: Path) -> KnownEnvironment:
    stored = read_checked(path, ("python", "sha256", "packages"))
    found = KnownEnvironment(stored["python"], stored["packages"], stored.get("image"))
    if not isinstance(found.packages, dict) or found.sha256 != stored["sha256"]:
        raise CorruptError(f"{path}: the digest does not fit the packages", hint=restore_hint(path))
    return found


def refuse_changed_environments(campaign: CampaignDirectory, found: Mapping[str, KnownEnvironment]) -> None:
    """Raises UsageError where an environment is no longer what the campaign began with."""
    known = read_environments(campaign)
    for name, now in found.items():
        before = known.get(name, now)
        if before.sha256 != now.sha256:
            changes = list(_changes(before, now))
            more = f" and {len(changes) - _NAMED} more" if len(changes) > _NAMED else ""
            raise UsageError(
                f"the environment {name} has changed since {campaign.path} began: {', '.join(changes[:_NAMED])}{more}",
                hint="restore what it had, or give the changed environment another name in the plan",
            )


def keep_environments(campaign: CampaignDirectory, found: Mapping[str, KnownEnvironment]) -> None:
    """Stores the environments that a campaign begins with; the directory has to be there. Raises as
    `refuse_changed_environments`."""
    for name, environment in found.items():
        path = campaign.environment(name)
        storage.make_folder(path.parent, exist_ok=True)
        if not path.exists():
            storage.create_bytes(path, storage.json_bytes(environment.as_json()))
    refuse_changed_environments(campaign, found)


def _changes(before: KnownEnvironment, now: KnownEnvironment) -> Iterator[str]:
    if before.image != now.image:
        yield f"its image {before.image or 'none'} is {now.image or 'none'} now"
    if before.python != now.python:
        yield f"Python {before.python} is {now.python} now"
    for name in sorted({*before.packages, *now.packages}):
        old, new = before.packages.get(name), now.packages.get(name)
        if old is None:
            yield f"{name} {new} was added"
        elif new is None:
            yield f"{name} {old} was removed"
        elif old != new:
            yield f"{name} {old} is {new} now"
