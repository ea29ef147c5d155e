# SPDX-License-Identifier: Apache-2.0
"""What the name of an image leads to: a file (OCI archive, OCI layout or SIF), or a reference by digest.

An image's digest is that of its manifest, or of the whole file for a SIF; it is computed here, never believed. Manifest
and configuration are checked against their digests, layers for being whole: engines check their content when they take
them in. From the OCI image specification 1.1 and github.com/sylabs/sif (pkg/sif/sif.go). Nothing is unpacked here.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import struct
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn

from pybench.errors import InputError, UsageError

Kind = Literal["archive", "layout", "sif", "registry"]

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_REFERENCE = re.compile(r"(docker://)?[a-z0-9][a-z0-9.:-]*(/[a-zA-Z0-9._-]+)+(:[\w.-]+)?")
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
_MOST_JSON_BYTES = 4 << 20  # manifests are kilobytes; the specification lets a registry refuse more than 4 MiB
_SIF_MAGIC = b"SIF_MAGIC\0"
_SIF_HEADER = struct.Struct("<32s10s3s3s16s8q")  # ... created, modified, free, total, descriptors 2x, data offset, size


@dataclass(frozen=True, slots=True)
class Image:
    """An image that was looked into.

    location: its path, or NAME@DIGEST
    digest: what it is
    config: the digest of its configuration, by which engines know an image that they hold (None for a SIF and in a
        registry)
    """

    location: str
    kind: Kind
    digest: str
    config: str | None = None


def look_into(given: str) -> Image:
    """The image that `given` names, as `PATH`, `PATH@sha256:...` or `[docker://]HOST/NAME@sha256:...`.

    Raises InputError for a file that is no whole image, UsageError for a name that is neither or another digest.
    """
    name, asked = _split(given)
    path = Path(name)
    if path.is_dir():
        image = _look_into_layout(path)
    elif path.exists():
        image = _look_into_sif(path) if _is_sif(path) else _look_into_archive(path)
    elif asked is not None and _REFERENCE.fullmatch(name):
        return Image(f"{name.removeprefix('docker://')}@{asked}", "registry", asked)
    else:
        what = "no such file" if asked is not None or "/" not in name else "no such file, and no reference by digest"
        raise UsageError(
            f"the image {given}: {what}",
            hint="give an OCI archive or layout, a SIF, or HOST/NAME@sha256:... (`make container` makes the first two)",
        )
    if asked is not None and asked != image.digest:
        raise UsageError(
            f"{name} is {image.digest}, not {asked}", hint="use the image with this digest, or give its own digest"
        )
    return image


def _split(given: str) -> tuple[str, str | None]:
    name, found, digest = given.rpartition("@")
    if not found:
        return given, None
    if not _DIGEST.fullmatch(digest):
        raise UsageError(f"the image {given}: {digest} is no digest", hint="write sha256: and 64 digits of 0-9a-f")
    return name, digest


@dataclass(frozen=True, slots=True)
class _Store:
    """Files of an image layout, wherever they lie: `read` gives a file's bytes, `size` how many there are."""

    where: Path
    read: Callable[[str], bytes]
    size: Callable[[str], int | None]

    def blob(self, descriptor: Mapping[str, Any]) -> dict[str, Any]:
        """The JSON that a descriptor names, which has its digest."""
        digest, name = descriptor["digest"], _blob_name(descriptor)
        if self.size(name) is None:
            _refuse(self.where, f"it lacks {name}")
        content = self.read(name)
        if f"sha256:{hashlib.sha256(content).hexdigest()}" != digest:
            _refuse(self.where, f"the content of {name} does not match the digest in its name")
        found: dict[str, Any] = json.loads(content)
        return found


def _look_into_layout(folder: Path) -> Image:
    def size(name: str) -> int | None:
        file = folder / name
        return file.stat().st_size if file.is_file() else None

    def read(name: str) -> bytes:
        with open(folder / name, "rb") as file:
            return file.read(_MOST_JSON_BYTES)

    with _readable(folder):
        return _image(_Store(folder, read, size), "layout")


def _look_into_archive(path: Path) -> Image:
    total = path.stat().st_size
    with _readable(path), tarfile.open(path, "r:") as archive:
        members = {member.name.removeprefix("./"): member for member in _members(archive)}

        def size(name: str) -> int | None:
            member = members.get(name)
            is_whole = member is not None and member.isreg() and member.offset_data + member.size <= total
            return member.size if member is not None and is_whole else None

        def read(name: str) -> bytes:
            file = archive.extractfile(members[name])
            return b"" if file is None else file.read(_MOST_JSON_BYTES)

        return _image(_Store(path, read, size), "archive")


def _members(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """The members up to where the file breaks off: what is missing then is named."""
    try:
        yield from archive
    except tarfile.ReadError:
        return


def _image(store: _Store, kind: Kind) -> Image:
    """Follows index, manifest and configuration, each by its digest."""
    if store.size("oci-layout") is None or store.size("index.json") is None:
        _refuse(store.where, "it has no oci-layout and index.json")
    descriptor = _manifest_for_this_machine(store, json.loads(store.read("index.json")))
    manifest = store.blob(descriptor)
    store.blob(manifest["config"])
    for layer in manifest["layers"]:
        if store.size(_blob_name(layer)) != layer["size"]:
            _refuse(store.where, f"{_blob_name(layer)} is missing or cut off")
    return Image(str(store.where.absolute()), kind, descriptor["digest"], manifest["config"]["digest"])


def _manifest_for_this_machine(store: _Store, index: Mapping[str, Any]) -> Mapping[str, Any]:
    """The one manifest in an index that this machine can run; indexes may be nested, as buildx writes them."""
    wanted = {"os": "linux", "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine())}
    fitting = [
        entry
        for entry in index["manifests"]
        if all(entry.get("platform", wanted).get(key) == value for key, value in wanted.items())
    ]
    if len(fitting) != 1:
        _refuse(store.where, f"it contains {len(fitting)} images for linux/{wanted['architecture']}")
    if fitting[0].get("mediaType") == _INDEX_TYPE:
        return _manifest_for_this_machine(store, store.blob(fitting[0]))
    chosen: Mapping[str, Any] = fitting[0]
    return chosen


def _blob_name(descriptor: Mapping[str, Any]) -> str:
    digest = str(descriptor["digest"])
    if not _DIGEST.fullmatch(digest):
        raise ValueError(f"{digest} is no sha256 digest")
    return f"blobs/{digest.replace(':', '/')}"


def _is_sif(path: Path) -> bool:
    with _readable(path), open(path, "rb") as file:
        return file.read(_SIF_HEADER.size)[32:42] == _SIF_MAGIC


def _look_into_sif(path: Path) -> Image:
    with _readable(path), open(path, "rb") as file:
        header = _SIF_HEADER.unpack(file.read(_SIF_HEADER.size))
        offset, length = header[-2:]
        if path.stat().st_size < offset + length:
            _refuse(path, f"it breaks off: {path.stat().st_size} of {offset + length} bytes")
        file.seek(0)
        return Image(str(path.absolute()), "sif", f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}")


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """What a damaged or foreign file throws, as one error that names it."""
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    except (tarfile.ReadError, ValueError, KeyError, TypeError, AttributeError, struct.error) as error:
        _refuse(path, f"{type(error).__name__}: {error}", error)


def _refuse(path: Path, why: str, cause: Exception | None = None) -> NoReturn:
    raise InputError(
        f"{path} is not a complete image: {why}",
        hint="an OCI archive or layout, or a SIF, is wanted: build or fetch it again",
    ) from cause
