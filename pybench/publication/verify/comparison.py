# SPDX-License-Identifier: Apache-2.0
"""An unpacked publication against its own list, and a report made anew against what was published of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pybench.campaign import layout, storage
from pybench.campaign.directory import read_json
from pybench.errors import CorruptError, UsageError
from pybench.publication.pack import sums, versions
from pybench.publication.pack.report_parts import ReportParts, parts_of
from pybench.publication.verify.table_comparison import compare_tables

_NUMBERS = ".csv"
_NAMED_AT_ONCE = 10
_SHOWN = 100  # signs of a line that differs


@dataclass(frozen=True, slots=True)
class Difference:
    """One file of the report.

    how: where it differs, or that it is on one side only
    keeps_numbers, keeps_all: whether every published number of a table, or all that was published, is made again
    """

    name: str
    how: str
    keeps_numbers: bool
    keeps_all: bool


@dataclass(frozen=True, slots=True)
class Replay:
    """What was published of the report, and what is made again.

    parts: what was published
    files, tables: how many files that is, and how many tables of numbers among them
    causes: versions that are not those of the publication
    """

    parts: ReportParts
    files: int
    tables: int
    differences: tuple[Difference, ...]
    causes: tuple[str, ...]

    @property
    def is_of_numbers(self) -> bool:
        """Whether the tables of numbers are all that was published of the report."""
        return self.parts is ReportParts.NUMBERS

    @property
    def has_same_numbers(self) -> bool:
        """Whether every number of the published tables is made again."""
        return all(one.keeps_numbers for one in self.differences)

    @property
    def is_reproduced(self) -> bool:
        """Whether a whole report is the same bytes, or published numbers are there with the words beside them."""
        if self.is_of_numbers:
            return all(one.keeps_all for one in self.differences)
        return not self.differences

    def as_json(self) -> dict[str, Any]:
        return {
            "report": self.parts,
            "files": self.files,
            "tables": self.tables,
            "reproduced": self.is_reproduced,
            "equal": not self.differences,
            "numbers_equal": self.has_same_numbers,
            "differences": [{"name": one.name, "how": one.how} for one in self.differences],
            "versions_that_differ": list(self.causes),
        }


def check_unpacked(folder: Path) -> Mapping[str, str]:
    """The list of an unpacked publication, every file of which is as listed. Files that somebody added beside the
    campaign's own do no harm; among them they would change what is read, and are refused."""
    path = folder / sums.SUMS
    if not folder.exists():
        raise UsageError(f"{folder} does not exist", hint="give an archive, or the folder that `pybench fetch` wrote")
    if not path.is_file():
        raise UsageError(
            f"{folder} is not a publication: it has no {sums.SUMS}",
            hint="give the folder that `pybench fetch` wrote; for a campaign of your own use `pybench report`",
        )
    listed = sums.parse(path.read_bytes(), str(path))
    wrong = [*_changed(folder, listed), *(f"{name} was added" for name in _added(folder, listed))]
    if wrong:
        raise _not_as_published(folder, wrong, "fetch it again")
    return listed


def check_published(folder: Path) -> list[str]:
    """The files that somebody added to the campaign of a publication, such as new runs; none of another folder.

    Raises `CorruptError` where a listed file was changed or is gone. The report is passed over: it can be made anew.
    """
    if not (folder / sums.DESCRIPTION).is_file():
        return []
    path = folder / sums.SUMS
    if not path.is_file():
        raise CorruptError(f"{folder} is a publication without {sums.SUMS}", hint="fetch it again")
    listed = sums.parse(path.read_bytes(), str(path))
    wrong = _changed(folder, {name: one for name, one in listed.items() if not name.startswith(f"{layout.REPORT}/")})
    if wrong:
        hint = f"fetch it again; or remove {sums.DESCRIPTION} if you continue it as a campaign of your own"
        raise _not_as_published(folder, wrong, hint)
    return [name for name in _added(folder, listed) if not name.rpartition("/")[2].startswith(".")]


def compare(folder: Path, listed: Mapping[str, str], remade: Path) -> Replay:
    """What is published of the report in `folder` against `remade`, the whole report made again."""
    description = folder / sums.DESCRIPTION
    stored = read_json(description, hint="fetch it again")
    parts = parts_of(stored, description)
    prefix = f"{layout.REPORT}/"
    published = {name.removeprefix(prefix) for name in listed if name.startswith(prefix)}
    made = {path.relative_to(remade).as_posix() for path in remade.rglob("*") if path.is_file()}
    if parts is ReportParts.NUMBERS:
        made = {name for name in made if name.endswith(_NUMBERS)}
    differences = [
        Difference(f"{prefix}{name}", "was not made again", not name.endswith(_NUMBERS), False)
        for name in published - made
    ]
    differences += [Difference(f"{prefix}{name}", "was not published", True, True) for name in made - published]
    for name in published & made:
        before, after = (folder / prefix / name).read_bytes(), (remade / name).read_bytes()
        if before != after:
            differences.append(_differing(f"{prefix}{name}", before, after))
    recorded = stored.get("report_made_with")
    causes = versions.differences(recorded if isinstance(recorded, dict) else {}, versions.of_report())
    tables = sum(name.endswith(_NUMBERS) for name in published)
    differences.sort(key=lambda one: one.name)
    return Replay(parts, len(published), tables, tuple(differences), tuple(causes))


def _differing(name: str, before: bytes, after: bytes) -> Difference:
    if not name.endswith(_NUMBERS):
        return Difference(name, _where(before, after), keeps_numbers=True, keeps_all=False)
    found = compare_tables(before, after)
    return Difference(name, found.how, found.keeps_numbers, found.keeps_all)


def _wrong(folder: Path, name: str, digest: str) -> str | None:
    path = folder / name
    if path.is_symlink() or not path.is_file():
        return f"{name} is missing"
    try:
        return None if storage.sha256_of(path) == digest else f"{name} was changed"
    except OSError as error:
        return f"{name} cannot be read: {error.strerror}"


def _changed(folder: Path, listed: Mapping[str, str]) -> list[str]:
    return [wrong for name, digest in listed.items() if (wrong := _wrong(folder, name, digest)) is not None]


def _not_as_published(folder: Path, wrong: Sequence[str], hint: str) -> CorruptError:
    more = [f"and {len(wrong) - _NAMED_AT_ONCE} more"] if len(wrong) > _NAMED_AT_ONCE else []
    what = "\n  ".join([f"{folder} is not as it was published:", *wrong[:_NAMED_AT_ONCE], *more])
    return CorruptError(what, hint=hint)


def _added(folder: Path, listed: Mapping[str, str]) -> list[str]:
    found = [
        path.relative_to(folder).as_posix()
        for top in sums.CAMPAIGN_FOLDERS
        for path in sorted((folder / top).rglob("*"))
        if path.is_symlink() or not path.is_dir()
    ]
    return [name for name in found if name not in listed]


def _where(before: bytes, after: bytes) -> str:
    """The first line that differs, of a text; for anything else the first byte."""
    try:
        old, new = before.decode().splitlines(), after.decode().splitlines()
    except UnicodeDecodeError:
        place = next((at for at, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), None)
        sizes = f"{len(before)} bytes published, {len(after)} made again"
        return sizes if place is None else f"differs from byte {place} on ({sizes})"
    pairs = enumerate(zip(old, new, strict=False), start=1)
    number, was, now = next(((at, a, b) for at, (a, b) in pairs if a != b), (min(len(old), len(new)) + 1, "", ""))
    if not was and not now:
        return f"has {len(old)} lines published, {len(new)} made again"
    at = next((index for index, (a, b) in enumerate(zip(was, now, strict=False)) if a != b), min(len(was), len(now)))
    start = max(0, at - _SHOWN // 2)
    return f"differs in line {number}: {was[start:][:_SHOWN]!r} published, {now[start:][:_SHOWN]!r} made again"
