# SPDX-License-Identifier: Apache-2.0
"""Opening a path from text to batches.

For `python`, `hf` and `rust` the work happens in the thread that asks for the next batch, while it waits: that is what
preprocessing in the training process costs. `threads` matters for `go_rust` only, whose workers run in a process of
their own while the consumer computes. `none` gives random ids from a seed and reads no text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from pybench.errors import UsageError
from pybench.measure.clock import NANOSECONDS_PER_SECOND, monotonic_ns
from pybench.preprocess.corpus import Corpus
from pybench.preprocess.packing import Batch, Document, hashed_form, pack

PATHS = ("none", "python", "hf", "rust", "go_rust")


class BatchStream(Protocol):
    """An iterator of int64 [batch, seq_len], to be closed by `with`. All counters are of the batches delivered."""

    @property
    def tokens(self) -> int:
        """Ids delivered."""

    @property
    def text_bytes(self) -> int:
        """Bytes of text of all documents that ended in a delivered batch."""

    @property
    def wait_s(self) -> float:
        """Seconds that the consumer waited for batches."""

    @property
    def ids_sha256(self) -> str | None:
        """The hash of ids (see `packing`) of the delivered batches, or None when it was not asked for."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def __iter__(self) -> Iterator[NDArray[np.int64]]: ...

    def __next__(self) -> NDArray[np.int64]: ...


class Encoder(Protocol):
    """What an in-process path implements."""

    end_id: int

    def documents(self, corpus: Corpus) -> Iterator[Document]:
        """The documents of the corpus, once, in order."""


def open_batches(
    path: str,
    tokenizer: Path,
    corpus: Corpus,
    batch: int,
    seq_len: int,
    threads: int = 1,
    *,
    epochs: int = 1,
    seed: int = 0,
    hash_ids: bool = True,
) -> BatchStream:
    """The batches of `corpus` by `path`. `epochs`: passes over the corpus, concatenated without a break; 0: endless.

    `hash_ids` costs some nanoseconds an id, outside `wait_s`. Raises `UsageError` for impossible numbers, `InputError`
    for a bad tokenizer, and while iterating for a file that has changed since the corpus was resolved.
    """
    if batch < 1 or seq_len < 1 or threads < 1 or epochs < 0:
        raise UsageError(f"no batches of {batch} x {seq_len} ids, {threads} threads, {epochs} epochs")
    if path == "go_rust":
        from pybench.preprocess import go_rust

        return go_rust.open_batches(tokenizer, corpus, batch, seq_len, threads, epochs=epochs, hash_ids=hash_ids)
    if path == "none":
        from pybench.preprocess import synthetic

        return InProcessStream(synthetic.batches(tokenizer, batch, seq_len, seed), hash_ids)
    encoder = _open_encoder(path, tokenizer)
    documents = _repeat(encoder, corpus, epochs)
    return InProcessStream(pack(documents, batch, seq_len, encoder.end_id), hash_ids)


def _open_encoder(path: str, tokenizer: Path) -> Encoder:
    if path == "python":
        from pybench.preprocess import python_bpe

        return python_bpe.PythonEncoder(tokenizer)
    if path == "hf":
        from pybench.preprocess import hf

        return hf.HfEncoder(tokenizer)
    if path == "rust":
        from pybench.preprocess import rust

        return rust.RustEncoder(tokenizer)
    raise UsageError(f"no path {path!r}", hint=f"the paths are {', '.join(PATHS)}")


def _repeat(encoder: Encoder, corpus: Corpus, epochs: int) -> Iterator[Document]:
    epoch = 0
    while epochs == 0 or epoch < epochs:
        yield from encoder.documents(corpus)
        epoch += 1


class InProcessStream:
    """A `BatchStream` over batches that are made in the calling thread."""

    def __init__(self, batches: Iterator[Batch], hash_ids: bool) -> None:
        self._batches = batches
        self._hash = hashlib.sha256() if hash_ids else None
        self._wait_ns = 0
        self.tokens = 0
        self.text_bytes = 0

    @property
    def wait_s(self) -> float:
        return self._wait_ns / NANOSECONDS_PER_SECOND

    @property
    def ids_sha256(self) -> str | None:
        return None if self._hash is None else self._hash.hexdigest()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._batches = iter(())

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> NDArray[np.int64]:
        begin_ns = monotonic_ns()
        try:
            batch = next(self._batches)
        finally:
            self._wait_ns += monotonic_ns() - begin_ns
        self.tokens += batch.ids.size
        self.text_bytes = batch.text_bytes
        if self._hash is not None:
            self._hash.update(hashed_form(batch.ids))
        return batch.ids
