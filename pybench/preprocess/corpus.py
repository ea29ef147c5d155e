# SPDX-License-Identifier: Apache-2.0
"""A corpus: documents in a fixed order, and the share of one rank in it. `documents` opens the files.

A file is one document; of a `.jsonl` or `.ndjson` file each line that is not blank is one, the text of one field. `.gz`
and `.zst` around either are opened. A file of no bytes holds no document; a document without text is numbered and
passed over. Rank r of w reads the documents whose number, from 0, leaves r when divided by w. The orchestrator follows
the same rules (`orchestrator-go/internal/corpus`), and a contract test holds the two together.

A name or path is resolved once, and every file is read and checked then, so that a bad file is an error before anything
is measured. (It also brings the files into the page cache: the paths are compared on tokenizing, not on disks.)

Not here: other encodings than UTF-8, archives of several files.
"""

from __future__ import annotations

import hashlib
import os
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from pybench.errors import InputError, UsageError
from pybench.preprocess.documents import FIELD, DocumentPlace, documents_of, first_bad_byte, not_utf8

PYTHON_STDLIB = "python-stdlib"
# What a distribution or pip puts beside the standard library.
_NOT_STDLIB = {"site-packages", "dist-packages"}


@dataclass(frozen=True, slots=True)
class Corpus:
    """The documents that are read, in order. Whatever the rank, every number is that of the whole corpus.

    total_bytes: of their text
    sha256: over the length (8 bytes, little-endian) and the content of each document with text, in order. Names do not
        matter.
    limit_bytes: up to how many bytes of text whole documents are read; None: all are
    field: of a JSON line, which contains its text
    count: documents, those without text included
    rank, world: which reader this is, and of how many
    """

    name: str
    files: tuple[Path, ...]
    total_bytes: int
    sha256: str
    limit_bytes: int | None = None
    field: str = FIELD
    count: int = 0
    rank: int = 0
    world: int = 1

    def share(self, rank: int, world: int) -> Corpus:
        """The same corpus as one of `world` ranks reads it. Raises `UsageError` for a rank that does not exist."""
        if not 0 <= rank < world:
            raise UsageError(f"no rank {rank} of {world}", hint="ranks are counted from 0")
        if rank >= self.count:
            raise InputError(
                f"corpus {self.name} has {self.count} documents, too few for rank {rank} of {world}",
                hint="give every rank at least one document",
            )
        return replace(self, rank=rank, world=world)

    def documents(self) -> Iterator[tuple[DocumentPlace, bytes]]:
        """Each document of this rank that has text, read as it is asked for. Raises `InputError` when a file has gone
        bad."""
        number = 0
        for file in self.files:
            for place, text in documents_of(file, self.field):
                if number == self.count:
                    return
                if text and number % self.world == self.rank:
                    yield place, text
                number += 1


def resolve_corpus(name: str, limit_bytes: int | None = None, field: str = FIELD) -> Corpus:
    """The corpus of that name (`python-stdlib`), file or folder. `field`: of JSON lines, which holds the text.

    A folder is walked in the order of its files' relative paths; names that begin with a dot are left out. With a
    limit, whole documents are taken in order as long as they stay within it. Raises `InputError` for what is missing,
    empty, not a regular file, unreadable or not UTF-8 (`python-stdlib` leaves non-UTF-8 files out: they test decoders).
    """
    candidates = _stdlib_files() if name == PYTHON_STDLIB else _files_of(Path(name))
    files: list[Path] = []
    total_bytes, count, digest = 0, 0, hashlib.sha256()
    for place, text in _checked(candidates, field, leave_out_bad=name == PYTHON_STDLIB):
        if limit_bytes is not None and total_bytes + len(text) > limit_bytes:
            if not total_bytes:
                raise InputError(
                    f"corpus {name}: its first document, {place}, has {len(text)} bytes, the limit is {limit_bytes}",
                    hint="raise corpus_limit_bytes: only whole documents are read",
                )
            break
        if not files or files[-1] != place.file:
            files.append(place.file)
        count += 1
        if text:
            total_bytes += len(text)
            digest.update(len(text).to_bytes(8, "little"))
            digest.update(text)
    if not total_bytes:
        raise InputError(f"corpus {name} contains no text", hint="a corpus is a UTF-8 text file, or a folder of them")
    return Corpus(name, tuple(files), total_bytes, digest.hexdigest(), limit_bytes, field, count)


def _checked(files: list[Path], field: str, *, leave_out_bad: bool) -> Iterator[tuple[DocumentPlace, bytes]]:
    for file in files:
        for place, text in documents_of(file, field):
            bad_byte = first_bad_byte(text)
            if bad_byte is None:
                yield place, text
            elif not leave_out_bad:
                raise not_utf8(place, bad_byte)


def _stdlib_files() -> list[Path]:
    root = Path(sysconfig.get_path("stdlib"))
    files = [file for file in _walk(root, skip=_NOT_STDLIB) if file.suffix == ".py"]
    if not files:
        raise InputError(
            f"{root} contains no sources of Python's standard library",
            hint="give a file or folder of your own as the corpus",
        )
    return files


def _files_of(path: Path) -> list[Path]:
    if path.is_dir():
        return _walk(path, skip=set())
    if not path.exists():
        raise InputError(
            f"corpus {path} does not exist", hint=f"give a text file, a folder, or the built-in name {PYTHON_STDLIB}"
        )
    return [path]


def _walk(root: Path, skip: set[str]) -> list[Path]:
    """Every file below `root`, sorted by relative path; links to folders are not followed."""

    def fail(error: OSError) -> None:
        raise InputError(f"corpus folder {error.filename} cannot be read: {error.strerror}") from error

    files = []
    for folder, subfolders, names in os.walk(root, onerror=fail):
        subfolders[:] = [name for name in subfolders if name not in skip and not name.startswith(".")]
        files += [Path(folder, name) for name in names if not name.startswith(".")]
    return sorted(files, key=lambda file: file.relative_to(root).as_posix())
