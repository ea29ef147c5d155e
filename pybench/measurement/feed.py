# SPDX-License-Identifier: Apache-2.0
"""Batches of token ids for a case: opened on its path, endless, brought to where its model is, with what was read.

The corpus repeats without an end, so that a window has as many batches as it asks for; a caution says when it did.
The first batches of a stream are kept and hashed after the measurement: hashing while measuring would be a visible
share of a fast tokenizer's time, a copy of 4 bytes an id is not. How many are hashed depends on their shape alone,
never on how long a case measures, so that a slow path with few iterations has the hash of a fast one with many.

An iteration launches the batch in hand, takes the next one and enqueues its copy, and only then waits for its own end:
a GPU computes while the host fetches, and feels of a path only what takes longer than its own work.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pybench import preprocess
from pybench.case import Case
from pybench.catalogue.cautions import Caution, CautionCode
from pybench.measure.quantity import Quantity
from pybench.measurement.doubts import allowed_threads
from pybench.measurement.recorder import TIMING, Amounts, Recorder
from pybench.measurement.result import Result, RunRequest
from pybench.preprocess import Corpus, SlotStream
from pybench.runtimes.session import Wait

if TYPE_CHECKING:
    from pybench.measurement.model import OpenedModel
    from pybench.preprocess.tensors import TensorBatches

# Ids that the hash covers, in whole batches: about 450 kB of text, a second of the slowest path.
HASHED_IDS = 1 << 17

# What an iteration is timed from and to, for results.
PERIOD = "from the launch of its batch until its end, with the fetching of the next batch inside"

Ids = npt.NDArray[Any]


class TokenFeed:
    """An endless stream of int64 [batch, seq_len]: arrays, or after `bring_to` tensors on that device."""

    def __init__(self, request: RunRequest) -> None:
        case = request.case
        self.tokenizer = preprocess.find_tokenizer(str(request.files.get("tokenizer", case.tokenizer)))
        self.vocabulary = preprocess.vocabulary_size(self.tokenizer)
        self.corpus = _corpus(request)
        self._stream: SlotStream = preprocess.open_batches(
            case.path, self.tokenizer, self.corpus, case.batch, case.seq_len, allowed_threads(case),
            epochs=0, seed=request.seed, hash_ids=False,
        )  # fmt: skip
        batches = max(1, HASHED_IDS // (case.batch * case.seq_len))
        self._first = np.zeros((batches, case.batch, case.seq_len), np.uint32)
        self._kept = 0
        self._tensors: TensorBatches | None = None

    def bring_to(self, device: str) -> None:
        """From now on batches are tensors on `cpu` or `cuda`."""
        from pybench.preprocess.tensors import TensorBatches

        self._tensors = TensorBatches(self._stream, device, self._keep)

    def __enter__(self) -> TokenFeed:
        self._stream.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._tensors is not None:
            self._tensors.close()
        self._stream.__exit__(kind, error, traceback)

    def next(self) -> Any:
        """The next batch."""
        if self._tensors is not None:
            return self._tensors.next()
        slot = self._stream.take()
        self._keep(slot.ids)
        ids = slot.ids.astype(np.int64)
        self._stream.give_back(slot.index)
        return ids

    def skip(self) -> None:
        """Takes the next batch and uses it for nothing."""
        slot = self._stream.take()
        self._keep(slot.ids)
        self._stream.give_back(slot.index)

    def _keep(self, ids: Ids) -> None:
        if self._kept < len(self._first):
            self._first[self._kept] = ids
            self._kept += 1

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
            self.skip()
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


def feeding(feed: TokenFeed, opened: OpenedModel, case: Case) -> Callable[[], None]:
    """Iterations of an opened model; where its session can, batches are brought to its device ahead of it."""
    session = opened.session
    if case.runtime_row is not None and case.runtime_row.takes_tensors:
        feed.bring_to("cpu" if session.device_uuid is None else "cuda")
    launch, name = session.bind_feed(), session.inputs[0].name
    return ahead(feed, lambda batch: launch({name: batch}))


def ahead(feed: TokenFeed, launch: Callable[[Any], Wait]) -> Callable[[], None]:
    """An iteration that launches the batch in hand, fetches the next and waits for what was launched; takes the first.

    `launch`: starts the work on a batch and gives what waits for it, and for nothing that is enqueued behind it.
    """
    batch = feed.next()

    def iterate() -> None:
        nonlocal batch
        wait = launch(batch)
        batch = feed.next()
        wait()

    return iterate


@dataclass(frozen=True, slots=True)
class FedMeasurement:
    """A measurement that was fed. `text_bytes`: of documents that ended in the timing window, of `timed_s`."""

    result: Result
    text_bytes: int
    timed_s: float


def record_fed(
    request: RunRequest, feed: TokenFeed, iterate: Callable[[], object], amounts: Amounts, device_uuid: str | None
) -> FedMeasurement:
    """All steps of a measurement whose iterations take batches of `feed`; adds how long they waited, and doubts.

    With a batch in hand, an iteration takes the batch after its own: as many are taken in a window as are run in it,
    so what was waited for and read there belongs to that many batches, one place further on in the stream.
    """
    with Recorder(request.case, device_uuid, sensors=request.sensors, seed=request.seed) as recorder:
        recorder.warm_up(iterate)
        text_before, waited_before_s = feed.text_bytes, feed.wait_s
        recorder.time(iterate)
        text_bytes, waited_s = feed.text_bytes - text_before, feed.wait_s - waited_before_s
        cautions = feed.cautions()
        recorder.replay_for_energy(iterate)
    result = recorder.result(amounts)
    result.metrics["wait_share_ratio"] = Quantity(
        value=min(waited_s / recorder.timed_s, 1.0), window=TIMING, method="time until a batch was there to be taken"
    )
    result.cautions += cautions
    return FedMeasurement(result, text_bytes, recorder.timed_s)


def _corpus(request: RunRequest) -> Corpus:
    case = request.case
    if case.path == "none":
        return Corpus("none", (), 0, "")
    name = str(request.files.get("corpus", case.corpus))
    return preprocess.resolve_corpus(name, case.corpus_limit_bytes, case.corpus_field)
