# SPDX-License-Identifier: Apache-2.0
"""Python and Go across the ring, with the real orchestrator, the real tokenizer and real text.

The slow twin encodes each document alone, in this process, without a cache, and cuts by hand.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
import pybench_tokenizer
import pytest

from pybench.errors import InputError, PybenchError
from pybench.preprocess import go_rust
from pybench.preprocess.corpus import Corpus, resolve_corpus
from pybench.preprocess.orchestrator import Orchestrator
from pybench.preprocess.program import find_orchestrator
from pybench.preprocess.ring import ProducerGoneError, Ring, RingLayout
from pybench.preprocess.vocabulary import find_tokenizer
from tests.support.processes import wait_for_end
from tests.support.waiting import wait_for

TOKENIZER = find_tokenizer("tok32k")
FLAGS = go_rust.tokenizer_flags(TOKENIZER, 1, 1)
ENDLESS = 0


@cache
def sources() -> Corpus:
    """Two megabytes of the standard library: some eight of the orchestrator's chunks."""
    return resolve_corpus("python-stdlib", limit_bytes=2_000_000)


@cache
def slow_ids() -> np.ndarray:
    tokenizer = pybench_tokenizer.Tokenizer.from_file(TOKENIZER, cache_entries=0)
    end = tokenizer.token_to_id("<|endoftext|>")
    return np.concatenate([np.append(tokenizer.encode(text), end) for _, text in sources().documents()])


@pytest.mark.parametrize(
    ("batch", "seq_len", "threads", "slots", "epochs"),
    [
        (1, 50, 1, 4096, 1),
        (8, 128, 1, 1, 1),
        (8, 128, 2, 4, 1),
        (3, 77, 5, 2, 2),
        (1, 5000, 3, 1, 3),
        (64, 512, 2, None, 1),
    ],
)
def test_the_ring_delivers_the_ids_of_the_slow_way(
    batch: int, seq_len: int, threads: int, slots: int | None, epochs: int
) -> None:
    expected = np.tile(slow_ids(), epochs)
    with go_rust.open_batches(TOKENIZER, sources(), batch, seq_len, threads, epochs=epochs, slots=slots) as stream:
        got = np.concatenate([ids.ravel() for ids in stream])
    full = len(expected) // (batch * seq_len) * batch * seq_len
    np.testing.assert_array_equal(got, expected[:full])
    assert stream.tokens == full
    assert stream.ids_sha256 == hashlib.sha256(expected[:full].astype("<u4").tobytes()).hexdigest()
    assert stream.counters is not None
    assert stream.counters.tokens == len(expected)
    assert stream.counters.dropped_tokens == len(expected) - full
    assert stream.counters.text_bytes == sources().total_bytes * epochs
    assert stream.counters.documents == len(sources().files) * epochs
    assert stream.counters.tokenizing_s > 0


def test_batches_in_place_are_narrow_views_of_the_same_ids() -> None:
    with go_rust.open_batches(TOKENIZER, sources(), 8, 128, 2, slots=2) as stream:
        got = []
        with suppress(StopIteration):
            while True:
                slot = stream.take()
                assert slot.ids.dtype == np.uint16
                assert slot.ids.base is not None
                got.append(slot.ids.copy())
                stream.give_back(slot.index)
    np.testing.assert_array_equal(np.concatenate(got).ravel(), slow_ids()[: stream.tokens])


def test_text_bytes_count_the_documents_that_have_ended(tmp_path: Path) -> None:
    ids_each = 7
    for number in range(4):
        (tmp_path / f"{number}.txt").write_text(" ab" * (number + 1))
    tokenizer = pybench_tokenizer.Tokenizer.from_file(TOKENIZER)
    corpus = resolve_corpus(str(tmp_path))
    ended, ends, total = 0, [], 0
    for _, text in corpus.documents():
        total += len(tokenizer.encode(text)) + 1
        ended += len(text)
        ends.append((total, ended))
    with go_rust.open_batches(TOKENIZER, corpus, 1, ids_each, 1) as stream:
        for number, _ in enumerate(stream, start=1):
            complete = [text_bytes for end, text_bytes in ends if end <= number * ids_each]
            assert stream.text_bytes == (complete[-1] if complete else 0)


def endless(slots: int = 1) -> go_rust.GoRustStream:
    return go_rust.open_batches(TOKENIZER, sources(), 8, 128, 2, epochs=ENDLESS, slots=slots)


def processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def used_s(pid: int, seconds: float) -> float:
    """Processor time that a process takes in the next `seconds`."""
    before_s = processor_s(pid)
    time.sleep(seconds)
    return processor_s(pid) - before_s


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_slow_consumer_makes_the_orchestrator_wait_without_spinning_or_growing() -> None:
    with endless() as stream:
        pid = stream.orchestrator_pid
        for _ in islice(stream, 200):
            pass
        wait_for(lambda: used_s(pid, 0.5) <= 0.03)  # once it has read ahead as far as it may
        resident = resident_bytes(pid)
        for _ in islice(stream, 3000):
            pass
        assert resident_bytes(pid) - resident < 20 << 20


def test_the_wait_for_a_slow_consumer_is_counted() -> None:
    pauses, pause_s = 12, 0.03
    with go_rust.open_batches(TOKENIZER, sources(), 64, 512, 1, slots=1) as stream:
        for _ in islice(stream, pauses):
            time.sleep(pause_s)
        for _ in stream:
            pass
    assert stream.counters is not None
    # It may come late to a wait, as on a busy machine, but not to every other one.
    assert stream.counters.credit_wait_s >= pauses * pause_s / 2
    assert stream.wait_s < stream.counters.wall_s


CONSUMER = """
import os, sys
from pathlib import Path
from pybench.preprocess import find_tokenizer, go_rust, resolve_corpus
stream = go_rust.open_batches(find_tokenizer("tok32k"), resolve_corpus("python-stdlib", 2_000_000), 8, 128, 2, epochs=0)
next(stream)
if sys.argv[1] == "fork" and os.fork() == 0:
    os.close(1)
    os.read(0, 1)  # this child holds the consumer's ends of the pipes open, as long as the test looks
    os._exit(0)
print(stream.orchestrator_pid, flush=True)
for ids in stream:
    pass
"""


@pytest.mark.parametrize("how", ["plain", "fork"])
def test_a_consumer_killed_at_any_moment_leaves_no_orchestrator(how: str) -> None:
    for delay_s in (0.0, 0.01, 0.1):
        command = [sys.executable, "-W", "ignore", "-c", CONSUMER, how]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
        ) as consumer:
            assert consumer.stdout is not None
            pid = int(consumer.stdout.readline())
            time.sleep(delay_s)
            consumer.kill()
            consumer.wait()
            assert wait_for_end(pid), f"process {pid} lives on"


@pytest.mark.parametrize("pause_s", [0.0, 0.1])  # it is at work, or asleep because the ring is full
def test_a_consumer_that_stops_early_ends_the_orchestrator(pause_s: float) -> None:
    with endless(slots=4) as stream:
        next(stream)
        time.sleep(pause_s)
        stream.close()
        assert wait_for_end(stream.orchestrator_pid, 0)
        assert stream._orchestrator._process.returncode == 1, "by itself: it was not killed for being late"
    with pytest.raises(StopIteration):
        next(stream)


@pytest.mark.parametrize(
    ("number", "message"),
    [(signal.SIGKILL, "was killed by SIGKILL"), (signal.SIGTERM, "stopped by SIGTERM")],
)
def test_an_orchestrator_that_is_killed_is_an_error_that_names_the_signal(number: int, message: str) -> None:
    with endless() as stream:
        next(stream)
        os.kill(stream.orchestrator_pid, number)
        with pytest.raises(PybenchError, match=message):
            for _ in stream:
                pass


def test_the_orchestrator_ignores_a_ctrl_c_that_is_meant_for_the_runner() -> None:
    with endless() as stream:
        next(stream)
        os.kill(stream.orchestrator_pid, signal.SIGINT)
        for _ in islice(stream, 500):
            pass


def bad_corpus(tmp_path: Path, spoil: Callable[[Path], object]) -> tuple[Corpus, Path]:
    """A corpus whose second file is spoilt after it was resolved."""
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("some words, and more of them\n" * 50)
    corpus = resolve_corpus(str(tmp_path))
    spoil(tmp_path / "b.txt")
    return corpus, tmp_path / "b.txt"


def make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (Path.unlink, "cannot be read: no such file or directory"),
        (make_folder, "is not a regular file"),
        (lambda path: path.write_bytes(b"fine until h\xe9re, then not"), "is not UTF-8: byte 12 begins no character"),
    ],
)
def test_a_file_that_turned_bad_is_an_input_error_that_names_it(
    tmp_path: Path, spoil: Callable[[Path], object], message: str
) -> None:
    corpus, bad = bad_corpus(tmp_path, spoil)
    with pytest.raises(InputError) as caught, go_rust.open_batches(TOKENIZER, corpus, 2, 16, 2) as stream:
        for _ in stream:
            pass
    assert caught.value.message == f"{bad} {message}"


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_without_permission_is_an_input_error_that_names_it(tmp_path: Path) -> None:
    corpus, bad = bad_corpus(tmp_path, lambda path: path.chmod(0))
    with pytest.raises(InputError, match=f"{bad} cannot be read: permission denied"):
        go_rust.open_batches(TOKENIZER, corpus, 2, 16, 2)


def test_a_corpus_that_grew_is_an_input_error(tmp_path: Path) -> None:
    corpus, _ = bad_corpus(tmp_path, lambda path: path.write_text("much more text\n" * 500))
    with (
        pytest.raises(InputError, match="the corpus changed: 2900 bytes"),
        go_rust.open_batches(TOKENIZER, corpus, 2, 16, 2) as stream,
    ):
        for _ in stream:
            pass


@pytest.fixture
def ring() -> Iterator[Ring]:
    with Ring(RingLayout(8, 128, slots=2)) as made:
        yield made


def why_it_ended(ring: Ring, flags: list[str]) -> PybenchError:
    """Starts an orchestrator that is bound to refuse, and returns its reason."""
    orchestrator = Orchestrator(ring, sources().files, flags)
    try:
        with pytest.raises(ProducerGoneError):
            ring.reader().wait_ready()
        return orchestrator.failure()
    finally:
        ring.close()
        orchestrator.close()


@pytest.mark.parametrize(
    ("offset", "message"),
    [(0, "it begins with"), (8, "version 3"), (16, "asks for"), (24, "slots of"), (32, "slots of"), (63, "reserved")],
)
def test_the_orchestrator_refuses_a_malformed_ring(ring: Ring, offset: int, message: str) -> None:
    byte = os.pread(ring.memory_fd, 1, offset)
    os.pwrite(ring.memory_fd, bytes([byte[0] ^ 1]), offset)
    error = why_it_ended(ring, FLAGS)
    assert "the ring is malformed" in error.message
    assert message in error.message
    assert error.hint is not None


def test_the_orchestrator_refuses_an_object_that_is_not_the_tokenizer(ring: Ring) -> None:
    error = why_it_ended(ring, [*FLAGS, "--tokenizer-object", "libc.so.6"])
    assert "libc.so.6 is not the tokenizer" in error.message


def test_a_flag_that_the_orchestrator_does_not_know_is_shown_with_its_stderr(ring: Ring) -> None:
    error = why_it_ended(ring, [*FLAGS, "--nope"])
    assert "exit code 2" in error.message
    assert "unknown flag --nope" in error.message


def test_the_orchestrator_names_the_abi_that_it_speaks() -> None:
    said = subprocess.run([find_orchestrator(), "--version"], capture_output=True, text=True, check=True).stdout
    assert said.startswith("pybench-orchestrator ")
    assert said.endswith(f"(tokenizer ABI {pybench_tokenizer.shared_object.ABI_VERSION})\n")
