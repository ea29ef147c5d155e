# SPDX-License-Identifier: Apache-2.0
"""Which finished runs of a campaign have been hashed, so that a reader hashes only what is new or changed.

`.hashed.json` in the campaign's folder contains, for each run, a digest of its files' names, sizes, times and inodes.
A run is hashed again when one of these differs, or when the index does not have the run.
The index is never needed: a missing, unreadable or wrong one is made again, and a read-only campaign works without.
It cannot notice a bit that changed on the disk while the file's times did not; `pybench check` therefore ignores it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pybench.campaign import digests, storage
from pybench.errors import CorruptError, UsageError

INDEX = ".hashed.json"
SCHEMA_VERSION = 1
RECENT_S = 2.0
"""A file that changed less than this before it was hashed may change again without another time: file systems store
times in steps of up to 2 s (FAT). Git calls such a file racily clean."""


@dataclass(frozen=True, slots=True)
class CheckedFiles:
    """A finished run whose files are as they were when it finished."""

    is_guarded: bool
    """Whether the run has digests, so that this can be told."""
    contents: Mapping[str, bytes] = field(default_factory=dict)
    """Name -> content of small files that were read to hash them; none where nothing had changed."""


class HashedRuns:
    """The index of one campaign. `hash_all`: every run is hashed, whatever the index says of it."""

    def __init__(self, campaign: Path, *, hash_all: bool = False) -> None:
        self._campaign = campaign
        self._known = {} if hash_all else _read(campaign / INDEX)
        self._seen: dict[str, str] = {}

    def part(self, folders: Iterable[Path]) -> HashedRuns:
        """The index of some runs alone, for another process."""
        names = [self._name(folder) for folder in folders]
        found = HashedRuns(self._campaign, hash_all=True)
        found._known = {name: self._known[name] for name in names if name in self._known}
        return found

    def add(self, part: HashedRuns) -> None:
        """Takes over what was seen of a part."""
        self._seen |= part._seen

    def _name(self, folder: Path) -> str:
        return storage.relative(folder, self._campaign)

    def check(self, folder: Path) -> CheckedFiles:
        """`digests.check` of a run's folder, without hashing what is as it was when it was hashed last."""
        name = self._name(folder)
        try:
            if name in self._known:
                state = _state(digests.facts_of(folder))
                if state == self._known[name]:
                    self._seen[name] = state
                    return CheckedFiles(is_guarded=True)
            began_s = time.time()
            content = digests.read_folder(folder)
            is_guarded = digests.is_as_listed(folder, content)
        except OSError as error:
            raise CorruptError(f"{folder / (error.filename or '')} cannot be read: {error.strerror}") from error
        if is_guarded and began_s - content.newest_s >= RECENT_S:
            self._seen[name] = _state(content.facts)
        return CheckedFiles(is_guarded, content.small)

    def store(self) -> None:
        """Writes the index where the runs differ from those that it has, and where it can be written."""
        if self._seen == self._known:
            return
        with contextlib.suppress(UsageError):  # a read-only campaign is hashed each time
            content = {"schema_version": SCHEMA_VERSION, "runs": self._seen}
            storage.write_json(self._campaign / INDEX, content)

    def store_added(self) -> None:
        """Adds what was seen to the index as it is now: runners of other shards may have added theirs meanwhile."""
        self._known = _read(self._campaign / INDEX)
        self._seen = self._known | self._seen
        self.store()


def hash_ended(campaign: Path, folders: Iterable[Path]) -> None:
    """Hashes runs that ended a while ago, and adds them to the index, so that the first reader need not. What is wrong
    with a run is for readers to tell.

    Of two that add at the same moment, one may be lost, and a reader hashes what the index lacks.
    """
    hashed = HashedRuns(campaign)
    for folder in folders:
        with contextlib.suppress(CorruptError):
            hashed.check(folder)
    hashed.store_added()


def _read(path: Path) -> dict[str, str]:
    try:
        stored = json.loads(path.read_bytes())
        if stored["schema_version"] != SCHEMA_VERSION:
            return {}
        return {str(name): str(state) for name, state in stored["runs"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _state(facts: bytes) -> str:
    """A digest of what `stat` says of the files of a run."""
    return hashlib.sha256(facts).hexdigest()
