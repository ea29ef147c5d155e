# SPDX-License-Identifier: Apache-2.0
"""The digests of a finished run, which its file `complete` contains, and whether the run's files still have them.

The content of `complete` is a text that `sha256sum -c complete` reads:

    # pybench: sha256 of each file of this finished run
    <64 hexadecimal digits>  case.json
    <64 hexadecimal digits>  run.json
    # sha256 of the lines above: <64 hexadecimal digits>

The last line lets a reader tell a changed list from a changed file.
A published run may have two more comment lines, because publishing replaces personal data and leaves files out.

Hidden files, names with a line end, links to folders, pipes and sockets are not part of a run.
Of these pybench reads only `.extract`.
native/run_folder.cpp lists what is left, and run_folder.py where that is not built.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pybench.campaign.layout import COMPLETE
from pybench.errors import CorruptError

try:
    from pybench import _native as run_folder
except ImportError:  # what starts runs elsewhere, or only reads them, needs no compiled module
    from pybench.campaign import run_folder  # type: ignore[no-redef]

_TITLE = "# pybench: sha256 of each file of this finished run"
_REWRITTEN = "# rewritten to publish it: "
_LEFT_OUT = "# files left out when published: "
_END = "# sha256 of the lines above: "
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")
_KEPT_BYTES = 1 << 16  # most files of a run are smaller; a larger buffer costs more than it saves
_NAMED_AT_ONCE = 3  # files named in the error of one run; the rest is counted


@dataclass(frozen=True, slots=True)
class Digests:
    """What `complete` says of a run."""

    files: Mapping[str, str]
    """Name relative to the run's folder -> sha256, 64 hexadecimal digits."""
    rewritten: tuple[str, ...] = ()
    """Names of the files in which publishing replaced personal data: their digests are of the published bytes."""
    left_out: int = 0
    """How many files of the run were not published."""


@dataclass(frozen=True, slots=True)
class FolderContent:
    """Every file of a run, each opened once: what `stat` said of it before it was read, and its digest."""

    digests: Mapping[str, str]
    """Name relative to the run's folder -> sha256, `complete` included."""
    small: Mapping[str, bytes]
    """Content of the files of at most `_KEPT_BYTES`."""
    facts: bytes
    """`facts_of` the folder."""
    newest_s: float
    """When the last of the files changed, since 1970."""


def read_folder(folder: Path) -> FolderContent:
    """Reads and hashes every file of a run. Raises OSError, with a name relative to `folder`."""
    contents, facts, newest_ns = run_folder.read_run_folder(os.fsencode(folder), _KEPT_BYTES)
    small = {name: content for name, content in contents.items() if content is not None}
    found = {
        name: _digest_of(folder, name) if content is None else hashlib.sha256(content).hexdigest()
        for name, content in contents.items()
    }
    return FolderContent(found, small, facts, newest_ns / 1e9)


def _digest_of(folder: Path, name: str) -> str:
    """Of a file that is large, or that changed while it was read."""
    try:
        with open(folder / name, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise OSError(error.errno, error.strerror, name) from error


def facts_of(folder: Path) -> bytes:
    """What `stat` says of every file of a run, sorted by path: a line of its name, a zero byte, and its size, times and
    inode. The time of the last change (ctime) is there besides that of the last writing, because programs set the
    latter back. Raises OSError, with a name relative to `folder`."""
    return run_folder.stat_run_folder(os.fsencode(folder))


def of_folder(folder: Path) -> Digests:
    """Reads and hashes every file of a run, except `complete`."""
    return Digests({name: digest for name, digest in read_folder(folder).digests.items() if name != COMPLETE})


def files_of(folder: Path) -> Iterator[tuple[str, Path]]:
    """(name relative to `folder`, path) of every file of a run, `complete` included, sorted by path."""
    names = (os.fsdecode(line.partition(b"\0")[0]) for line in facts_of(folder).split(b"\n") if line)
    return ((name, folder / name) for name in names)


def render(digests: Digests) -> bytes:
    """The bytes of `complete`."""
    lines = [_TITLE, *(f"{digests.files[name]}  {name}" for name in sorted(digests.files))]
    lines += [f"{_REWRITTEN}{name}" for name in sorted(digests.rewritten)]
    lines += [f"{_LEFT_OUT}{digests.left_out}"] if digests.left_out else []
    text = _bytes(lines)
    return text + _bytes([f"{_END}{hashlib.sha256(text).hexdigest()}"])


def parse(content: bytes, place: Path) -> Digests:
    """What `render` wrote. Raises `CorruptError` for every other content."""
    text = content.decode("utf-8", errors="surrogateescape")
    *lines, last = text.removesuffix("\n").split("\n")
    if last != f"{_END}{hashlib.sha256(_bytes(lines)).hexdigest()}":
        raise CorruptError(f"{place} is not as pybench wrote it: its last line is not the sha256 of the lines above")
    matches = [match for line in lines if (match := _LINE.fullmatch(line))]
    counts = [line.removeprefix(_LEFT_OUT) for line in lines if line.startswith(_LEFT_OUT)]
    digests = Digests(
        files={match[2]: match[1] for match in matches},
        rewritten=tuple(line.removeprefix(_REWRITTEN) for line in lines if line.startswith(_REWRITTEN)),
        left_out=int(counts[0]) if counts and counts[0].isdecimal() else 0,
    )
    if render(digests) != content:
        raise CorruptError(f"{place} is not a list of digests that this pybench reads")
    return digests


def check(folder: Path) -> bool:
    """Hashes every byte of a finished run. True: the files are as listed; False: `complete` is empty, as an older
    pybench left it. Raises `CorruptError` with each file that differs, and both digests."""
    try:
        return is_as_listed(folder, read_folder(folder))
    except OSError as error:
        raise CorruptError(f"{folder / (error.filename or '')} cannot be read: {error.strerror}") from error


def is_as_listed(folder: Path, content: FolderContent) -> bool:
    """`check` of a run that has been read. Raises OSError where it has no readable `complete`."""
    place = folder / COMPLETE
    listed = content.small.get(COMPLETE)
    listed = place.read_bytes() if listed is None else listed
    if not listed:
        return False
    found = {name: digest for name, digest in content.digests.items() if name != COMPLETE}
    if listed == render(Digests(found)):
        return True
    wrong = list(_differences(parse(listed, place).files, found))
    if wrong:
        more = f"; and {len(wrong) - _NAMED_AT_ONCE} more files" if len(wrong) > _NAMED_AT_ONCE else ""
        raise CorruptError(
            f"{folder} is not as it was when the run finished: {'; '.join(wrong[:_NAMED_AT_ONCE])}{more}"
        )
    return True


def _differences(expected: Mapping[str, str], found: Mapping[str, str]) -> Iterator[str]:
    for name in sorted({*expected, *found}):
        if name not in found:
            yield f"{name} is missing"
        elif name not in expected:
            yield f"{name} was added"
        elif expected[name] != found[name]:
            yield f"{name} has sha256 {found[name]}, expected {expected[name]}"


def _bytes(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", errors="surrogateescape")
