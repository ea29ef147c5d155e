# SPDX-License-Identifier: Apache-2.0
"""Batches of token ids for a case: opened on its path, endless, with what was read of the text.

The corpus repeats without an end, so that a window has as many batches as it asks for; a caution says when it did.
The first batches of a stream are kept and hashed after the measurement: hashing while measuring would be a visible
share of a fast tokenizer's time, a copy of 4 bytes an id is not. How many are hashed depends on their shape alone,
never on how long a case measures, so that a slow path with few iterations has the hash of a fast one with many.
"""

from __future__ import annotations

import hashlib
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from pybench import preprocess
from pybench.case import Case
from pybench.cautions import Caution, CautionCode
from pybench.preprocess import BatchStream, Corpus
from pybench.workloads.doubts import allowed_threads
from pybench.workloads.result import Request

# Ids that the hash covers, in whole batches: about 450 kB of text, a second of the slowest path.
HASHED_IDS = 1 << 17

Ids = npt.NDArray[Any]


class TokenFeed:
    """An endless stream of int64 [batch, seq_len]."""

    def __init__(self, request: Request) -> None:
        case = request.case
        self.tokenizer = preprocess.find_tokenizer(str(request.files.get("tokenizer", case.tokenizer)))
        self.vocabulary = preprocess.vocabulary_size(self.tokenizer)
        self.corpus = _corpus(request)
        self._stream: BatchStream = preprocess.open_batches(
            case.path, self.tokenizer, self.corpus, case.batch, case.seq_len, allowed_threads(case),
            epochs=0, seed=request.seed, hash_ids=False,
        )  # fmt: skip
        batches = max(1, HASHED_IDS // (case.batch * case.seq_len))
        self._first = np.zeros((batches, case.batch, case.seq_len), np.uint32)
        self._kept = 0

    def __enter__(self) -> TokenFeed:
        self._stream.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stream.__exit__(kind, error, traceback)

    def next(self) -> Ids:
        """The next batch; valid until the one after it is asked for."""
        ids = next(self._stream)
        if self._kept < len(self._first):
            self._first[self._kept] = ids
            self._kept += 1
        return ids

    @property
    def text_bytes(self) -> int:
        """Bytes of the documents that have ended so far."""
        return self._stream.text_bytes

    @property
    def wait_s(self) -> float:
        """Seconds that the consumer has waited for batches so far."""
        return self._stream.wait_s

    def ids_sha256(self) -> str:
        """The hash of the stream's first batches, as `pybench.preprocess.packing` defines it: ids as `<u4`, in order.

        Takes what the measurement left of them from the stream, so it comes last.
        """
        while self._kept < len(self._first):
            self.next()
        return hashlib.sha256(self._first.astype("<u4", copy=False).tobytes()).hexdigest()

    def cautions(self) -> list[Caution]:
        """A caution when the corpus was read more than once."""
        if self.corpus.total_bytes == 0 or self.text_bytes <= self.corpus.total_bytes:
            return []
        passes = self.text_bytes / self.corpus.total_bytes
        detail = f"{self.corpus.total_bytes} bytes were read {passes:.2g} times"
        return [Caution(CautionCode.CORPUS_WRAPPED, detail, "text_mb_per_s")]

    def labels(self, case: Case) -> dict[str, Any]:
        """What was fed, for the result; call it after the measurement."""
        return {
            "ids_sha256": self.ids_sha256(),
            "ids_hashed_batches": len(self._first),
            "tokenizer": self.tokenizer.name,
            "vocabulary": self.vocabulary,
            "corpus": self.corpus.name,
            "corpus_bytes": self.corpus.total_bytes,
            "corpus_sha256": self.corpus.sha256,
            "path": case.path,
        }


def _corpus(request: Request) -> Corpus:
    case = request.case
    if case.path == "none":
        return Corpus("none", (), 0, "")
    return preprocess.resolve_corpus(str(request.files.get("corpus", case.corpus)), case.corpus_limit_bytes)
