# SPDX-License-Identifier: Apache-2.0
"""One orchestrator, one ring, several readers: each a real process, as the processes of several GPUs are.

The launcher makes the ring, starts the orchestrator and the readers, and reads nothing itself. Every ending is tried:
the corpus', a reader's, the orchestrator's and the launcher's.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from pybench.preprocess import find_tokenizer, go_rust, open_batches, resolve_corpus
from pybench.preprocess.orchestrator import Counters, Orchestrator
from pybench.preprocess.ring import Ring, RingLayout
from tests.support.processes import wait_for_end
from tests.support.waiting import wait_for

ROOT = Path(__file__).parents[2]
TOKENIZER = find_tokenizer("tok32k")
CORPUS = resolve_corpus("python-stdlib", limit_bytes=1_000_000)
READERS, BATCH, SEQ_LEN, SLOTS = 3, 4, 64, 12

# Says `first` after its first batch, then how many it got and their hash, or the error that ended them.
READER = """
import hashlib, json, sys, time
from pybench.preprocess.ring import ReaderFds, RingError, RingLayout, RingReader
told = json.loads(sys.argv[1])
reader = RingReader(RingLayout(**told["layout"]), told["number"], ReaderFds(**told["fds"]))
digest, count = hashlib.sha256(), 0
try:
    reader.wait_ready()
    while (slot := reader.next()) is not None:
        digest.update(slot.ids.astype("<u4").tobytes())
        reader.give_back(slot.index)
        count += 1
        if count == 1:
            print("first", flush=True)
        time.sleep(told["pause_s"])
    print(json.dumps({"batches": count, "sha256": digest.hexdigest()}), flush=True)
except RingError as error:
    print(json.dumps({"error": str(error)}), flush=True)
"""


class Launch:
    """A ring with its processes, as a launcher holds them."""

    def __init__(self, *, epochs: int, pauses_s: tuple[float, ...] = (0.0,) * READERS) -> None:
        self.ring = Ring(RingLayout(BATCH, SEQ_LEN, SLOTS, readers=READERS))
        flags = [*go_rust.tokenizer_flags(TOKENIZER, 2, epochs), "--documents", str(CORPUS.count)]
        self.orchestrator = Orchestrator(self.ring, CORPUS.files, flags)
        self.readers = [self._start_reader(number, pause_s) for number, pause_s in enumerate(pauses_s)]

    def _start_reader(self, number: int, pause_s: float) -> subprocess.Popen[str]:
        fds = self.ring.reader_fds[number]
        told = {"layout": self.ring.layout.as_json(), "number": number, "fds": asdict(fds), "pause_s": pause_s}
        process = subprocess.Popen(
            [sys.executable, "-c", READER, json.dumps(told)],
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=(fds.memory, fds.filled, fds.free),
            cwd=ROOT,
        )
        self.ring.reader_started(number)
        return process

    def wait_for_first(self) -> None:
        for reader in self.readers:
            assert reader.stdout is not None
            assert reader.stdout.readline() == "first\n"

    def said(self, number: int) -> dict[str, object]:
        """What a reader says at its end."""
        out, _ = self.readers[number].communicate(timeout=120)
        stored: dict[str, object] = json.loads(out.splitlines()[-1])
        return stored

    def close(self) -> None:
        self.ring.close()
        for reader in self.readers:
            reader.kill()
            reader.communicate()
        self.orchestrator.close()


@pytest.fixture
def launched() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def launch(stack: ExitStack, **options: object) -> Launch:
    made = Launch(**options)  # type: ignore[arg-type]
    stack.callback(made.close)
    return made


def dealt() -> list[dict[str, object]]:
    """What each reader has to get: every third batch, by the path `rust`."""
    with open_batches("rust", TOKENIZER, CORPUS, BATCH, SEQ_LEN) as stream:
        batches = list(stream)
    return [
        {
            "batches": len(batches[number::READERS]),
            "sha256": hashlib.sha256(np.concatenate(batches[number::READERS]).astype("<u4").tobytes()).hexdigest(),
        }
        for number in range(READERS)
    ]


@pytest.mark.parametrize("pauses_s", [(0.0, 0.0, 0.0), (0.0, 0.002, 0.0)])
def test_every_reader_gets_its_batches_also_beside_a_slow_one(launched: ExitStack, pauses_s: tuple[float, ...]) -> None:
    made = launch(launched, epochs=1, pauses_s=pauses_s)
    assert [made.said(number) for number in range(READERS)] == dealt()
    counters = made.orchestrator.finish()
    assert counters.text_bytes == CORPUS.total_bytes
    assert counters.batches == sum(int(str(one["batches"])) for one in dealt())


@pytest.mark.parametrize("number", range(READERS))
def test_a_reader_that_is_killed_ends_the_orchestrator_and_so_the_other_readers(
    launched: ExitStack, number: int
) -> None:
    made = launch(launched, epochs=0)
    made.wait_for_first()
    made.readers[number].kill()
    assert wait_for_end(made.orchestrator.pid)
    assert f"consumer {number + 1} of {READERS} closed the ring" in str(made.orchestrator.failure())
    for other in set(range(READERS)) - {number}:
        assert "closed the ring before the end" in str(made.said(other)["error"])


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_an_orchestrator_that_dies_ends_every_reader_with_an_error(launched: ExitStack, by: signal.Signals) -> None:
    made = launch(launched, epochs=0)
    made.wait_for_first()
    os.kill(made.orchestrator.pid, by)
    for number in range(READERS):
        assert "closed the ring before the end" in str(made.said(number)["error"])


def test_counters_come_on_request_and_only_grow(launched: ExitStack) -> None:
    made = launch(launched, epochs=0, pauses_s=(0.001,) * READERS)
    made.wait_for_first()
    first = wait_for(made.orchestrator.progress)
    assert first.batches > 0

    def later() -> Counters | None:
        second = made.orchestrator.progress()
        is_more = second and second.batches > first.batches and second.credit_wait_s > first.credit_wait_s
        return second if is_more else None

    assert first.wall_s < wait_for(later).wall_s
    # Nobody has read more than the ring holds beside what is on its way.
    os.kill(made.orchestrator.pid, signal.SIGTERM)
    assert "stopped by SIGTERM" in str(made.orchestrator.failure())
    assert made.orchestrator.progress() is None


LAUNCHER = """
import sys, time
sys.path.append(sys.argv[1])
from tests.contract.test_ring_of_several_readers import Launch
made = Launch(epochs=0)
made.wait_for_first()
print(made.orchestrator.pid, *(reader.pid for reader in made.readers), flush=True)
time.sleep(600)
"""


def ring_memory_of(pid: int) -> set[str]:
    """`device:inode` of the memory files of rings that a process holds: no other ring has the same."""
    found = set()
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        if "pybench-ring" in os.readlink(fd):
            status = fd.stat()
            found.add(f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x} {status.st_ino}")
    return found


def holders_of(memory: str) -> set[int]:
    """Processes here that have a memory file open or mapped."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            pid = int(process.name)
            if memory in ring_memory_of(pid) or f" {memory} " in (process / "maps").read_text():
                found.add(pid)
        except OSError:
            continue
    return found


def test_a_launcher_that_is_killed_leaves_no_process_and_no_memory() -> None:
    with subprocess.Popen(
        [sys.executable, "-P", "-W", "ignore", "-c", LAUNCHER, str(ROOT)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as launcher:
        assert launcher.stdout is not None
        pids = [int(word) for word in launcher.stdout.readline().split()]
        assert len(pids) == 1 + READERS
        (memory,) = ring_memory_of(launcher.pid)
        assert holders_of(memory) == {launcher.pid, *pids}
        launcher.kill()
        launcher.wait()
    assert all(wait_for_end(pid) for pid in pids), f"of {pids} some live on"
    assert holders_of(memory) == set()
