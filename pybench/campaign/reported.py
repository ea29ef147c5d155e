# SPDX-License-Identifier: Apache-2.0
"""Whether a campaign's report is still the one that `pybench report` would write.

`.reported.json` in the campaign's folder contains what the report was made from, and the sha256 of each of its files:

- a digest of what `stat` says of every file of the campaign: names, sizes, times and inodes;
- the options of the report, pybench's own modules and the versions of the packages that compute and draw.

The report is made again when one of these differs, or when a file of it is missing or was changed.
The record is never needed: without it, or where it cannot be read or written, the report is made each time.
As with `.hashed.json`, a bit that changed on the disk while no time did is noticed by `pybench check` only.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import time
from importlib import metadata
from pathlib import Path

from pybench.campaign import digests, storage
from pybench.campaign.directory import CampaignDirectory
from pybench.campaign.hashed import RECENT_S
from pybench.campaign.layout import CLUSTER, REPORT
from pybench.errors import UsageError

RECORD = ".reported.json"
SCHEMA_VERSION = 1
_NO_INPUTS = frozenset({REPORT, CLUSTER})
# Those whose numbers, drawing or markup are in a report; none is imported here.
REPORTED_WITH = (
    "contourpy",
    "fonttools",
    "jinja2",
    "kiwisolver",
    "markupsafe",
    "matplotlib",
    "numpy",
    "pillow",
    "polars",
    "scipy",
)


class ReportRecord:
    """What a campaign's report is made from, as found when this object is made: before the runs are read."""

    def __init__(self, campaign: CampaignDirectory, *, pdf: bool = False) -> None:
        """`pdf`: whether the report that is asked for has its figures as PDF, too."""
        self._campaign = campaign
        self._made_from = _state_of(campaign.path, f"pdf {pdf}\n")

    def is_current(self) -> bool:
        """Whether the report has been made from just this, and its files are as they were written."""
        try:
            stored = json.loads((self._campaign.path / RECORD).read_bytes())
            alike = stored["schema_version"] == SCHEMA_VERSION and stored["made_from"] == self._made_from
            return bool(alike and self._made_from and stored["files"] == _files(self._campaign.report))
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return False

    def store(self) -> None:
        """Records the report that is there now, where that can be told and written."""
        if self._made_from is None:
            return
        with contextlib.suppress(UsageError, OSError):
            files = _files(self._campaign.report)
            record = {"schema_version": SCHEMA_VERSION, "made_from": self._made_from, "files": files}
            storage.write_json(self._campaign.path / RECORD, record)


def _files(report: Path) -> dict[str, str]:
    return dict(digests.of_folder(report).files)


def _state_of(campaign: Path, options: str) -> str | None:
    """A digest of everything that a report depends on, `options` included. None where it cannot be told: a file changed
    so recently that it may change again without another time, a folder is a link, or something cannot be read."""
    digest = hashlib.sha256((options + _program()).encode())
    try:
        newest_ns = _add_tree(str(campaign), digest, _NO_INPUTS)
    except OSError:
        return None
    if newest_ns is None or time.time() - newest_ns / 1e9 < RECENT_S:
        return None
    return digest.hexdigest()


def _add_tree(folder: str, digest: hashlib._Hash, left_out: frozenset[str] = frozenset()) -> int | None:
    """Adds each name with what `stat` says of it. Returns the time of the last change, in ns since 1970; None where a
    folder is a link: what is behind it may be anything, itself included."""
    newest_ns = 0
    with os.scandir(folder) as scan:
        entries = sorted((entry.name, entry) for entry in scan if not entry.name.startswith("."))
    for name, entry in entries:
        if name in left_out:
            continue
        if entry.is_dir():
            digest.update(f"{name}/\n".encode(errors="surrogateescape"))
            below_ns = None if entry.is_symlink() else _add_tree(entry.path, digest)
            if below_ns is None:
                return None
            digest.update(b"..\n")
            newest_ns = max(newest_ns, below_ns)
            continue
        status = entry.stat()
        newest_ns = max(newest_ns, status.st_mtime_ns, status.st_ctime_ns)
        facts = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        digest.update(f"{name}\0{facts}\n".encode(errors="surrogateescape"))
    return newest_ns


def _program() -> str:
    """The bytes of pybench's modules, the versions of what they draw and compute with, and Python's own."""
    package = Path(__file__).parents[1]
    found = [storage.sha256_of(path) for path in sorted(package.rglob("*")) if path.is_file() and path.suffix != ".pyc"]
    for name in REPORTED_WITH:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found.append(f"{name} {metadata.version(name)}")
    return "\n".join([*found, sys.version])
