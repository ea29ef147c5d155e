# SPDX-License-Identifier: Apache-2.0
"""What Python passes as text, as the shared object takes it: bytes end to end, and offsets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pybench_tokenizer.errors import ArgumentError
from pybench_tokenizer.shared_object import ffi

Text = bytes | bytearray | memoryview

# Of a stream: a call costs microseconds, a mebibyte milliseconds.
STREAM_CHUNK_BYTES = 1 << 20


def chunks(documents: Iterable[str | Text], chunk_bytes: int = STREAM_CHUNK_BYTES) -> Iterator[list[str | Text]]:
    """A stream by parts of about that much text."""
    chunk: list[str | Text] = []
    held = 0
    for document in documents:
        chunk.append(document)
        held += len(document)
        if held >= chunk_bytes:
            yield chunk
            chunk, held = [], 0
    if chunk:
        yield chunk


def joined(documents: Text | Sequence[str | Text]) -> tuple[bytes, NDArray[np.uint64]]:
    """Documents end to end, and where each begins and ends."""
    if isinstance(documents, (str, bytes, bytearray, memoryview)):
        raise ArgumentError("one text needs offsets; encode() takes a single document")
    try:
        encoded = [one.encode() if isinstance(one, str) else one for one in documents]
        lengths = [len(one) for one in encoded]
        text = b"".join(encoded)
    except (TypeError, ValueError, BufferError) as error:
        raise ArgumentError(f"the documents have to be str or contiguous bytes: {error}") from error
    offsets = np.zeros(len(encoded) + 1, np.uint64)
    np.cumsum(lengths, out=offsets[1:])
    if int(offsets[-1]) != len(text):
        raise ArgumentError("the documents have to be str or bytes, one byte an item")
    return text, offsets


def checked_offsets(offsets: NDArray[np.uint64]) -> NDArray[np.uint64]:
    given = np.asarray(offsets)
    if given.ndim != 1 or given.size == 0 or given.dtype.kind not in "ui":
        raise ArgumentError("offsets have to be integers in one dimension, at least one")
    if given.dtype.kind == "i" and int(given.min()) < 0:
        raise ArgumentError("offsets out of order: a negative one")
    return np.ascontiguousarray(given, np.uint64)


def buffer_of(text: Text) -> Any:
    try:
        return ffi.from_buffer("uint8_t[]", text)
    except (TypeError, ValueError, BufferError) as error:
        raise ArgumentError(f"the text has to be contiguous bytes: {error}") from error


def pointer(kind: str, array: NDArray[Any]) -> Any:
    return ffi.cast(kind, array.ctypes.data)
