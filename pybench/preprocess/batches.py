# SPDX-License-Identifier: Apache-2.0
"""Opening a path from text to batches.

For `python`, `hf` and `rust` the work happens in the thread that asks for the next batch, while it waits: that is what
preprocessing in the training process costs. `threads` matters for `go_rust` only, whose workers run in a process of
their own while the consumer computes. `none` gives random ids from a seed and reads no text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray

from pybench.catalogue.code import named_code
from pybench.catalogue.paths import PATHS, TokenPath
from pybench.errors import UsageError
from pybench.preprocess.corpus import Corpus
from pybench.preprocess.packing import Batch, RaggedBatch, Tokenised, TokenisedDocument, pack, pack_ragged
from pybench.preprocess.stream import InProcessStream, SlotStream
from pybench.preprocess.vocabulary import vocabulary_size


class Encoder(Protocol):
    """What an in-process path implements."""

    end_id: int
    made: Tokenised
    """It grows where a document is tokenised, which may be long before it is given out."""

    def documents(self, corpus: Corpus) -> Iterator[TokenisedDocument]:
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
) -> SlotStream:
    """The batches of `corpus` by `path`. `epochs`: passes over the corpus, concatenated without a break; 0: endless.

    `hash_ids` costs some nanoseconds an id, outside `wait_s`. Raises `UsageError` for impossible numbers, `InputError`
    for a bad tokenizer, and while iterating for a file that has changed since the corpus was resolved.
    """
    _check(batch, seq_len, threads, epochs)
    row = _row(path)
    if not row.reads_text:
        from pybench.preprocess import synthetic

        return synthetic.SyntheticStream(vocabulary_size(tokenizer), (batch, seq_len), seed, hash_ids)
    if row.encoder is None:
        from pybench.preprocess import go_rust

        return go_rust.open_batches(tokenizer, corpus, batch, seq_len, threads, epochs=epochs, hash_ids=hash_ids)
    encoder = _open_encoder(row.encoder, tokenizer)

    def make(room: Callable[[], NDArray[Any]]) -> Iterator[Batch]:
        return pack(_repeat(encoder, corpus, epochs), batch, seq_len, encoder.end_id, room)

    shape = (batch, seq_len)
    return InProcessStream(make, shape, vocabulary_size(tokenizer) - 1, hash_ids, made=lambda: encoder.made)


def open_ragged(
    path: str, tokenizer: Path, corpus: Corpus, batch: int, seq_len: int, threads: int = 1, *, epochs: int = 1
) -> Iterator[RaggedBatch]:
    """Ragged batches (see `packing`) of up to `batch` rows of up to `seq_len` ids; equal on every path that reads
    text. Close the generator to end it early. Raises as `open_batches` does."""
    _check(batch, seq_len, threads, epochs)
    row = _row(path)
    if not row.reads_text:
        raise UsageError(f"path {path!r} reads no text", hint=f"the paths are {', '.join(PATHS)}")
    if row.encoder is not None:
        encoder = _open_encoder(row.encoder, tokenizer)
        yield from pack_ragged(_repeat(encoder, corpus, epochs), batch, seq_len, encoder.end_id)
        return
    from pybench.preprocess import go_rust

    with go_rust.open_batches(
        tokenizer, corpus, batch, seq_len, threads, epochs=epochs, hash_ids=False, ragged=True
    ) as stream:
        yield from stream.ragged()


def _check(batch: int, seq_len: int, threads: int, epochs: int) -> None:
    if batch < 1 or seq_len < 1 or threads < 1 or epochs < 0:
        raise UsageError(f"no batches of {batch} x {seq_len} ids, {threads} threads, {epochs} epochs")


def _row(path: str) -> TokenPath:
    if path not in PATHS:
        raise UsageError(f"no path {path!r}", hint=f"the paths are {', '.join(PATHS)}")
    return PATHS[path]


def _open_encoder(name: str, tokenizer: Path) -> Encoder:
    encoder: Encoder = named_code(name)(tokenizer)
    return encoder


def _repeat(encoder: Encoder, corpus: Corpus, epochs: int) -> Iterator[TokenisedDocument]:
    epoch = 0
    while epochs == 0 or epoch < epochs:
        yield from encoder.documents(corpus)
        epoch += 1
