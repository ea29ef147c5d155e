# SPDX-License-Identifier: Apache-2.0
"""What Python passes as text, as the shared object takes it: bytes end to end, and offsets.

Whatever is no text is refused here, by its type, with ArgumentError.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pybench_tokenizer.arguments import integer, integers
from pybench_tokenizer.errors import ArgumentError, Utf8Error
from pybench_tokenizer.shared_object import ffi

Text = bytes | bytearray | memoryview
Item = TypeVar("Item")

# Of a stream: a call costs microseconds, a mebibyte milliseconds.
STREAM_CHUNK_BYTES = 1 << 20


def chunks(documents: Iterable[str | Text], chunk_bytes: int = STREAM_CHUNK_BYTES) -> Iterator[list[str | Text]]:
    """A stream by parts of about that much text: characters of a str, items of any other."""
    if isinstance(documents, (str, bytes, bytearray, memoryview)):
        raise ArgumentError("documents is one text; it has to be a stream of them")
    chunk_bytes = integer("chunk_bytes", chunk_bytes)
    chunk: list[str | Text] = []
    held = 0
    for number, document in enumerate(_iterated(documents, "documents")):
        if not isinstance(document, (str, bytes)):
            _check_document(document, number)
        chunk.append(document)
        held += len(document)
        if held >= chunk_bytes:
            yield chunk
            chunk, held = [], 0
    if chunk:
        yield chunk


def joined(documents: Text | Sequence[str | Text]) -> tuple[bytes, NDArray[np.uint64]]:
    """Documents as bytes end to end, and the len(documents) + 1 offsets in these at which they begin and end."""
    if isinstance(documents, (str, bytes, bytearray, memoryview)):
        raise ArgumentError("one text needs offsets; encode() takes a single document")
    documents = list(_iterated(documents, "documents"))
    try:
        encoded = [one.encode() if isinstance(one, str) else one for one in documents]
        lengths = [len(one) for one in encoded]
        text = b"".join(encoded)
    except (TypeError, ValueError, BufferError) as error:
        for number, one in enumerate(documents):
            _check_document(one, number)
        raise ArgumentError(f"the documents have to be str or contiguous bytes: {error}") from error
    offsets = np.zeros(len(encoded) + 1, np.uint64)
    np.cumsum(lengths, out=offsets[1:])
    if int(offsets[-1]) != len(text):
        raise ArgumentError("the documents have to be str or bytes, one byte an item")
    return text, offsets


def special_texts(tokens: Iterable[str]) -> tuple[bytes, NDArray[np.uint64]]:
    """Special tokens as bytes end to end, and the offset at which each ends."""
    if isinstance(tokens, str):
        raise ArgumentError(f"special_tokens is one str, {tokens!r}; it has to be a sequence of them")
    listed = list(_iterated(tokens, "special_tokens"))
    for token in listed:
        if not isinstance(token, str):
            raise ArgumentError(f"special token {token!r} is of type {type(token).__name__}; it has to be a str")
    text, offsets = joined(listed)
    return text, offsets[1:]


def utf8(text: str | Text) -> Text:
    """One text as bytes. Raises ArgumentError where a str holds half a surrogate pair, which UTF-8 cannot write."""
    try:
        return text.encode() if isinstance(text, str) else text
    except UnicodeEncodeError as error:
        raise ArgumentError(f"the text holds half a surrogate pair: {error}") from error


def _iterated(values: Iterable[Item], name: str) -> Iterator[Item]:
    try:
        return iter(values)
    except TypeError as error:
        raise ArgumentError(f"{name} is of type {type(values).__name__}; it has to be a sequence of texts") from error


def _check_document(document: object, number: int) -> None:
    if isinstance(document, str):
        return
    try:
        memoryview(document)  # type: ignore[arg-type]  # what these two take is what is asked:
        len(document)  # type: ignore[arg-type]  # a number of numpy's has memory, but no length
    except TypeError as error:
        kind = type(document).__name__
        raise ArgumentError(f"document {number} is of type {kind}; it has to be str or bytes") from error


def utf8_error(position: int, offsets: NDArray[np.uint64], first: int) -> Utf8Error:
    """The error for the byte at `position` of joined documents, which are those of a stream from number `first` on."""
    index = int(np.searchsorted(offsets, position, "right")) - 1
    return Utf8Error(position - int(offsets[index]), first + index)


def checked_offsets(offsets: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Offsets as the shared object reads them: 64-bit, contiguous. It checks itself that they do not decrease."""
    given = integers("offsets", offsets)
    if given.size == 0:
        raise ArgumentError("offsets have to be at least one")
    if given.dtype.kind == "i" and int(given.min()) < 0:
        raise ArgumentError("offsets out of order: a negative one")
    return np.ascontiguousarray(given, np.uint64)


def buffer_of(text: object, name: str = "the text") -> Any:
    """The memory of contiguous bytes, which the object that is returned keeps."""
    try:
        return ffi.from_buffer("uint8_t[]", text)
    except (TypeError, ValueError, BufferError) as error:
        raise ArgumentError(f"{name} has to be contiguous bytes: {error}") from error


def pointer(kind: str, array: NDArray[Any]) -> Any:
    """Where a contiguous array lies. It does not keep the array: whoever calls has to."""
    return ffi.cast(kind, array.ctypes.data)
