# SPDX-License-Identifier: Apache-2.0
"""The files of a finished run, where there is no compiled module: what starts runs elsewhere or reads them needs none.

The twin of native/run_folder.cpp, which says what is listed; `pybench.campaign.digests` takes the quicker of the two.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


def read_run_folder(folder: bytes, kept_bytes: int) -> tuple[dict[str, bytes | None], bytes, int]:
    """Name -> content, None of those that are not kept; what stat says of all; the last change, ns since 1970."""
    contents: dict[str, bytes | None] = {}
    found = []
    for name, entry in _entries(folder, b""):
        with _named(name), open(entry.path, "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            content = file.read(min(status.st_size, kept_bytes) + 1)
        contents[os.fsdecode(name)] = content if len(content) == status.st_size <= kept_bytes else None
        found.append((name, status))
    newest_ns = max((max(status.st_mtime_ns, status.st_ctime_ns) for _, status in found), default=0)
    return contents, _facts(found), newest_ns


def stat_run_folder(folder: bytes) -> bytes:
    """What stat says of all files."""
    found = []
    for name, entry in _entries(folder, b""):
        with _named(name):
            found.append((name, entry.stat()))
    return _facts(found)


def _facts(found: list[tuple[bytes, os.stat_result]]) -> bytes:
    return b"".join(
        b"%s\0(%d, %d, %d, %d)\n" % (name, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        for name, status in found
    )


def _entries(folder: bytes, prefix: bytes) -> Iterator[tuple[bytes, os.DirEntry[bytes]]]:
    with _named(prefix), os.scandir(folder + b"/" + prefix) as scan:
        entries = sorted(scan, key=lambda entry: entry.name)
    for entry in entries:
        name = prefix + entry.name
        if entry.name.startswith(b".") or b"\n" in entry.name:
            continue
        with _named(name):
            is_folder, is_file = entry.is_dir(follow_symlinks=False), entry.is_file()
        if is_folder:
            yield from _entries(folder, name + b"/")
        elif is_file:
            yield name, entry


@contextmanager
def _named(name: bytes) -> Iterator[None]:
    """Names the file of an OSError relative to the run's folder."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, os.fsdecode(name)) from error
