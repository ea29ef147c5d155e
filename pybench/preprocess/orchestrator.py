# SPDX-License-Identifier: Apache-2.0
"""The program `pybench-orchestrator` started with the ends of a ring, and its counters.

It ends when its end of the ring closes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pybench.errors import PybenchError
from pybench.measure.timing.clock import NANOSECONDS_PER_SECOND
from pybench.preprocess.program import NAME, Program, content
from pybench.preprocess.ring import Ring

ANSWER_S = 5.0
ANSWER_POLL_S = 0.001


@dataclass(frozen=True, slots=True)
class Counters:
    """What each stage has done, as the orchestrator counted it. Times of several threads are summed.

    `read_bytes` are decompressed and hold the JSON around a text; `tokens` hold the ids that end documents, and the
    dropped ones. Waits: for a free buffer, for text, for the next chunk in order, and for a reader's slot.
    """

    workers: int
    empty_files: int
    loading_s: float
    wall_s: float
    read_bytes: int
    empty_documents: int
    documents: int
    text_bytes: int
    tokens: int
    dropped_tokens: int
    batches: int
    reading_s: float
    read_wait_s: float
    tokenizing_s: float
    tokenize_wait_s: float
    packing_s: float
    pack_wait_s: float
    credit_wait_s: float

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Counters:
        """Out of a line of counters (docs/formats/ring.md). Raises KeyError for what it lacks."""
        stages = record["stages"]
        read, tokenize, pack, deliver = (stages[name] for name in ("read", "tokenize", "pack", "deliver"))
        return cls(
            **{name: record[name] for name in ("workers", "empty_files", "loading_s", "wall_s")},
            read_bytes=read["bytes"],
            empty_documents=read["empty_documents"],
            documents=pack["documents"],
            text_bytes=pack["bytes"],
            tokens=pack["ids"],
            dropped_tokens=pack["dropped_ids"],
            batches=deliver["batches"],
            reading_s=read["busy_ns"] / NANOSECONDS_PER_SECOND,
            read_wait_s=read["wait_ns"] / NANOSECONDS_PER_SECOND,
            tokenizing_s=tokenize["busy_ns"] / NANOSECONDS_PER_SECOND,
            tokenize_wait_s=tokenize["wait_ns"] / NANOSECONDS_PER_SECOND,
            packing_s=pack["busy_ns"] / NANOSECONDS_PER_SECOND,
            pack_wait_s=pack["wait_ns"] / NANOSECONDS_PER_SECOND,
            credit_wait_s=deliver["wait_ns"] / NANOSECONDS_PER_SECOND,
        )


class Orchestrator(Program):
    """One running process that fills a ring."""

    serves = "its ring"

    def __init__(
        self, ring: Ring, documents: Sequence[Path], flags: Sequence[str], stdin: int = subprocess.DEVNULL
    ) -> None:
        """Starts it from the calling thread, which has to live as long (`docs/formats/ring.md`, PR_SET_PDEATHSIG).

        documents: the files in the order in which their ids are wanted; may be empty where `flags`, the rest of the
        command line, name an input. stdin: a descriptor that it reads as `--input -`.
        """
        manifest = os.memfd_create("orchestrator-manifest")
        try:
            with open(manifest, "wb", closefd=False) as file:
                file.write(b"\0".join(os.fsencode(path) for path in documents))
            named = ["--files-from", f"/proc/self/fd/{manifest}"] if documents else []
            super().__init__([*flags, *_ring_flags(ring), *named], (manifest, *ring.producer_fds), stdin)
        finally:
            os.close(manifest)
        ring.producer_started()

    def finish(self) -> Counters:
        """Waits for its end after the last batch and returns its counters. Raises its error if it has one."""
        status = self._wait()
        record = self._record()
        if status != 0 or record is None or record.get("ended") != "complete":
            raise self._explain(status, record)
        try:
            return Counters.of_record(record)
        except KeyError as error:
            raise PybenchError(
                f"{NAME} did not count {error}", hint="both sides must be of the same release: run `make setup`"
            ) from error

    def progress(self) -> Counters | None:
        """Its counters so far; None when it has ended or did not answer in time. Only after the ring is ready."""
        before = content(self._stdout)
        if self._process.poll() is not None:
            return None
        self._process.send_signal(signal.SIGUSR1)
        deadline_s = time.monotonic() + ANSWER_S
        while time.monotonic() < deadline_s and self._process.poll() is None:
            lines = content(self._stdout).removeprefix(before)
            if b"\n" in lines:
                return Counters.of_record(json.loads(lines.splitlines()[0]))
            time.sleep(ANSWER_POLL_S)
        return None


def _ring_flags(ring: Ring) -> list[str]:
    layout = ring.layout
    flags = ["--batch", str(layout.batch), "--seq-len", str(layout.seq_len), *(["--ragged"] if layout.ragged else [])]
    flags += ["--ring-fd", str(ring.memory_fd), "--filled-fd", ",".join(map(str, ring.filled_fds))]
    return [*flags, "--free-fd", ",".join(map(str, ring.free_fds))]
