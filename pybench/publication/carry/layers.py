# SPDX-License-Identifier: Apache-2.0
"""Files as a tar, compressed with zstd: the layers of an artefact, and the archive `.tar.zst`.

The same files give the same bytes.
The tar is plain USTAR: one time, no owners, no extensions. So the reader (`verify.unpacking`) knows nothing else
either, and what an attacker would need (links, devices, sparse files, long headers) it cannot even read.
The zstd frame comes from the zstandard package, whose version the lock pins.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO

import zstandard

from pybench.errors import UsageError

MEDIA_TYPE = "application/vnd.pybench.files.v1.tar+zstd"
_LEVEL = 10  # of a campaign's text as small as 19 within a few per cent, and ten times as fast
_LARGEST_BYTES = 8**11 - 1  # what USTAR's eleven octal digits hold


def write(folder: Path, names: Iterable[str], target: Path, epoch_s: int) -> None:
    """Packs files of `folder`, sorted by name. Raises OSError as writing does."""
    with open(target, "wb") as file:
        pack(folder, sorted(names), file, epoch_s, zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True))


def pack(
    folder: Path, names: Iterable[str], file: IO[bytes], epoch_s: int, compressor: zstandard.ZstdCompressor
) -> None:
    """Writes files of `folder` to an open file, in the order of `names`."""
    with (
        compressor.stream_writer(file, closefd=False) as stream,
        tarfile.open(fileobj=stream, mode="w|", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for name in names:
            _add(archive, folder / name, name, epoch_s)


def _add(archive: tarfile.TarFile, path: Path, name: str, epoch_s: int) -> None:
    header = tarfile.TarInfo(name)
    header.size, header.mtime, header.mode = path.stat().st_size, epoch_s, 0o644
    if header.size > _LARGEST_BYTES:
        raise UsageError(f"{name} has {header.size} bytes, more than a file of a tar may have ({_LARGEST_BYTES})")
    with open(path, "rb") as source:
        archive.addfile(header, source)
