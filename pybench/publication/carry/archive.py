# SPDX-License-Identifier: Apache-2.0
"""A publication in one file: every file at its name, nothing that differs between two packings.

| form | for | its files |
| --- | --- | --- |
| `.zip` | archives such as Zenodo, which show what a zip contains | compressed one by one |
| `.tar.zst` | a repository, whose room is small | compressed together, which takes half the bytes |

One time (that of the campaign), one permission, no owners. Other versions of zlib, liblzma or zstandard may give other
bytes of the same contents: the digest to cite is that of the contents, which SHA256SUMS is.
"""

from __future__ import annotations

import contextlib
import os
import zipfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import IO

import zstandard

from pybench.campaign import storage
from pybench.errors import UsageError
from pybench.publication.carry import layers
from pybench.publication.carry.reference import TAR, ZIP
from pybench.publication.pack import sums
from pybench.publication.pack.package import PackedPublication

_CHUNK_BYTES = 1 << 20

# --- a zip -----------------------------------------------------------------------------------------------------------

_LEVEL = 6
_UNIX = 3
_MODE = 0o100644 << 16  # a plain file, in the upper half of the external attributes
# Nobody opens the samples of runs by hand. Old programs read only deflate, so everything that people open stays in it;
# so do artefacts, because weights shrink by few percent and take minutes.
_LZMA_FOLDER = "runs/"
_LEAST_LZMA_BYTES = 4096  # smaller files gain nothing, and starting LZMA takes some milliseconds for each


def _write_zip(package: PackedPublication, file: IO[bytes]) -> None:
    when = datetime.fromtimestamp(package.facts.epoch_s, UTC).timetuple()[:6]
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as archive:
        for name in [*sorted(package.digests), *_lists(package)]:
            _add(archive, package.folder / name, name, when)


def _add(archive: zipfile.ZipFile, path: Path, name: str, when: tuple[int, ...]) -> None:
    year, month, day, hour, minute, second = when
    header = zipfile.ZipInfo(name, (max(year, 1980), month, day, hour, minute, second))
    header.create_system, header.external_attr = _UNIX, _MODE
    header.file_size = path.stat().st_size
    is_lzma = name.startswith(_LZMA_FOLDER) and header.file_size >= _LEAST_LZMA_BYTES
    header.compress_type = zipfile.ZIP_LZMA if is_lzma else zipfile.ZIP_DEFLATED
    with open(path, "rb") as source, archive.open(header, "w") as stored:
        while chunk := source.read(_CHUNK_BYTES):
            stored.write(chunk)


# --- a tar -----------------------------------------------------------------------------------------------------------

_SOLID_LEVEL = 19
_WINDOW_LOG = 27  # 128 MiB, the most that programs take without being asked to


def _write_tar(package: PackedPublication, file: IO[bytes]) -> None:
    """Begins with the list of files, so that a reader knows what to expect. Files of one name stand together."""
    names = sorted(package.digests, key=lambda name: (PurePosixPath(name).name, name))
    parameters = zstandard.ZstdCompressionParameters.from_level(
        _SOLID_LEVEL, window_log=_WINDOW_LOG, write_checksum=True
    )
    compressor = zstandard.ZstdCompressor(compression_params=parameters)
    layers.pack(package.folder, [*_lists(package), *names], file, package.facts.epoch_s, compressor)


# --- both ------------------------------------------------------------------------------------------------------------

FORMS: Mapping[str, Callable[[PackedPublication, IO[bytes]], None]] = {ZIP: _write_zip, TAR: _write_tar}
"""End of a file's name -> what writes this form."""


def form_of(target: Path) -> str:
    """A key of `FORMS`. Raises UsageError for a file of another name."""
    for ending in FORMS:
        if target.name.endswith(ending):
            return ending
    raise UsageError(
        f"--archive {target}: the name has to end with {' or '.join(FORMS)}",
        hint=f"{ZIP} is for archives such as Zenodo; {TAR} has half the bytes",
    )


def write(package: PackedPublication, target: Path) -> str:
    """Writes the archive whole or not at all; returns its sha256. Raises UsageError for another ending."""
    write_form = FORMS[form_of(target)]
    storage.make_folder(target.parent, exist_ok=True, option="--archive")
    temporary = storage.temporary_name(target)
    try:
        with open(temporary, "xb") as file:
            write_form(package, file)
            file.flush()
            os.fsync(file.fileno())
        digest = storage.sha256_of(temporary)
        os.replace(temporary, target)
        storage.sync(target.parent)
    except OSError as error:
        raise storage.storage_error(error, target, "--archive") from error
    finally:
        with contextlib.suppress(OSError):  # on a file system that has become read-only it cannot be removed
            temporary.unlink()
    return digest


def _lists(package: PackedPublication) -> list[str]:
    return [sums.SUMS, *([sums.SIGNATURE] if package.is_signed else [])]
