# SPDX-License-Identifier: Apache-2.0
"""Merge file trees into one tar that is the same bytes wherever it is written.

What varies between two machines is fixed: order (sorted by name), owners (numbers only), and times (never later than
the given epoch). So are permissions of files that a umask shaped, and the choice of which hard link carries the data.
Sockets and device nodes are left out, since every container engine makes its own /dev. Extended attributes are dropped.

It follows the list of leaks at reproducible-builds.org/docs/archives. It compresses nothing: no compressor promises
the same output in its next version.
"""

from __future__ import annotations

import copy
import hashlib
import io
import os
import stat
import tarfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class Member:
    """One name in the archive: its header, and how to open its data (None when it has none)."""

    header: tarfile.TarInfo
    open_data: Callable[[], IO[bytes]] | None = None


Members = dict[str, Member]


def from_tar(archive: tarfile.TarFile, keep: Callable[[str], bool]) -> Members:
    """The members of an open tar, by name without a leading `./`; owners and permissions stay as they are."""
    members: Members = {}
    for stored in archive.getmembers():
        name = os.path.normpath(stored.name)
        if name == "." or not keep(name) or not (stored.isreg() or stored.isdir() or stored.issym() or stored.islnk()):
            continue
        header = _renamed(stored, name)
        if header.islnk():
            header.linkname = os.path.normpath(header.linkname)
        members[name] = Member(header, _opener_in(archive, header) if header.isreg() else None)
    return _lead_hard_links(members)


def from_tree(folder: Path, prefix: str) -> Members:
    """The files below `folder`, as owned by root below `prefix`; permissions are 0755 or 0644, by the execute bit."""
    members: Members = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        header = tarfile.TarInfo(f"{prefix}/{path.relative_to(folder).as_posix()}")
        open_data: Callable[[], IO[bytes]] | None = None
        if stat.S_ISLNK(status.st_mode):
            header.type, header.linkname, header.mode = tarfile.SYMTYPE, str(path.readlink()), 0o777
        elif stat.S_ISDIR(status.st_mode):
            header.type, header.mode = tarfile.DIRTYPE, 0o755
        elif stat.S_ISREG(status.st_mode):
            header.size, header.mode = status.st_size, 0o755 if status.st_mode & 0o100 else 0o644
            open_data = _opener_on_disk(path)
        else:
            continue
        members[header.name] = Member(header, open_data)
    return members


def file(name: str, text: str, mode: int = 0o644) -> Members:
    """One text file owned by root."""
    data = text.encode()
    header = tarfile.TarInfo(name)
    header.size, header.mode = len(data), mode
    return {name: Member(header, lambda: io.BytesIO(data))}


def directory(name: str, mode: int = 0o755) -> Members:
    """One folder owned by root."""
    header = tarfile.TarInfo(name)
    header.type, header.mode = tarfile.DIRTYPE, mode
    return {name: Member(header)}


def symlink(name: str, target: str) -> Members:
    """One symbolic link owned by root."""
    header = tarfile.TarInfo(name)
    header.type, header.linkname, header.mode = tarfile.SYMTYPE, target, 0o777
    return {name: Member(header)}


def write(members: Members, path: Path, epoch_s: int) -> str:
    """Write the members to `path`, sorted, with no time later than `epoch_s`; return the sha256 of the bytes."""
    with ExitStack() as stack:
        sink = _HashingFile(stack.enter_context(path.open("wb")))
        archive = stack.enter_context(
            tarfile.open(fileobj=sink, mode="w|", format=tarfile.PAX_FORMAT, bufsize=_CHUNK_BYTES)
        )
        for name in sorted(members, key=os.fsencode):
            member = members[name]
            header = _canonical(member.header, epoch_s)
            if member.open_data is None:
                archive.addfile(header)
            else:
                with member.open_data() as data:
                    archive.addfile(header, data)
    return sink.sha256.hexdigest()


def text_of(members: Members, name: str) -> str:
    """The text of one file among the members."""
    open_data = members[name].open_data
    if open_data is None:
        raise ValueError(f"{name} is not a file")
    with open_data() as data:
        return data.read().decode()


def sha256_of(path: Path) -> str:
    """The sha256 of a file's bytes."""
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


class _HashingFile(io.RawIOBase):
    """Passes what is written on to a file, and hashes it on the way."""

    def __init__(self, target: IO[bytes]) -> None:
        self._target = target
        self.sha256 = hashlib.sha256()

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self.sha256.update(data)
        return self._target.write(data)


def _canonical(header: tarfile.TarInfo, epoch_s: int) -> tarfile.TarInfo:
    plain = tarfile.TarInfo(header.name)
    plain.type, plain.mode, plain.linkname = header.type, stat.S_IMODE(header.mode), header.linkname
    plain.size = header.size if header.isreg() else 0
    plain.uid, plain.gid = header.uid, header.gid
    # A header made here has time 0, one from a Debian package the packager's time: both mean "no news".
    plain.mtime = min(int(header.mtime) or epoch_s, epoch_s)
    return plain


def _lead_hard_links(members: Members) -> Members:
    """Let the first name in sorted order carry a hard-linked file's data, so that each link follows its target."""
    links: dict[str, list[str]] = {}
    for name, member in members.items():
        if member.header.islnk():
            links.setdefault(member.header.linkname, []).append(name)
    merged = dict(members)
    for target, names in links.items():
        if target not in members:
            raise ValueError(f"hard link {names[0]} points to {target}, which is not in the archive")
        leader, *followers = sorted([target, *names], key=os.fsencode)
        data = members[target]
        merged[leader] = Member(_renamed(data.header, leader), data.open_data)
        for name in followers:
            header = _renamed(data.header, name)
            header.type, header.linkname = tarfile.LNKTYPE, leader
            merged[name] = Member(header)
    return merged


def _renamed(header: tarfile.TarInfo, name: str) -> tarfile.TarInfo:
    renamed = copy.copy(header)  # TarInfo.replace came with Python 3.11.4, and Debian 12 has 3.11.2
    renamed.name = name
    return renamed


def _opener_in(archive: tarfile.TarFile, header: tarfile.TarInfo) -> Callable[[], IO[bytes]]:
    def open_data() -> IO[bytes]:
        data = archive.extractfile(header)
        if data is None:
            raise ValueError(f"{header.name} has no data in the archive")
        return data

    return open_data


def _opener_on_disk(path: Path) -> Callable[[], IO[bytes]]:
    return lambda: path.open("rb")


def with_parents(members: Members) -> Members:
    """Add the folders that the members' names imply."""
    return {**_parents(members), **members}


def _parents(members: Members) -> Members:
    return {name: member for child in members for name, member in _folders_above(child)}


def _folders_above(name: str) -> Iterator[tuple[str, Member]]:
    for folder in PurePosixPath(name).parents[:-1]:
        yield from directory(str(folder)).items()
