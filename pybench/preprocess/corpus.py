# SPDX-License-Identifier: Apache-2.0
"""A corpus: text files in a fixed order. One file is one document; empty files are skipped.

A name or path is resolved once, and every file is read and checked then, so that a bad file is an error before anything
is measured. (It also brings the files into the page cache: the paths are compared on tokenizing, not on disks.)

Not here: other encodings than UTF-8, archives, several documents in one file.
"""

from __future__ import annotations

import hashlib
import os
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pybench.errors import InputError

PYTHON_STDLIB = "python-stdlib"
# What a distribution or pip puts beside the standard library.
_NOT_STDLIB = {"site-packages", "dist-packages"}


@dataclass(frozen=True, slots=True)
class Corpus:
    """The documents that are read, in order. `total_bytes`: of their text. `limit_bytes`: what was asked for, or None.

    `sha256`: over the length (8 bytes, little-endian) and the content of each document in order; names do not matter.
    """

    name: str
    files: tuple[Path, ...]
    total_bytes: int
    sha256: str
    limit_bytes: int | None = None

    def documents(self) -> Iterator[tuple[Path, bytes]]:
        """Each file with its content, read as it is asked for. Raises `InputError` when one has gone."""
        for file in self.files:
            yield file, _read(file)


def resolve_corpus(name: str, limit_bytes: int | None = None) -> Corpus:
    """The corpus of that name (`python-stdlib`), file or folder.

    A folder is walked in the order of its files' relative paths; names that begin with a dot are left out. With a
    limit, whole documents are taken in order as long as they stay within it. Raises `InputError` for what is missing,
    empty, not a regular file, unreadable or not UTF-8 (`python-stdlib` leaves non-UTF-8 files out: they test decoders).
    """
    is_stdlib = name == PYTHON_STDLIB
    candidates = _stdlib_files() if is_stdlib else _files_of(Path(name))
    files: list[Path] = []
    total_bytes, digest = 0, hashlib.sha256()
    for file in candidates:
        text = _read(file)
        bad_byte = _first_bad_byte(text)
        if bad_byte is not None and is_stdlib:
            continue
        if bad_byte is not None:
            raise not_utf8(file, bad_byte)
        if not text:
            continue
        if limit_bytes is not None and total_bytes + len(text) > limit_bytes:
            if not files:
                raise InputError(
                    f"corpus {name}: its first document, {file}, has {len(text)} bytes, the limit is {limit_bytes}",
                    hint="raise corpus_limit_bytes: documents are taken whole",
                )
            break
        files.append(file)
        total_bytes += len(text)
        digest.update(len(text).to_bytes(8, "little"))
        digest.update(text)
    if not files:
        raise InputError(f"corpus {name} holds no text", hint="a corpus is a UTF-8 text file, or a folder of them")
    return Corpus(name, tuple(files), total_bytes, digest.hexdigest(), limit_bytes)


def not_utf8(file: Path, position: int) -> InputError:
    """The error for a document that is not UTF-8 from byte `position` on."""
    return InputError(
        f"{file} is not UTF-8: byte {position} begins no character",
        hint=f"convert it, as in: iconv -f latin1 -t utf-8 {file.name}",
    )


def _stdlib_files() -> list[Path]:
    root = Path(sysconfig.get_path("stdlib"))
    files = [file for file in _walk(root, skip=_NOT_STDLIB) if file.suffix == ".py"]
    if not files:
        raise InputError(
            f"{root} holds no sources of Python's standard library",
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


def _read(file: Path) -> bytes:
    # Reading a pipe would block, and a device may never end.
    if file.exists() and not file.is_file():
        raise InputError(f"{file} is not a regular file", hint="a corpus is made of text files")
    try:
        return file.read_bytes()
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from error


def _first_bad_byte(text: bytes) -> int | None:
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return error.start
    return None
