# SPDX-License-Identifier: Apache-2.0
"""A publication as it came, before anything of it is believed: an OCI artefact, a zip or a tar, read the same way.

`open_bundle` brings an artefact's blobs to this machine and checks each against the manifest, which is checked against
the digest that was asked for. What is in them is for `unpacking` to check, by the list of files.
"""

from __future__ import annotations

import errno
import json
import lzma
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pybench.campaign import storage
from pybench.errors import CorruptError, UsageError
from pybench.publication.carry.artefact import ARTEFACT_TYPE, LAYER_TITLE, LAYOUT, TITLE, find_in_index
from pybench.publication.carry.reference import DIGEST, ENDINGS, LayoutReference, Reference, RegistryReference
from pybench.publication.carry.registry import Registry
from pybench.publication.carry.transport import RegistryAccess
from pybench.publication.pack import sums
from pybench.publication.verify.unpacking import (
    Limits,
    Unpacking,
    first_members,
    open_member,
    unpack_layer,
    unpack_zip,
)

_LARGEST_DOCUMENT_BYTES = 256 << 20  # the list of a million files
_LARGEST_MANIFEST_BYTES = 4 << 20
_UNLISTED = (sums.SUMS, sums.SIGNATURE)
_ZSTD_MAGIC = bytes.fromhex("28b52ffd")
_DAMAGED_ZIP = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, NotImplementedError, EOFError, UnicodeDecodeError)


class Bundle(Protocol):
    """`digest`: of the artefact's manifest; None for a file."""

    where: str
    digest: str | None

    def read(self, name: str) -> bytes | None: ...

    def unpack(self, unpacking: Unpacking) -> None: ...


@contextmanager
def open_bundle(reference: Reference, access: RegistryAccess, limits: Limits, work: Path) -> Iterator[Bundle]:
    """The publication that a reference names. `work`: a folder for what comes from a registry; a part of a blob that is
    there from before is continued."""
    if isinstance(reference, RegistryReference):
        yield _from_registry(reference, access, limits, work)
    elif isinstance(reference, LayoutReference):
        yield _from_layout(reference)
    elif _is_tar(reference.file):
        yield _Tar(reference.file)
    else:
        _refuse_no_archive(reference.file)
        with _opened_zip(reference.file) as archive:
            yield _Zip(str(reference.file), archive)


# --- an OCI artefact -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _BundleLayer:
    """One entry of the manifest's layers."""

    title: str
    digest: str
    bytes: int


class _Artefact:
    """An artefact whose blobs are all on this machine and are what the manifest says."""

    def __init__(self, where: str, digest: str, files: Mapping[str, Path]) -> None:
        self.where = where
        self.digest: str | None = digest
        self._files = files

    def read(self, name: str) -> bytes | None:
        return self._files[name].read_bytes() if name in self._files else None

    def unpack(self, unpacking: Unpacking) -> None:
        for title, path in self._files.items():
            where = f"{self.where} ({title})"
            if LAYER_TITLE.fullmatch(title):
                unpack_layer(path, unpacking, where)
            elif title not in _UNLISTED:
                with open(path, "rb") as file:
                    unpacking.add(title, path.stat().st_size, file)


def _from_registry(reference: RegistryReference, access: RegistryAccess, limits: Limits, work: Path) -> _Artefact:
    registry = Registry(reference, access)
    manifest = registry.manifest()
    digest = f"sha256:{sums.hash_bytes(manifest)}"
    parts = _parts(manifest, str(reference), limits)
    files = {}
    for part in parts:
        target = work / part.digest.removeprefix("sha256:")
        registry.download(part.digest, part.bytes, target)
        files[part.title] = target
    return _Artefact(str(reference), digest, files)


def _from_layout(reference: LayoutReference) -> _Artefact:
    folder = reference.folder
    if not (folder / LAYOUT).is_file():
        raise UsageError(f"{folder} is not an OCI layout", hint="for an unpacked publication use `pybench replay`")
    digest = find_in_index(folder, reference.tag, reference.digest)
    manifest = _blob(folder, digest, None).read_bytes()
    parts = _parts(manifest, str(folder), None)
    return _Artefact(str(folder), digest, {part.title: _blob(folder, part.digest, part.bytes) for part in parts})


def _blob(folder: Path, digest: str, size: int | None) -> Path:
    """A blob of a layout, checked; `size` None: a manifest, of any size that one may have."""
    if not DIGEST.fullmatch(digest):
        raise CorruptError(f"{folder} contains the blob name {digest[:80]!r}, which is not a sha256")
    path = folder / "blobs" / "sha256" / digest.removeprefix("sha256:")
    if not path.is_file():
        raise CorruptError(f"{path} is missing", hint="the layout is incomplete: copy it again")
    found = path.stat().st_size
    if found > _LARGEST_MANIFEST_BYTES if size is None else found != size:
        raise CorruptError(
            f"{path} has {found} bytes, not {size or 'the size of a manifest'}: it is incomplete or not the right file"
        )
    if f"sha256:{storage.sha256_of(path)}" != digest:
        raise CorruptError(f"the content of {path} does not match the digest in its name", hint="copy the layout again")
    return path


def _parts(manifest: bytes, where: str, limits: Limits | None) -> list[_BundleLayer]:
    """The layers of a pybench artefact. Raises `CorruptError` for a manifest that is none."""
    try:
        content = json.loads(manifest)
        kind, layers = content.get("artifactType"), content["layers"]
        parts = [_BundleLayer(one["annotations"][TITLE], one["digest"], one["size"]) for one in layers]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptError(
            f"{where} is not a publication of pybench: {type(error).__name__} in its manifest"
        ) from error
    if kind != ARTEFACT_TYPE:
        raise UsageError(f"{where} is {str(kind)[:80]!r}, not a publication of pybench ({ARTEFACT_TYPE})")
    for part in parts:
        is_layer = isinstance(part.title, str) and LAYER_TITLE.fullmatch(part.title) is not None
        is_known = is_layer or part.title in (*sums.DOCUMENTS, *_UNLISTED)
        is_sound = isinstance(part.digest, str) and DIGEST.fullmatch(part.digest) and type(part.bytes) is int
        if not is_known or not is_sound or part.bytes < 0:
            raise CorruptError(f"{where} contains a part that no publication has: {str(part.title)[:80]!r}")
        if not is_layer and part.bytes > _LARGEST_DOCUMENT_BYTES:
            raise CorruptError(f"{where}: {part.title} has {part.bytes} bytes")
    if len({part.title for part in parts}) != len(parts):
        raise CorruptError(f"{where} names a part twice")
    total = sum(part.bytes for part in parts)
    if limits is not None and total > limits.bytes:
        raise CorruptError(f"{where} has {total / 1e9:.3g} GB", hint="if this size is right, allow it with --max-gb")
    return parts


# --- a tar -----------------------------------------------------------------------------------------------------------


class _Tar:
    """A tar compressed with zstd, which begins with the list of files and its signature."""

    def __init__(self, file: Path) -> None:
        self.where = str(file)
        self.digest: str | None = None
        self._file = file
        self._lists = first_members(file, _UNLISTED, _LARGEST_DOCUMENT_BYTES, self.where)

    def read(self, name: str) -> bytes | None:
        return self._lists.get(name)

    def unpack(self, unpacking: Unpacking) -> None:
        unpack_layer(self._file, unpacking, self.where, skip=len(self._lists))


def _is_tar(file: Path) -> bool:
    with open(file, "rb") as opened:
        return opened.read(len(_ZSTD_MAGIC)) == _ZSTD_MAGIC


# --- a zip -----------------------------------------------------------------------------------------------------------


class _Zip:
    def __init__(self, where: str, archive: zipfile.ZipFile) -> None:
        self.where = where
        self.digest: str | None = None
        self._archive = archive

    def read(self, name: str) -> bytes | None:
        members = [member for member in self._archive.infolist() if member.filename == name]
        if not members:
            return None
        if len(members) > 1:
            raise CorruptError(f"{self.where} contains {name} twice")
        if members[0].file_size > _LARGEST_DOCUMENT_BYTES:
            raise CorruptError(f"{self.where}: {name} has {members[0].file_size} bytes")
        with open_member(self._archive, members[0], self.where) as source:
            return source.read(members[0].file_size)

    def unpack(self, unpacking: Unpacking) -> None:
        unpack_zip(self._archive, unpacking, frozenset(_UNLISTED), self.where)


def _refuse_no_archive(file: Path) -> None:
    """Another file, such as a plan, is not a damaged archive."""
    with open(file, "rb") as opened:
        begins_as_zip = opened.read(2) == b"PK"
    if not begins_as_zip and not file.name.endswith(ENDINGS):
        raise UsageError(f"{file} is not an archive", hint=f"give a published archive ({', '.join(ENDINGS)})")


@contextmanager
def _opened_zip(file: Path) -> Iterator[zipfile.ZipFile]:
    """Everything that Python's zipfile says of a damaged zip, as our error."""
    try:
        with zipfile.ZipFile(file) as archive:
            yield archive
    except (*_DAMAGED_ZIP, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.EINVAL:  # a header that names a place before the file
            raise
        raise CorruptError(
            f"{file} is not a complete zip file: {error}", hint="fetch it again; nothing was written"
        ) from error
