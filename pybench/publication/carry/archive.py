# SPDX-License-Identifier: Apache-2.0
"""The zip for an archive such as Zenodo: every file at its name, nothing that differs between two packings.

Sorted names, one time (that of the campaign), one permission, no owners. Larger files of runs are compressed with LZMA,
and everything else with deflate, by the liblzma and zlib at hand. Others may give other bytes of the same contents: the
digest to cite is that of the contents, which SHA256SUMS is.
"""

from __future__ import annotations

import os
import zipfile
from datetime import UTC, datetime
from pathlib import Path

from pybench.campaign import storage
from pybench.publication.pack import sums
from pybench.publication.pack.package import PackedPublication

_LEVEL = 6
_CHUNK_BYTES = 1 << 20
_UNIX = 3
_MODE = 0o100644 << 16  # a plain file, in the upper half of the external attributes
# Nobody opens the samples of runs by hand. Old programs read only deflate, so everything that people open stays in it;
# so do artefacts, because weights shrink by few percent and take minutes.
_LZMA_FOLDER = "runs/"
_LEAST_LZMA_BYTES = 4096  # smaller files gain nothing, and starting LZMA takes some milliseconds for each


def write(package: PackedPublication, target: Path) -> str:
    """Writes the zip whole or not at all; returns its sha256."""
    storage.make_folder(target.parent, exist_ok=True)
    temporary = storage.temporary_name(target)
    extra = [sums.SUMS, *([sums.SIGNATURE] if package.is_signed else [])]
    when = datetime.fromtimestamp(package.facts.epoch_s, UTC).timetuple()[:6]
    try:
        with open(temporary, "xb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as archive:
                for name in [*sorted(package.digests), *extra]:
                    _add(archive, package.folder / name, name, when)
            file.flush()
            os.fsync(file.fileno())
        digest = storage.sha256_of(temporary)
        os.replace(temporary, target)
        storage.sync(target.parent)
    except OSError as error:
        raise storage.storage_error(error, target) from error
    finally:
        temporary.unlink(missing_ok=True)
    return digest


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
