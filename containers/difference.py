# SPDX-License-Identifier: Apache-2.0
"""Where two images differ: the members of their root file systems by name, and what diffoscope says of the first.

diffoscope alone would need hours for gigabytes that are equal; hashing every member of both first leaves it the few
that are not.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

MOST_NAMED = 50
MOST_EXPLAINED = 5
DIFFOSCOPE_S = 300
_FIELDS = ("type", "mode", "uid", "gid", "size", "mtime", "linkname")


def explain(first: Path, second: Path, report: Path) -> None:
    """Write what differs between two OCI archives of one layer to `report`, and print its beginning."""
    with _layer(first) as one, _layer(second) as other:
        found, contents = _compare(one, other)
        lines = found or ["the root file systems are equal: index, configuration or squashfs differ"]
        lines += [line for name in contents[:MOST_EXPLAINED] for line in _diffoscope(name, one, other)]
    report.write_text("\n".join(lines) + "\n")
    print("\n".join(lines[:MOST_NAMED]))


@contextmanager
def _layer(archive: Path) -> Iterator[tarfile.TarFile]:
    """The one layer of an archive, opened as a tar where it lies."""
    with tarfile.open(archive) as outer:
        index = json.load(_file(outer, "index.json"))
        manifest = json.load(_file(outer, _blob(index["manifests"][0])))
        with tarfile.open(fileobj=_file(outer, _blob(manifest["layers"][0]))) as layer:
            yield layer


def _compare(one: tarfile.TarFile, other: tarfile.TarFile) -> tuple[list[str], list[str]]:
    """What differs, a line a member, and the names of those whose contents do."""
    mine, theirs = ({member.name: member for member in tar} for tar in (one, other))
    lines, contents = [], []
    for name in sorted(mine.keys() | theirs.keys()):
        if name not in mine or name not in theirs:
            lines.append(f"{name}: only in the {'first' if name in mine else 'second'}")
            continue
        a, b = mine[name], theirs[name]
        fields = [
            f"{key} {getattr(a, key)!r} and {getattr(b, key)!r}"
            for key in _FIELDS
            if getattr(a, key) != getattr(b, key)
        ]
        if a.isreg() and b.isreg() and _sha256(one, a) != _sha256(other, b):
            fields.append("content")
            contents.append(name)
        if fields:
            lines.append(f"{name}: {', '.join(fields)}")
    if list(mine) != list(theirs) and mine.keys() == theirs.keys():
        lines.append("the order of members differs")
    return lines, contents


def _diffoscope(name: str, one: tarfile.TarFile, other: tarfile.TarFile) -> list[str]:
    """What diffoscope says of one member, or how to have it."""
    program = shutil.which("diffoscope")
    if program is None:
        return [f"{name}: diffoscope would say more: apt-get install diffoscope-minimal"]
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / side / Path(name).name for side in ("first", "second")]
        for path, tar in zip(paths, (one, other), strict=True):
            path.parent.mkdir()
            with _file(tar, name) as source, path.open("wb") as target:
                shutil.copyfileobj(source, target)
        try:
            command = [program, "--no-progress", "--max-report-size", "20000", *map(str, paths)]
            said = subprocess.run(
                command, capture_output=True, text=True, errors="replace", timeout=DIFFOSCOPE_S, check=False
            )
        except subprocess.TimeoutExpired:
            return [f"{name}: diffoscope found no end in {DIFFOSCOPE_S} s"]
    return ["", f"=== {name}", *said.stdout.splitlines(), *said.stderr.splitlines()]


def _sha256(tar: tarfile.TarFile, member: tarfile.TarInfo) -> str:
    with _file(tar, member.name) as content:
        return hashlib.file_digest(content, "sha256").hexdigest()  # type: ignore[arg-type]


def _file(tar: tarfile.TarFile, name: str) -> IO[bytes]:
    found = tar.extractfile(name)
    if found is None:
        raise ValueError(f"{name} has no content")
    return found


def _blob(descriptor: dict[str, str]) -> str:
    return f"blobs/{descriptor['digest'].replace(':', '/')}"
