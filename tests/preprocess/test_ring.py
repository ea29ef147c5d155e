# SPDX-License-Identifier: Apache-2.0
"""The consumer's side of the ring against a producer that lives in the test and can break every rule.

Offsets are literals from docs/formats/ring.md, so that a slip in the module's own constants shows.
"""

from __future__ import annotations

import contextlib
import gc
import os
import struct
import threading
import time
from collections.abc import Iterator
from mmap import mmap

import numpy as np
import pytest

from pybench.errors import UsageError
from pybench.measure.timing.clock import monotonic_ns
from pybench.preprocess.ring import END, READY, ProducerGoneError, Ring, RingError, RingLayout

BATCH, SEQ_LEN = 3, 5
SLOT_BYTES = 128  # 64 + 15 * 4, in whole lines of 64


class Producer:
    """Obeys docs/formats/ring.md, unless told otherwise. Owns copies of the producer's ends, as a process would."""

    def __init__(self, ring: Ring, number: int = 0) -> None:
        memory, filled, free = (os.dup(fd) for fd in (ring.memory_fd, ring.filled_fds[number], ring.free_fds[number]))
        if number == ring.layout.readers - 1:
            ring.producer_started()
        self.memory = mmap(memory, 0)
        os.close(memory)
        self.filled, self.free = filled, free

    def send(self, *messages: int) -> None:
        os.write(self.filled, b"".join(struct.pack("<I", message) for message in messages))

    def ready(self, id_bytes: int = 2) -> None:
        self.memory[12:16] = struct.pack("<I", id_bytes)
        self.send(READY)

    def write(self, slot: int, sequence: int, ids: np.ndarray, tokens: int = BATCH * SEQ_LEN) -> None:
        start = 64 + slot * SLOT_BYTES
        self.memory[start : start + 64] = struct.pack("<QQQQQ24x", sequence, tokens, 100 * sequence, sequence, BATCH)
        self.memory[start + 64 : start + 64 + ids.nbytes] = ids.tobytes()
        self.send(slot)

    def credit(self) -> int:
        return int.from_bytes(os.read(self.free, 4), "little")

    def close(self) -> None:
        for fd in (self.filled, self.free):
            os.close(fd)


@pytest.fixture
def ring() -> Iterator[Ring]:
    with Ring(RingLayout(BATCH, SEQ_LEN, slots=2)) as made:
        yield made


@pytest.fixture
def producer(ring: Ring) -> Iterator[Producer]:
    made = Producer(ring)
    yield made
    with contextlib.suppress(OSError):  # the test may have closed it
        made.close()


def ids_of(sequence: int, dtype: type = np.uint16) -> np.ndarray:
    return np.arange(sequence, sequence + BATCH * SEQ_LEN).astype(dtype)


@pytest.mark.parametrize(("id_bytes", "dtype"), [(2, np.uint16), (4, np.uint32)])
def test_batches_arrive_in_place_in_both_widths(ring: Ring, producer: Producer, id_bytes: int, dtype: type) -> None:
    producer.ready(id_bytes)
    ring.reader().wait_ready()
    for sequence in range(7):
        index = producer.credit()
        producer.write(index, sequence, ids_of(sequence, dtype))
        slot = ring.reader().next()
        assert slot is not None
        assert slot.ids.dtype == dtype
        assert slot.ids.shape == (BATCH, SEQ_LEN)
        np.testing.assert_array_equal(slot.ids.ravel(), ids_of(sequence))
        assert (slot.text_bytes, slot.documents) == (100 * sequence, sequence)
        producer.memory[64 + index * SLOT_BYTES + 64] ^= 1
        assert slot.ids[0, 0] == sequence ^ 1, "the array is the shared memory itself, not a copy"
        ring.reader().give_back(slot.index)
    producer.send(END)
    assert ring.reader().next() is None


def test_ids_begin_on_a_cache_line(ring: Ring, producer: Producer) -> None:
    producer.ready()
    ring.reader().wait_ready()
    for sequence in range(2):
        producer.write(producer.credit(), sequence, ids_of(sequence))
        slot = ring.reader().next()
        assert slot is not None
        assert slot.ids.ctypes.data % 64 == 0


def test_the_header_is_the_documented_one(ring: Ring, producer: Producer) -> None:
    expected = b"PYBRING\0" + struct.pack("<IIIIQQQQQ", 2, 0, 2, 1, SLOT_BYTES, BATCH, SEQ_LEN, 0, 0)
    assert producer.memory[:64] == expected
    assert len(producer.memory) == 64 + 2 * SLOT_BYTES


def test_every_slot_is_a_credit_at_the_start_and_comes_back_when_given_back(ring: Ring, producer: Producer) -> None:
    producer.ready()
    ring.reader().wait_ready()
    assert [producer.credit(), producer.credit()] == [0, 1]
    producer.write(1, 0, ids_of(0))
    producer.write(0, 1, ids_of(1))
    first, second = ring.reader().next(), ring.reader().next()
    assert first is not None
    assert second is not None
    ring.reader().give_back(second.index)
    ring.reader().give_back(first.index)
    assert [producer.credit(), producer.credit()] == [0, 1]


def test_credits_held_together_are_sent_before_the_consumer_waits() -> None:
    with Ring(RingLayout(BATCH, SEQ_LEN, slots=12)) as ring:
        producer = Producer(ring)
        producer.ready()
        ring.reader().wait_ready()
        assert [producer.credit() for _ in range(12)] == list(range(12))
        os.set_blocking(producer.free, False)
        producer.write(5, 0, ids_of(0))
        first = ring.reader().next()
        assert first is not None
        ring.reader().give_back(first.index)
        with pytest.raises(BlockingIOError):
            producer.credit()  # one of twelve is not worth waking anybody
        os.set_blocking(producer.free, True)
        writer = threading.Thread(target=lambda: producer.write(producer.credit(), 1, ids_of(1)))
        writer.start()
        second = ring.reader().next()  # a deadlock unless the credit is sent first
        writer.join()
        producer.close()
    assert second is not None
    assert second.index == 5


@pytest.mark.timing
def test_waiting_for_the_producer_blocks_without_cpu_time_and_is_counted(ring: Ring, producer: Producer) -> None:
    producer.ready()
    ring.reader().wait_ready()
    before_ns = ring.reader().wait_ns
    written_ns: list[int] = []

    def write() -> None:
        index = producer.credit()
        written_ns.append(monotonic_ns())
        producer.write(index, 0, ids_of(0))

    writer = threading.Timer(0.2, write)
    writer.start()
    cpu_s, begin_ns = time.thread_time(), monotonic_ns()
    ring.reader().next()
    inside_ns, cpu_s = monotonic_ns() - begin_ns, time.thread_time() - cpu_s
    writer.join()
    assert written_ns[0] - begin_ns <= ring.reader().wait_ns - before_ns + 50_000_000  # until it comes to wait
    assert ring.reader().wait_ns - before_ns <= inside_ns
    assert cpu_s < 0.25 * inside_ns * 1e-9


@pytest.mark.parametrize("sent", [[], [0], [0, 1]])
def test_a_producer_that_vanishes_is_an_error_after_what_it_had_sent(
    ring: Ring, producer: Producer, sent: list[int]
) -> None:
    producer.ready()
    for sequence, slot in enumerate(sent):
        producer.write(slot, sequence, ids_of(sequence))
    producer.close()
    ring.reader().wait_ready()
    for _ in sent:
        slot = ring.reader().next()
        assert slot is not None
        ring.reader().give_back(slot.index)  # to nobody: no error here
    with pytest.raises(ProducerGoneError):
        ring.reader().next()


def test_a_producer_that_does_not_begin_with_ready_is_refused(ring: Ring, producer: Producer) -> None:
    producer.write(0, 0, ids_of(0))
    with pytest.raises(RingError, match="message 0x0 instead of `ready`"):
        ring.reader().wait_ready()


@pytest.mark.parametrize("id_bytes", [0, 1, 3, 8])
def test_an_impossible_id_width_is_refused(ring: Ring, producer: Producer, id_bytes: int) -> None:
    producer.ready(id_bytes)
    with pytest.raises(RingError, match="header is malformed"):
        ring.reader().wait_ready()


@pytest.mark.parametrize("offset", [0, 8, 16, 20, 24, 32, 40, 63])
def test_a_header_that_the_producer_has_changed_is_refused(ring: Ring, producer: Producer, offset: int) -> None:
    producer.memory[offset] ^= 1
    producer.ready()
    with pytest.raises(RingError, match="header is malformed"):
        ring.reader().wait_ready()


def test_batches_out_of_order_or_of_another_size_are_refused(ring: Ring, producer: Producer) -> None:
    producer.ready()
    ring.reader().wait_ready()
    producer.write(0, 1, ids_of(0))
    with pytest.raises(RingError, match="contains batch 1 of 15 ids, expected batch 0 of 15"):
        ring.reader().next()
    producer.write(0, 0, ids_of(0), tokens=14)
    with pytest.raises(RingError, match="of 14 ids"):
        ring.reader().next()


@pytest.mark.parametrize("message", [2, 4096, READY])
def test_a_slot_that_does_not_exist_is_refused(ring: Ring, producer: Producer, message: int) -> None:
    producer.ready()
    ring.reader().wait_ready()
    producer.send(message)
    with pytest.raises(RingError, match=f"announced slot {message} of 2"):
        ring.reader().next()


def test_a_slot_announced_while_the_consumer_holds_it_is_refused(ring: Ring, producer: Producer) -> None:
    producer.ready()
    ring.reader().wait_ready()
    producer.write(0, 0, ids_of(0))
    ring.reader().next()
    producer.write(0, 1, ids_of(1))
    with pytest.raises(RingError, match="announced slot 0"):
        ring.reader().next()


def test_a_fault_is_told_after_the_batches_before_it_and_each_time(ring: Ring, producer: Producer) -> None:
    producer.ready()
    reader = ring.reader()
    reader.wait_ready()
    producer.write(0, 0, ids_of(0))
    producer.write(1, 2, ids_of(2))
    slot = reader.next()
    assert slot is not None
    np.testing.assert_array_equal(slot.ids.flatten(), ids_of(0))
    reader.give_back(slot.index)
    for _ in range(2):  # nothing comes behind it
        with pytest.raises(RingError, match="contains batch 2 of 15 ids, expected batch 1 of 15"):
            reader.next()


def test_many_that_wait_come_in_order_and_then_the_end_each_time() -> None:
    slots = 49
    with Ring(RingLayout(BATCH, SEQ_LEN, slots)) as ring:
        producer = Producer(ring)
        producer.ready()
        for number in range(slots):
            producer.write(number, number, ids_of(number))
        producer.send(END)
        reader = ring.reader()
        reader.wait_ready()
        for number in range(slots):
            slot = reader.next()
            assert slot is not None
            assert (slot.index, slot.documents) == (number, number)
            np.testing.assert_array_equal(slot.ids.flatten(), ids_of(number))
            if number % 2:
                reader.give_back(slot.index)
        assert reader.next() is None
        assert reader.next() is None
        producer.close()


def test_half_a_message_is_refused(ring: Ring, producer: Producer) -> None:
    producer.ready()
    ring.reader().wait_ready()
    os.write(producer.filled, b"\0\0\0")
    with pytest.raises(RingError, match="3 bytes"):
        ring.reader().next()


def test_the_memory_cannot_be_shrunk_under_a_mapping(ring: Ring) -> None:
    with pytest.raises(PermissionError):
        os.ftruncate(ring.memory_fd, 64)


def test_a_view_outlives_its_ring() -> None:
    with Ring(RingLayout(BATCH, SEQ_LEN, slots=1)) as ring:
        producer = Producer(ring)
        producer.ready()
        ring.reader().wait_ready()
        producer.write(0, 0, ids_of(0))
        slot = ring.reader().next()
        producer.close()
    del ring
    gc.collect()
    assert slot is not None
    assert int(slot.ids.sum()) == int(ids_of(0).sum())


def test_closing_leaves_no_file_descriptor_behind() -> None:
    gc.collect()  # what other tests left
    before = os.listdir("/proc/self/fd")
    for _ in range(3):
        with Ring(RingLayout(BATCH, SEQ_LEN, slots=1)) as ring:
            ring.close()
    del ring
    gc.collect()
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.parametrize(("batch", "seq_len", "slots"), [(0, 5, 1), (3, 0, 1), (3, 5, 0), (3, 5, 4097)])
def test_an_impossible_shape_is_a_usage_error(batch: int, seq_len: int, slots: int) -> None:
    with pytest.raises(UsageError):
        RingLayout(batch, seq_len, slots)
