# SPDX-License-Identifier: Apache-2.0
"""Batches of token ids for a case: opened on its path, endless, brought to where its model is, with what was read.

The corpus repeats without an end, so that a window has as many batches as it asks for; a caution says when it did.
The first batches of a stream are kept and hashed after the measurement. Hashing while measuring would be a visible
share of a fast tokenizer's time; a copy of 4 bytes an id is not. How many are hashed depends on their shape alone,
never on how long a case measures. So a slow path with few iterations has the hash of a fast one with many.

An iteration launches the batch in hand, takes the next one and enqueues its copy, and only then waits for its own end.
So a GPU computes while the host fetches, and feels of a path only what takes longer than its own work.
"""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, cast

import numpy as np
import numpy.typing as npt

from pybench import preprocess
from pybench.case import Case
from pybench.catalogue.cautions import Caution, CautionCode
from pybench.catalogue.paths import PATHS
from pybench.measure.quantity import Quantity
from pybench.measure.timing.clock import NANOSECONDS_PER_SECOND
from pybench.measurement.doubts import allowed_threads
from pybench.measurement.recorder import TIMING, Amounts, Recorder, Work
from pybench.measurement.result import Result, RunRequest
from pybench.preprocess import Corpus, SlotStream
from pybench.preprocess.packing import Tokenised
from pybench.runtimes.session import ReadingSession, Wait

if TYPE_CHECKING:
    from pybench.measurement.model import OpenedModel
    from pybench.preprocess.tensors import TensorBatches

# Ids that the hash covers, in whole batches: about 450 kB of text, a second of the slowest path.
HASHED_IDS = 1 << 17

# From which ratio of tokens tokenised in a window to those taken in it, or the reverse, it does not show a path's cost.
UNEVEN = 2.0

# What an iteration is timed from and to, for results.
PERIOD = "from the launch of its batch until its end, with the fetching of the next batch inside"

Ids = npt.NDArray[Any]


class FeedCounts(Protocol):
    """What a feed says of itself to whoever records a measurement of it."""

    @property
    def text_bytes(self) -> int:
        """Bytes of the documents that have ended so far."""

    @property
    def wait_s(self) -> float:
        """Seconds that the consumer has waited for batches so far."""

    @property
    def made(self) -> Tokenised | None:
        """What this process has tokenised so far for the feed; None: another one does it, or nothing is tokenised."""

    def metrics(self) -> dict[str, Quantity]:
        """What the feed measured itself."""

    def cautions(self) -> list[Caution]:
        """Doubts about what was fed."""


class Batches(Protocol):
    """What gives a batch after the other."""

    def next(self) -> Any:
        """The next batch."""


class Feed(ABC):
    """Tokenized text, or random ids, for a case: what is read, and what was taken so far."""

    def __init__(self, request: RunRequest) -> None:
        case = request.case
        self.tokenizer = tokenizer_of(request)
        self.vocabulary = preprocess.vocabulary_size(self.tokenizer)
        self.corpus = corpus_of(request) if PATHS[case.path].reads_text else Corpus("none", (), 0, "")
        self.hashed_batches = max(1, HASHED_IDS // (case.batch * case.seq_len))

    @abstractmethod
    def feeding(self, opened: OpenedModel | None, case: Case) -> Work:
        """Iterations of an opened model on this text, each of which fetches the next batch too. Without a model they
        only take batches."""

    @property
    @abstractmethod
    def text_bytes(self) -> int:
        """Bytes of the documents that have ended so far."""

    @property
    @abstractmethod
    def wait_s(self) -> float:
        """Seconds that the consumer has waited for batches so far."""

    @property
    def made(self) -> Tokenised | None:
        return None

    @abstractmethod
    def ids_sha256(self) -> str:
        """The hash of the stream's first batches, as `pybench.preprocess.packing` defines it: ids as `<u4`, in order.

        Takes what the measurement left of them from the stream, so it comes last.
        """

    @abstractmethod
    def first_batch(self) -> Ids | None:
        """The first batch that was fed, int64 [batch, seq_len]; None: the runtime has taken it by itself."""

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

    def metrics(self) -> dict[str, Quantity]:
        """What the feed measured itself; call it after the windows."""
        return {}

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
            "ids_hashed_batches": self.hashed_batches,
            "tokenizer": self.tokenizer.name,
            "vocabulary": self.vocabulary,
            "corpus": self.corpus.name,
            "corpus_bytes": self.corpus.total_bytes,
            "corpus_sha256": self.corpus.sha256,
            "path": case.path,
        }


class TokenFeed(Feed):
    """An endless stream of int64 [batch, seq_len]: arrays, or after `bring_to` tensors on that device."""

    def __init__(self, request: RunRequest) -> None:
        super().__init__(request)
        case = request.case
        self._stream: SlotStream = preprocess.open_batches(
            case.path,
            self.tokenizer,
            self.corpus,
            case.batch,
            case.seq_len,
            allowed_threads(case),
            epochs=0,
            seed=request.seed,
            hash_ids=False,
        )
        self._first = np.zeros((self.hashed_batches, case.batch, case.seq_len), np.uint32)
        self._kept = 0
        self._tensors: TensorBatches | None = None

    def feeding(self, opened: OpenedModel | None, case: Case) -> Callable[[], None]:
        """Where its session can, batches are brought to its device ahead of it."""
        if opened is None:
            return self.skip
        session = opened.session
        if case.runtime_row is not None and case.runtime_row.takes_tensors:
            self.bring_to("cpu" if session.device_uuid is None else "cuda")
        launch, name = session.bind_feed(), session.inputs[0].name
        return ahead(self, lambda batch: launch({name: batch}))

    def bring_to(self, device: str) -> None:
        """From now on batches are tensors on `cpu` or `cuda`."""
        from pybench.preprocess.tensors import TensorBatches

        self._tensors = TensorBatches(self._stream, device, self._keep)

    def __enter__(self) -> Self:
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

    def use_up(self) -> None:
        """Takes what another process has made ahead, and as much again while that process works.

        A window of nothing but taking then has as much of its work as it takes. Where that process is the faster one,
        batches never run out, and a few rounds are enough.
        """
        slots = self._stream.slots
        ahead = 0
        while self._stream.ready and ahead < 4 * slots:
            self.skip()
            ahead += 1
        for _ in range(slots if ahead else 0):
            self.skip()

    def _keep(self, ids: Ids) -> None:
        if self._kept < len(self._first):
            self._first[self._kept] = ids
            self._kept += 1

    @property
    def text_bytes(self) -> int:
        return self._stream.text_bytes

    @property
    def wait_s(self) -> float:
        return self._stream.wait_s

    @property
    def made(self) -> Tokenised | None:
        return self._stream.made

    def ids_sha256(self) -> str:
        while self._kept < len(self._first):
            self.skip()
        return hashlib.sha256(self._first.astype("<u4", copy=False).tobytes()).hexdigest()

    def first_batch(self) -> Ids:
        first: Ids = self._first[0].astype(np.int64)
        return first


class OwnFeed(Feed):
    """Text that a runtime reads and tokenizes itself (`Runtime.own_path`): this feed only names it, and asks the
    runtime what it has taken."""

    def __init__(self, request: RunRequest) -> None:
        super().__init__(request)
        self._session: ReadingSession | None = None

    def feeding(self, opened: OpenedModel | None, case: Case) -> Work:
        from pybench.preprocess.go_rust import feed_options

        assert opened is not None  # for the type checker: `open_feed` gives it a model
        self._session = cast("ReadingSession", opened.session)
        options = feed_options(
            self.tokenizer, self.corpus, case.batch, case.seq_len, allowed_threads(case), self.hashed_batches
        )
        return self._session.feed(options, [os.fsencode(path) for path in self.corpus.files])

    @property
    def _fed(self) -> ReadingSession:
        assert self._session is not None  # for the type checker: nothing is asked before a model is fed
        return self._session

    @property
    def text_bytes(self) -> int:
        return self._fed.text_bytes

    @property
    def wait_s(self) -> float:
        return self._fed.wait_ns / NANOSECONDS_PER_SECOND

    def ids_sha256(self) -> str:
        return hashlib.sha256(self._fed.first_ids()).hexdigest()

    def first_batch(self) -> None:
        return None

    def metrics(self) -> dict[str, Quantity]:
        """The peak of the process that runs the model; the worker's own holds no model."""
        peak_bytes = self._fed.peak_host_bytes
        if peak_bytes is None:
            return {}
        scope = "native process, since its start"
        return {"peak_host_bytes": Quantity(value=float(peak_bytes), method="proc-vmhwm", scope=scope, valid=True)}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._session is not None:
            self._session.close()


def tokenizer_of(request: RunRequest) -> Path:
    """The vocabulary of a case, built in or the user's. Raises InputError."""
    return preprocess.find_tokenizer(str(request.files.get("tokenizer", request.case.tokenizer)))


def corpus_of(request: RunRequest) -> Corpus:
    """The text of a case, built in or the user's. Raises InputError."""
    case = request.case
    name = str(request.files.get("corpus", case.corpus))
    return preprocess.resolve_corpus(name, case.corpus_limit_bytes, case.corpus_field)


def open_feed(request: RunRequest) -> Feed:
    """What feeds a case: a stream in the worker, or the runtime itself."""
    case, row = request.case, request.case.runtime_row
    own = case.model is not None and row is not None and row.own_path is not None
    return OwnFeed(request) if own else TokenFeed(request)


def ahead(feed: Batches, launch: Callable[[Any], Wait]) -> Callable[[], None]:
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
    """A measurement that was fed. `text_bytes`: of documents that ended in the timing window, of `timed_s`. `made`:
    what was tokenised in that window; None: by another process, or nothing is."""

    result: Result
    text_bytes: int
    timed_s: float
    made: Tokenised | None


def record_fed(
    request: RunRequest,
    feed: FeedCounts,
    iterate: Work,
    amounts: Amounts,
    device_uuid: str | None,
    begin: Callable[[], None] | None = None,
) -> FedMeasurement:
    """All steps of a measurement whose iterations take batches of `feed`; adds how long they waited, and doubts.

    With a batch in hand, an iteration takes the batch after its own. As many are taken in a window as are run in it. So
    what was waited for and read there belongs to that many batches, one place further on in the stream.
    `begin`: what is done between the warm-up and the timing window.
    """
    with Recorder(request.case, device_uuid, sensors=request.sensors, seed=request.seed) as recorder:
        recorder.warm_up(iterate)
        if begin is not None:
            begin()
        text_before, waited_before_s, made_before = feed.text_bytes, feed.wait_s, feed.made
        recorder.time(iterate)
        text_bytes, waited_s = feed.text_bytes - text_before, feed.wait_s - waited_before_s
        made = None if feed.made is None or made_before is None else feed.made.since(made_before)
        cautions = feed.cautions()
        recorder.replay_for_energy(iterate)
    result = recorder.result(amounts)
    result.metrics["wait_share_ratio"] = Quantity(
        value=min(waited_s / recorder.timed_s, 1.0), window=TIMING, method="time until a batch was there to be taken"
    )
    result.metrics |= feed.metrics()
    result.cautions += cautions
    if made is not None and begin is None:
        result.cautions += tokenizing_cautions(made.ids, amounts.tokens * request.case.iterations)
    return FedMeasurement(result, text_bytes, recorder.timed_s, made)


def tokenizing_cautions(tokenised: int, taken: int) -> list[Caution]:
    """A doubt about a window that feels a path by chance: by how many documents are tokenised inside it."""
    if taken / UNEVEN <= tokenised <= taken * UNEVEN:
        return []
    detail = f"{tokenised} tokens were tokenized and {taken} taken"
    return [Caution(CautionCode.TOKENIZING_UNEVEN, detail, "wait_share_ratio")]
