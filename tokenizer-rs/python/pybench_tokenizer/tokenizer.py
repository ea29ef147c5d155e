# SPDX-License-Identifier: Apache-2.0
"""`Tokenizer`: the shared object with numpy arrays in and out. It converts, calls and maps errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pybench_tokenizer.arguments import integer, integers, name_bytes, path_text
from pybench_tokenizer.documents import (
    STREAM_CHUNK_BYTES,
    Text,
    buffer_of,
    checked_offsets,
    chunks,
    joined,
    pointer,
    special_texts,
    utf8,
    utf8_error,
)
from pybench_tokenizer.errors import ArgumentError, FileError, IdError, Utf8Error
from pybench_tokenizer.shared_object import (
    ERROR_CAPACITY,
    ERROR_ID,
    ERROR_UTF8,
    OK,
    call_explained,
    error_of,
    ffi,
    lib,
)

IdArray = NDArray[np.uint16] | NDArray[np.uint32]

# At most; 18 MiB with the tables for long words, once a worker has seen that many words. A quarter of it is as fast on
# text not seen before; on more text this one keeps words that the smaller one loses.
CACHE_ENTRIES = 1 << 19
# No vocabulary comes near; a larger file is something else.
FILE_BYTES_MAX = 1 << 28


class Tokenizer:
    """A byte-level BPE model. May be used by several threads at once.

    A call takes a worker, cache and scratch memory, that is idle, or makes one. There are as many as there were calls
    at one time, however many threads have come and gone, and what they know stays.
    """

    def __init__(self, json: Text, *, name: str = "tokenizer.json", cache_entries: int = CACHE_ENTRIES) -> None:
        """`json`: the content of a Hugging Face tokenizer.json. `name`: what errors call it. `cache_entries`: 0, or a
        power of two up to 2^24, of each worker. Raises FormatError, UnsupportedError or ArgumentError."""
        buffer = buffer_of(json, "json")
        self._adopt(_load(lambda *result: lib.pbt_model_load(buffer, len(buffer), *result), name), cache_entries)

    def _adopt(self, model: Any, cache_entries: int) -> None:
        self._model = model
        self._cache_entries = integer("cache_entries", cache_entries)
        # Taking from a list's end and putting back there are atomic.
        self._idle: list[Any] = []
        self.vocab_size = int(lib.pbt_model_vocab_size(self._model))
        self.dtype = np.dtype(np.uint16 if lib.pbt_model_id_bytes(self._model) == 2 else np.uint32)
        self._idle.append(self._new_worker())  # an impossible cache size is an error here, not at the first text

    @classmethod
    def from_file(cls, path: str | PathLike[str], *, cache_entries: int = CACHE_ENTRIES) -> Tokenizer:
        """Loads a tokenizer.json. Raises FileError, FormatError, UnsupportedError or ArgumentError."""
        name = path_text("path", path)
        return cls(_read(name), name=name, cache_entries=cache_entries)

    @classmethod
    def from_ranks(
        cls,
        path: str | PathLike[str],
        family: str,
        special_tokens: Mapping[str, int] | None = None,
        *,
        cache_entries: int = CACHE_ENTRIES,
    ) -> Tokenizer:
        """Loads a tiktoken rank file: a token in base64 and its rank on each line.

        family: the splitting rule, which such a file does not name: "gpt2", "llama3", "cl100k" or "o200k".
        special_tokens: texts that become the given id wherever they occur; without any, text is encoded as by
        tiktoken's `encode_ordinary`. Raises what `from_file` raises.
        """
        path, name = path_text("path", path), name_bytes("family", family)
        specials = {} if special_tokens is None else special_tokens
        ids = _special_ids(specials)
        texts, ends = special_texts(specials)
        ranks = _read(path)
        places = (texts, pointer("uint64_t *", ends), pointer("uint32_t *", ids), len(ids))
        self = cls.__new__(cls)
        self._adopt(
            _load(
                lambda *result: lib.pbt_model_load_ranks(ranks, len(ranks), name, len(name), *places, *result),
                path,
            ),
            cache_entries,
        )
        return self

    def encode_batch(
        self, text: Text | Sequence[str | Text], offsets: NDArray[np.uint64] | None = None
    ) -> tuple[IdArray, NDArray[np.uint64]]:
        """Encodes documents: a sequence of them, or one buffer with the offsets at which they begin and end.

        text: a sequence of str or of bytes of UTF-8; or, with offsets, contiguous bytes which nobody may change during
        the call, where document i is `text[offsets[i]:offsets[i + 1]]`. offsets: n + 1 integers, non-decreasing, within
        the text. Returns the ids of all documents end to end (dtype `self.dtype`) and n + 1 offsets into them. Raises
        ArgumentError, or Utf8Error with the position in the text (of a sequence: as if its members were joined).
        """
        if offsets is None:
            text, offsets = joined(text)
        offsets = checked_offsets(offsets)
        buffer = buffer_of(text)
        if int(offsets[-1]) > len(buffer):
            raise ArgumentError(f"the last offset, {offsets[-1]}, lies behind the {len(buffer)} bytes of the text")
        # An id stands for at least one byte. Pages that no id reaches are never touched.
        capacity = max(0, int(offsets[-1]) - int(offsets[0]))
        ids = np.empty(capacity, self.dtype)
        id_offsets = np.empty(len(offsets), np.uint64)
        count, position = ffi.new("size_t *"), ffi.new("size_t *")
        worker = self._take_worker()
        try:
            status = lib.pbt_encode_batch(
                worker,
                buffer,
                pointer("uint64_t *", offsets),
                len(offsets) - 1,
                pointer("void *", ids),
                capacity,
                pointer("uint64_t *", id_offsets),
                count,
                position,
            )
        finally:
            self._idle.append(worker)
        if status == ERROR_UTF8:
            raise Utf8Error(int(position[0]))
        if status != OK:
            raise error_of(status, "offsets out of order, or a document of 4 GiB")
        ids.resize(int(count[0]), refcheck=False)
        return ids, id_offsets

    def encode(self, text: str | Text) -> IdArray:
        """The ids of one document, in `self.dtype`. Raises ArgumentError, or Utf8Error with the position in it."""
        data = utf8(text)
        return self.encode_batch(data, np.array([0, len(buffer_of(data))], np.uint64))[0]

    def encode_stream(
        self, documents: Iterable[str | Text], *, chunk_bytes: int = STREAM_CHUNK_BYTES
    ) -> Iterator[IdArray]:
        """The ids of each document of a stream, in order; about `chunk_bytes` of text are held and encoded at a time.

        Each array is a view into those of its chunk: copy what is to outlive the others. Raises ArgumentError, or
        Utf8Error with the number of the document and the position in it, before the first document of its chunk comes.
        """
        first = 0
        for chunk in chunks(documents, chunk_bytes):
            text, offsets = joined(chunk)
            try:
                ids, id_offsets = self.encode_batch(text, offsets)
            except Utf8Error as error:
                raise utf8_error(error.position, offsets, first) from error
            first += len(chunk)
            for begin, end in pairwise(id_offsets.tolist()):
                yield ids[begin:end]

    def decode(self, ids: IdArray | Sequence[int]) -> bytes:
        """The bytes that ids stand for, special tokens as their text. Raises IdError with the index of a bad id."""
        wanted = integers("ids", ids)
        if wanted.size == 0:
            return b""
        outside = np.flatnonzero((wanted < 0) | (wanted >= self.vocab_size))
        if outside.size:
            index = int(outside[0])
            raise IdError(f"id {wanted[index]} at index {index} is outside the vocabulary of {self.vocab_size}", index)
        narrow = np.ascontiguousarray(wanted, self.dtype)
        size = self._decode_into(narrow, bytearray())
        text = bytearray(size)
        self._decode_into(narrow, text)
        return bytes(text)

    def _decode_into(self, ids: IdArray, text: bytearray) -> int:
        """Writes the bytes if they fit; returns how many they are."""
        count, position = ffi.new("size_t *"), ffi.new("size_t *")
        target = ffi.from_buffer("uint8_t[]", text, require_writable=True)
        status = lib.pbt_decode(self._model, pointer("void *", ids), len(ids), target, len(text), count, position)
        if status not in (OK, ERROR_CAPACITY):
            raise error_of(status, "decode")
        return int(count[0])

    def token_to_id(self, token: str) -> int:
        """The id of a token as tokenizer.json writes it. Raises IdError when there is none."""
        data, id_place = buffer_of(utf8(token), "the token"), ffi.new("uint32_t *")
        status = lib.pbt_model_token_to_id(self._model, data, len(data), id_place)
        if status == ERROR_ID:
            raise IdError(f"{token!r} is not in the vocabulary")
        if status != OK:
            raise error_of(status, "token_to_id")
        return int(id_place[0])

    def model_bytes(self) -> int:
        """Bytes that the model holds, for all threads together."""
        return int(lib.pbt_model_bytes(self._model))

    def worker_bytes(self) -> int:
        """Bytes that each worker holds at most: cache and scratch, and the cache that it grows out of meanwhile."""
        worker = self._take_worker()
        try:
            return int(lib.pbt_worker_bytes(worker))
        finally:
            self._idle.append(worker)

    def _take_worker(self) -> Any:
        """One that no other call has; to be put back."""
        try:
            return self._idle.pop()
        except IndexError:
            return self._new_worker()

    def _new_worker(self) -> Any:
        place, entries = ffi.new("pbt_worker **"), self._cache_entries
        if not 0 <= entries <= 1 << 24 or entries & (entries - 1):
            raise ArgumentError(f"cache_entries is {entries}: 0 or a power of two up to 2^24 is possible")
        status = lib.pbt_worker_new(self._model, entries, place)
        if status != OK:
            raise error_of(status, "no worker")
        return ffi.gc(place[0], lib.pbt_worker_free)


def _special_ids(special_tokens: Mapping[str, int]) -> NDArray[np.uint32]:
    if not isinstance(special_tokens, Mapping):
        kind = type(special_tokens).__name__
        raise ArgumentError(f"special_tokens is of type {kind}; it has to be a mapping from texts to ids")
    for token, number in special_tokens.items():
        if not isinstance(number, (int, np.integer)) or not 0 <= number < 2**32:
            raise ArgumentError(f"special token {token!r} has the id {number!r}; 0 to 2^32 - 1 is possible")
    return np.array(list(special_tokens.values()), np.uint32)


def _read(path: str) -> bytes:
    try:
        size = Path(path).stat().st_size
        if size > FILE_BYTES_MAX:
            raise FileError(f"{path}: {size} bytes are too many for a vocabulary")
        return Path(path).read_bytes()
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or error}") from error
    except ValueError as error:  # no file can have that name: it holds NUL, or half a surrogate pair
        raise FileError(f"{path!r}: {error}") from error


def _load(load: Callable[..., int], name: str) -> Any:
    """Calls a loading function with a place for the model, and frees that with the object that is returned."""
    place = ffi.new("pbt_model **")
    call_explained(lambda *message: load(place, *message), name)
    return ffi.gc(place[0], lib.pbt_model_free)
