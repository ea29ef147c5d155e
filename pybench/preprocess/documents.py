# SPDX-License-Identifier: Apache-2.0
"""The documents of one file: plain text, JSON lines, either of them compressed. The name alone decides how it is read.

Texts of errors are those of the orchestrator's reader: every path says the same of the same file. Only why a compressed
file is none stands there in the words of the library that found out.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from pybench.errors import InputError

FIELD = "text"  # what public corpora call it: C4, The Pile, FineWeb
LINE_SUFFIXES = (".jsonl", ".ndjson")
_COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
_CUT_OFF = "it is incomplete"
_READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class DocumentPlace:
    """Where a document comes from; `line` is None for a whole file."""

    file: Path
    line: int | None = None

    def __str__(self) -> str:
        return str(self.file) if self.line is None else f"{self.file} line {self.line}"


def documents_of(file: Path, field: str) -> Iterator[tuple[DocumentPlace, bytes]]:
    """Each document with its text, which may be empty; none of a file without bytes. Raises `InputError`."""
    # Reading a pipe would block, and a device may never end.
    if file.exists() and not file.is_file():
        raise InputError(f"{file} is not a regular file", hint="a corpus is made of text files")
    compression, holds_lines = _format_of(file.name)
    try:
        if file.stat().st_size == 0:
            return
        if not holds_lines:
            yield DocumentPlace(file), b"".join(_pieces(file, compression))
            return
        for number, line in enumerate(_lines(_pieces(file, compression)), start=1):
            if line.strip(b" \t\r"):
                place = DocumentPlace(file, number)
                yield place, _field_of(line, field, place)
    except OSError as error:
        raise InputError(f"{file} cannot be read: {(error.strerror or str(error)).lower()}") from error


def not_utf8(place: DocumentPlace, position: int) -> InputError:
    """The error for a document that is not UTF-8 from byte `position` on."""
    return InputError(
        f"{place} is not UTF-8: byte {position} begins no character",
        hint=f"convert it, as in: iconv -f latin1 -t utf-8 {place.file.name}",
    )


def first_bad_byte(text: bytes) -> int | None:
    """Where a text stops being UTF-8; None: nowhere."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return error.start
    return None


def _format_of(name: str) -> tuple[str | None, bool]:
    """How it is compressed, and whether it holds lines, in letters of either case. One ending is taken off, whatever
    stands before it, nothing included (`Path.suffix` sees none in `.gz`)."""
    name = name.lower()
    for ending, compression in _COMPRESSIONS.items():
        if name.endswith(ending):
            return compression, name.removesuffix(ending).endswith(LINE_SUFFIXES)
    return None, name.endswith(LINE_SUFFIXES)


def _pieces(file: Path, compression: str | None) -> Iterator[bytes]:
    """The content of a file, decompressed."""
    if compression == "zstd":
        yield from _zstd_pieces(file)
        return
    with gzip.open(file) if compression else open(file, "rb") as stream:
        try:
            while piece := stream.read(_READ_BYTES):
                yield piece
        except EOFError as error:
            raise _broken(file, "gzip", _CUT_OFF) from error
        except (gzip.BadGzipFile, zlib.error) as error:
            raise _broken(file, "gzip", str(error)) from error


def _zstd_pieces(file: Path) -> Iterator[bytes]:
    """Frame by frame: the library's own stream takes a file that was cut off for one that has ended."""
    import zstandard

    frame = None
    with open(file, "rb") as stream:
        try:
            while piece := stream.read(_READ_BYTES):
                while piece:
                    frame = frame or zstandard.ZstdDecompressor().decompressobj()
                    yield frame.decompress(piece)
                    piece = frame.unused_data if frame.eof else b""
                    frame = None if frame.eof else frame
        except zstandard.ZstdError as error:
            raise _broken(file, "zstd", str(error)) from error
    if frame is not None:
        raise _broken(file, "zstd", _CUT_OFF)


def _broken(file: Path, compression: str, reason: str) -> InputError:
    return InputError(
        f"{file} is not a complete {compression} file: {reason}",
        hint="compress it again, or drop the ending from its name",
    )


def _lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Without their line breaks; the last needs none."""
    rest: list[bytes] = []
    for piece in pieces:
        first, *further = piece.split(b"\n")
        rest.append(first)
        for line in further:
            yield b"".join(rest)
            rest = [line]
    if last := b"".join(rest):
        yield last


def _field_of(line: bytes, field: str, place: DocumentPlace) -> bytes:
    bad_byte = first_bad_byte(line)
    if bad_byte is not None:
        raise not_utf8(place, bad_byte)
    try:
        # No number is wanted, and a very long one would be refused here and by no other path.
        record = json.loads(line.decode(), parse_int=_pass_over, parse_float=_pass_over, parse_constant=_refuse)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise InputError(f"{place} is not a JSON object", hint="a .jsonl file has one JSON object in each line")
    if field not in record:
        found = ", ".join(sorted(record))
        raise InputError(
            f"{place} has no field {field} (it has: {found})",
            hint="set `corpus_field` to the field that contains the text",
        )
    text = record[field]
    if not isinstance(text, str):
        raise InputError(
            f"{place}: field {field} is not a string", hint="set `corpus_field` to the field that contains the text"
        )
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{place}: field {field} contains half a surrogate pair", hint="write the character itself, or both halves"
        ) from error


def _pass_over(_number: str) -> None:
    return None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
