# SPDX-License-Identifier: Apache-2.0
"""The wire format of protobuf, as far as ONNX files need it: fields of a message, without copying their content.

Source: protobuf.dev/programming-guides/encoding. A content is a view of the mapped file, so a tensor of 10 GB that is
only passed over is never read. Does not know any message: field numbers are the caller's.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

Buffer = memoryview


def mapped(path: Path) -> Buffer:
    """The content of a file; the mapping goes with the last view of it. ValueError for an empty file, or OSError."""
    with open(path, "rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def messages(content: Buffer) -> Iterator[tuple[int, Buffer]]:
    """(field number, content) of the fields that have one: messages, texts, bytes and packed numbers."""
    for number, _, value in fields(content):
        if isinstance(value, memoryview):
            yield number, value


def fields(content: Buffer) -> Iterator[tuple[int, int, Buffer | int]]:
    """(field number, wire type, value) of a message; raises ValueError or IndexError when the bytes are no message."""
    position, end = 0, len(content)
    while position < end:
        key, position = _varint(content, position)
        number, wire = key >> 3, key & 7
        if wire == VARINT:
            value, position = _varint(content, position)
            yield number, wire, value
            continue
        if wire == BYTES:
            length, position = _varint(content, position)
        elif wire in (FIXED64, FIXED32):
            length = 8 if wire == FIXED64 else 4
        else:
            raise ValueError(f"wire type {wire} at byte {position}")
        if position + length > end:
            raise ValueError(f"truncated: {length} bytes wanted at byte {position} of {end}")
        yield number, wire, content[position : position + length]
        position += length


def varints(content: Buffer) -> Iterator[int]:
    """Numbers packed one behind the other."""
    position = 0
    while position < len(content):
        value, position = _varint(content, position)
        yield value


def _varint(content: Buffer, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > 63:
            raise ValueError(f"no number at byte {position}")
