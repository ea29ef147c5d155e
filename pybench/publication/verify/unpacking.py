# SPDX-License-Identifier: Apache-2.0
"""Unpacking what a stranger made: only files that SHA256SUMS names, each with its digest, into a folder that nobody
sees before all are there.

Names were checked when the list was read, so none leads out of the folder. A file that is not in the list, is there
twice, or has other bytes ends the unpacking; so do more bytes or files than allowed, whatever sizes were declared. The
tar reader knows plain files of USTAR and nothing else: a link, a device, a folder or a header extension is an error.
Nothing unpacked is executable, and nothing is executed or even parsed.
"""

from __future__ import annotations

import copy
import hashlib
import io
import lzma
import os
import stat
import struct
import zipfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

import zstandard

from pybench.campaign import storage
from pybench.errors import CorruptError

_CHUNK_BYTES = 1 << 20
_BLOCK_BYTES = 512
_ZSTD_WINDOW_BYTES = 1 << 27  # memory that a frame may claim; those of layers need 8 MB, those of archives all
_PLAIN_FILE = (b"0", b"\0")
_KINDS = {
    b"1": "a hard link",
    b"2": "a symbolic link",
    b"3": "a character device",
    b"4": "a block device",
    b"5": "a folder",
    b"6": "a pipe",
    b"7": "a contiguous file",
}
_ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA)
_LZMA_HEADER = struct.Struct("<2xHBI")  # in a zip (APPNOTE 5.8.8): version, size of what follows, lc lp pb, dictionary
_LZMA_PROPERTIES_BYTES = 5
_LZMA_DICTIONARY_BYTES = 1 << 26  # memory that a member may claim, as `xz -9` does; pybench's own claim 8 MiB


@dataclass(frozen=True, slots=True)
class Limits:
    """What a publication may unpack to."""

    bytes: int = 20_000_000_000
    files: int = 1_000_000


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class Unpacking:
    """Files on their way into `folder`. `expected`: name -> sha256, as `sums.parse` gives it."""

    def __init__(self, folder: Path, expected: Mapping[str, str], limits: Limits, where: str) -> None:
        self._folder = folder
        self._expected = expected
        self._limits = limits
        self._where = where
        self._done: set[str] = set()
        self._bytes = 0
        if len(expected) > limits.files:
            raise CorruptError(f"{where} contains {len(expected)} files; at most {limits.files} are unpacked")

    def add(self, name: str, size: int, source: _Readable) -> None:
        """Writes one file of `size` bytes, and checks it."""
        if name not in self._expected:
            raise self._refused(f"{_shown(name)} is not in its list of files")
        if name in self._done:
            raise self._refused(f"{name} occurs twice")
        self._count(size)
        digest = hashlib.sha256()
        path = self._folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
            with open(descriptor, "wb") as file:
                left = size
                while left:
                    chunk = source.read(min(left, _CHUNK_BYTES))
                    if not chunk:
                        raise self._refused(f"it ends within {name}")
                    left -= len(chunk)
                    digest.update(chunk)
                    file.write(chunk)
        except OSError as error:
            raise storage.storage_error(error, path) from error
        if digest.hexdigest() != self._expected[name]:
            raise self._refused(f"{name} does not match the list of files: its sha256 is {digest.hexdigest()}")
        self._done.add(name)

    def finish(self) -> None:
        """Raises `CorruptError` unless every listed file came."""
        missing = sorted(set(self._expected) - self._done)
        if missing:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise self._refused(f"{missing[0]}{more} of its list of files is not in it")

    def _count(self, size: int) -> None:
        self._bytes += size
        if self._bytes > self._limits.bytes:
            raise CorruptError(
                f"{self._where} unpacks to more than {self._limits.bytes / 1e9:g} GB",
                hint="if this size is right, allow it with --max-gb",
            )

    def _refused(self, why: str) -> CorruptError:
        return CorruptError(
            f"{self._where} is damaged or was tampered with: {why}", hint="nothing was written; fetch it again"
        )


# --- a layer ---------------------------------------------------------------------------------------------------------


def unpack_layer(path: Path, unpacking: Unpacking, where: str, *, skip: int = 0) -> None:
    """Unpacks a file that `pybench.publication.carry.layers` wrote. `skip`: how many first members were read before."""
    with _opened_tar(path, where) as stream:
        for number, (name, size) in enumerate(_members(stream, where)):
            if number < skip:
                stream.read(size)
            else:
                unpacking.add(name, size, stream)


def first_members(path: Path, names: Collection[str], most_bytes: int, where: str) -> dict[str, bytes]:
    """Name -> content of the members that a tar begins with, as far as they are among `names`.

    most_bytes: what one may have. Raises CorruptError.
    """
    found: dict[str, bytes] = {}
    with _opened_tar(path, where) as stream:
        for name, size in _members(stream, where):
            if name not in names or name in found:
                break
            if size > most_bytes:
                raise CorruptError(f"{where}: {name} has {size} bytes")
            found[name] = stream.read(size)
            if len(found[name]) != size:
                raise CorruptError(f"{where} is cut off within {name}")
            if len(found) == len(names):
                break
    return found


@contextmanager
def _opened_tar(path: Path, where: str) -> Iterator[io.BufferedReader]:
    decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)
    try:
        with open(path, "rb") as file, decompressor.stream_reader(file) as stream:
            yield io.BufferedReader(_Raw(stream), _CHUNK_BYTES)
    except zstandard.ZstdError as error:
        raise CorruptError(f"{where} is damaged: {error}") from error


class _Raw(io.RawIOBase):
    """zstandard's reader as one that `io.BufferedReader` takes, so that a read is short only at the end."""

    def __init__(self, stream: zstandard.ZstdDecompressionReader) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        return int(self._stream.readinto(buffer))


def _members(stream: io.BufferedReader, where: str) -> Iterator[tuple[str, int]]:
    """Name and size of each member. Whoever asks reads these bytes of `stream` before asking for the next."""
    while True:
        block = stream.read(_BLOCK_BYTES)
        if len(block) != _BLOCK_BYTES:
            raise CorruptError(f"{where} is cut off: its tar has no end")
        if block == bytes(_BLOCK_BYTES):
            break
        name, size = _read_header(block, where)
        yield name, size
        padding = -size % _BLOCK_BYTES
        if len(stream.read(padding)) != padding:
            raise CorruptError(f"{where} is cut off after {name}")
    rest = stream.read(_CHUNK_BYTES)  # the second empty block, and what fills the last record of 10 KiB
    if rest.strip(b"\0") or len(rest) == _CHUNK_BYTES:
        raise CorruptError(f"{where} has bytes after its end")


def _read_header(block: bytes, where: str) -> tuple[str, int]:
    """Name and size of a plain file, from a header as POSIX.1-1988 (USTAR) has it."""
    kind = block[156:157]
    if block[257:265] != b"ustar\x0000" or _octal(block[148:156]) != sum(block[:148]) + 8 * ord(" ") + sum(block[156:]):
        raise CorruptError(f"{where} contains an entry without a USTAR header")
    name, prefix = (_text(block[start:end], where) for start, end in ((0, 100), (345, 500)))
    full = f"{prefix}/{name}" if prefix else name
    if kind not in _PLAIN_FILE:
        what = _KINDS.get(kind, f"an entry of kind {kind!r}")
        raise CorruptError(f"{where} contains {what}: {_shown(full)}", hint="a publication contains only plain files")
    size = _octal(block[124:136])
    if size is None:
        raise CorruptError(f"{where}: {_shown(full)} has no size")
    return full, size


def _octal(field: bytes) -> int | None:
    digits = field.rstrip(b"\0 ").lstrip(b" ")
    return int(digits, 8) if digits and all(digit in b"01234567" for digit in digits) else None


def _text(field: bytes, where: str) -> str:
    text, _, rest = field.partition(b"\0")
    if rest.strip(b"\0"):
        raise CorruptError(f"{where} contains a name with bytes after its end")
    return text.decode("ascii", errors="replace")


# --- a zip -----------------------------------------------------------------------------------------------------------


def unpack_zip(archive: zipfile.ZipFile, unpacking: Unpacking, documents: frozenset[str], where: str) -> None:
    """Unpacks an open zip. `documents`: members that were read before and are no files of the list."""
    for member in archive.infolist():
        if member.filename not in documents:
            with open_member(archive, member, where) as source:
                unpacking.add(member.filename, member.file_size, source)


@contextmanager
def open_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, where: str) -> Iterator[IO[bytes]]:
    """A member to read. What a `read` allocates depends on the bytes asked for, not on what the member expands to.

    Raises `CorruptError` for what is no plain file, or is encrypted or compressed in a way of its own.
    """
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in (0, stat.S_IFREG) or member.filename.endswith("/"):
        raise CorruptError(
            f"{where} contains an entry that is not a plain file: {_shown(member.filename)}",
            hint="a publication contains only plain files",
        )
    if member.flag_bits & 0x1 or member.compress_type not in _ZIP_METHODS:
        raise CorruptError(f"{where}: {_shown(member.filename)} is encrypted or compressed in an unusual way")
    if member.compress_type != zipfile.ZIP_LZMA:
        with archive.open(member) as source:
            yield source
        return
    with archive.open(_as_stored(member)) as compressed:
        decompressor = _lzma_decompressor(compressed.read(_LZMA_HEADER.size), f"{where}: {_shown(member.filename)}")
        yield io.BufferedReader(_LzmaMember(compressed, decompressor), _CHUNK_BYTES)


def _as_stored(member: zipfile.ZipInfo) -> zipfile.ZipInfo:
    """The compressed bytes of a member, as a member: zipfile itself allocates any dictionary and any output of LZMA."""
    stored = copy.copy(member)
    stored.compress_type, stored.file_size = zipfile.ZIP_STORED, member.compress_size
    del stored.CRC  # of the decompressed bytes
    return stored


def _lzma_decompressor(header: bytes, what: str) -> lzma.LZMADecompressor:
    if len(header) != _LZMA_HEADER.size:
        raise CorruptError(f"{what} is cut off within its LZMA header")
    properties_bytes, properties, dictionary_bytes = _LZMA_HEADER.unpack(header)
    if properties_bytes != _LZMA_PROPERTIES_BYTES:
        raise CorruptError(f"{what} has an LZMA header of {properties_bytes} bytes, not {_LZMA_PROPERTIES_BYTES}")
    if dictionary_bytes > _LZMA_DICTIONARY_BYTES:
        raise CorruptError(
            f"{what} requires {dictionary_bytes} bytes of memory for LZMA; at most {_LZMA_DICTIONARY_BYTES} are given",
            hint="if you trust it, unpack it with another program, and use `pybench replay FOLDER`",
        )
    rest, lc = divmod(properties, 9)
    pb, lp = divmod(rest, 5)
    filters = [{"id": lzma.FILTER_LZMA1, "dict_size": dictionary_bytes, "lc": lc, "lp": lp, "pb": pb}]
    try:
        return lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=filters)
    except lzma.LZMAError as error:
        raise CorruptError(f"{what} has an LZMA header that cannot be read: {error}") from error


class _LzmaMember(io.RawIOBase):
    """The decompressed bytes of a member."""

    def __init__(self, compressed: IO[bytes], decompressor: lzma.LZMADecompressor) -> None:
        self._compressed = compressed
        self._decompressor = decompressor

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._decompressor.eof:
            more = self._compressed.read(_CHUNK_BYTES) if self._decompressor.needs_input else b""
            got = self._decompressor.decompress(more, len(buffer))
            buffer[: len(got)] = got
            if got or (self._decompressor.needs_input and not more):
                return len(got)
        return 0


def _shown(name: str) -> str:
    """A stranger's name for a terminal."""
    return repr(name[:200])
