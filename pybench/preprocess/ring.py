# SPDX-License-Identifier: Apache-2.0
"""The consumer's side of the ring: shared memory and two pipes a reader, as `docs/formats/ring.md` defines them.

`Ring` makes them and hands their other ends to a producer. A `RingReader`, in the same process or in another one that
has inherited its descriptors, gives out slots as numpy arrays without a copy. It blocks, never spins, and knows nothing
of processes, tokenizers or files: `go_rust` does.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import termios
from collections import deque
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pybench.catalogue.causes import Cause
from pybench.errors import PybenchError, UnsupportedError, UsageError
from pybench.measure.timing.clock import NANOSECONDS_PER_SECOND, monotonic_ns

MAGIC = b"PYBRING\0"
VERSION = 2
# magic, version, id_bytes, slot_count, reader_count, slot_bytes, batch, seq_len, kind
HEADER = struct.Struct("<8sIIIIQQQI12x")
SLOT_HEADER = struct.Struct("<QQQQQ24x")  # sequence, token_count, text_bytes, document_count, row_count
MESSAGE = struct.Struct("<I")
READY = 0xFFFFFFFE
END = 0xFFFFFFFF

ALIGNMENT_BYTES = 64  # one cache line
WIDEST_ID_BYTES = 4
OFFSET_BYTES = 8
SLOTS_MAX = 4096
READERS_MAX = 256
SLOT_TOKENS_MAX = 1 << 28
_ID_BYTES_AT = 12
_read_header = SLOT_HEADER.unpack_from

IdBatch = NDArray[np.uint16] | NDArray[np.uint32]


class RingError(PybenchError):
    """The other side of the ring broke its rules, or is gone (`ProducerGoneError`)."""


class ProducerGoneError(RingError):
    """The producer's end of the filled pipe closed before it had sent `end`."""


@dataclass(frozen=True, slots=True)
class RingLayout:
    """Shape and size of a ring. Slot i belongs to reader i modulo `readers`, and each reader has as many slots.

    batch: rows of a batch
    seq_len: ids of a row
    slots: batches that the ring has room for
    readers: how many take batches out of it
    ragged: rows have up to `seq_len` ids, and not all as many
    """

    batch: int
    seq_len: int
    slots: int
    readers: int = 1
    ragged: bool = False

    def __post_init__(self) -> None:
        if self.batch < 1 or self.seq_len < 1:
            raise UsageError(f"a batch of {self.batch} rows of {self.seq_len} ids is impossible", hint="at least 1")
        if self.tokens > SLOT_TOKENS_MAX:
            raise UnsupportedError(
                f"a batch of {self.batch} rows of {self.seq_len} ids has more than a slot's {SLOT_TOKENS_MAX} ids",
                code=Cause.BATCH_OVER_SLOT,
                hint="lower `batch` or `seq_len`, or take `path: rust`",
            )
        if not 1 <= self.slots <= SLOTS_MAX:
            raise UsageError(f"a ring of {self.slots} slots is impossible", hint=f"1 to {SLOTS_MAX}")
        if not 1 <= self.readers <= READERS_MAX or self.slots % self.readers:
            raise UsageError(
                f"{self.slots} slots for {self.readers} readers are impossible",
                hint=f"1 to {READERS_MAX} readers, each with as many slots",
            )

    @property
    def tokens(self) -> int:
        """Ids that a slot has room for."""
        return self.batch * self.seq_len

    @property
    def ids_at(self) -> int:
        """Where ids begin in a slot: behind its header and, in a ragged one, its offsets."""
        return SLOT_HEADER.size + (_aligned((self.batch + 1) * OFFSET_BYTES) if self.ragged else 0)

    @property
    def slot_bytes(self) -> int:
        """From one slot to the next: room for ids of 4 bytes, in whole cache lines."""
        return _aligned(self.ids_at + self.tokens * WIDEST_ID_BYTES)

    @property
    def memory_bytes(self) -> int:
        """Size of the memory file. Pages never written are never allocated."""
        return HEADER.size + self.slots * self.slot_bytes

    def slot_at(self, index: int) -> int:
        """Offset of a slot in the memory."""
        return HEADER.size + index * self.slot_bytes

    def slots_of(self, reader: int) -> range:
        """The slots of one reader."""
        return range(reader, self.slots, self.readers)

    def header(self) -> bytes:
        """The ring header as the consumer writes it; id_bytes is the producer's to fill in."""
        sizes = (self.slots, self.readers, self.slot_bytes, self.batch, self.seq_len)
        return HEADER.pack(MAGIC, VERSION, 0, *sizes, int(self.ragged))

    def as_json(self) -> dict[str, Any]:
        """What another process needs to attach: `RingLayout(**stored)`."""
        return asdict(self)


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


@dataclass(slots=True)
class FilledSlot:
    """One batch in place, it and all that is said of it valid until the slot is given back.

    index: of the slot
    ids: uint16 or uint32 [batch, seq_len]; [n] of a ragged batch
    text_bytes, documents: of the documents that have ended, from the beginning to the end of this batch
    offsets: uint64 [rows + 1], where each row of a ragged batch begins; None: it is not ragged
    """

    index: int
    ids: IdBatch
    text_bytes: int = 0
    documents: int = 0
    offsets: NDArray[np.uint64] | None = None


@dataclass(frozen=True, slots=True)
class ReaderFds:
    """What a reader in another process inherits."""

    memory: int
    filled: int
    free: int


class Ring:
    """Memory and pipes of all readers. Use as a context manager; `close` twice is harmless."""

    def __init__(self, layout: RingLayout) -> None:
        self.layout = layout
        self._open_fds: set[int] = set()
        self._readers: dict[int, RingReader] = {}
        try:
            self._make()
        except OSError as error:
            self.close()
            raise PybenchError(
                f"cannot make a ring of {layout.memory_bytes} bytes: {error.strerror}", hint="use smaller batches"
            ) from error

    def _make(self) -> None:
        layout = self.layout
        self.memory_fd = self._keep(os.memfd_create("pybench-ring", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING))
        os.ftruncate(self.memory_fd, layout.memory_bytes)
        # Nobody can now shrink the file under the other's mapping, which would end that process with SIGBUS.
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(self.memory_fd, fcntl.F_ADD_SEALS, seals)
        os.pwrite(self.memory_fd, layout.header(), 0)
        self.filled_fds: list[int] = []
        self.free_fds: list[int] = []
        self.reader_fds: list[ReaderFds] = []
        for number in range(layout.readers):
            filled, producers_filled = map(self._keep, os.pipe())
            producers_free, free = map(self._keep, os.pipe())
            self.filled_fds.append(producers_filled)
            self.free_fds.append(producers_free)
            self.reader_fds.append(ReaderFds(self.memory_fd, filled, free))
            os.write(free, b"".join(map(MESSAGE.pack, layout.slots_of(number))))

    def _keep(self, fd: int) -> int:
        self._open_fds.add(fd)
        return fd

    @property
    def producer_fds(self) -> tuple[int, ...]:
        """What the producer inherits: memory, the writing ends of filled, the reading ends of free."""
        return self.memory_fd, *self.filled_fds, *self.free_fds

    def producer_started(self) -> None:
        """Closes the producer's ends here: only then does its death show as the end of a file."""
        self._close(*self.filled_fds, *self.free_fds)

    def reader(self, number: int = 0) -> RingReader:
        """A reader in this process; the same one each time."""
        if number not in self._readers:
            fds = self.reader_fds[number]
            self._open_fds -= {fds.filled, fds.free}
            self._readers[number] = RingReader(self.layout, number, fds)
        return self._readers[number]

    def reader_started(self, number: int) -> None:
        """Closes the ends of a reader that another process has inherited: only then does its death show."""
        fds = self.reader_fds[number]
        self._close(fds.filled, fds.free)

    def close(self) -> None:
        """Closes every end here; a producer that still runs then ends by itself."""
        self._close(*self._open_fds)
        for reader in self._readers.values():
            reader.close()

    def _close(self, *fds: int) -> None:
        for fd in fds:
            if fd in self._open_fds:
                self._open_fds.remove(fd)
                os.close(fd)

    def __enter__(self) -> Ring:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class RingReader:
    """One reader: its batches, and whose turn each slot is. It owns its pipe ends and leaves the memory's open.

    The memory stays mapped for as long as any array that was given out lives, so no stale view can crash the process.

    `next` and `give_back` run cold, once in the launches of a whole model, where Python takes several times as long as
    in a loop of its own. A slot's object is therefore made once, and the layout's properties are asked once.
    """

    def __init__(self, layout: RingLayout, number: int, fds: ReaderFds) -> None:
        self.layout = layout
        self.wait_ns = 0  # how long `next` has waited for the producer
        self._memory = mmap.mmap(fds.memory, layout.memory_bytes)
        self._filled, self._free = fds.filled, fds.free
        self._is_open = True
        self._messages: deque[int] = deque()
        self._sequence = number
        self._own = layout.slots_of(number)
        self._tokens, self._step, self._ragged = layout.tokens, layout.readers, layout.ragged
        self._header_at = {index: layout.slot_at(index) for index in self._own}
        self._room: dict[int, IdBatch] = {}  # a ragged slot's, all of it
        self._with_producer: dict[int, FilledSlot] = {}
        self._lent: dict[int, FilledSlot] = {}
        self._credits: list[int] = []
        # Each write wakes the producer. For batches of 1,024 ids one wake a batch cost this side 6 us of processor time
        # a batch, and one for a quarter of the slots 4 us. One for half of them starved the producer.
        self._credits_together = max(1, len(self._own) // 4)

    @property
    def memory(self) -> NDArray[np.uint8]:
        """The whole ring, for a device that has to know where its pages are."""
        return np.frombuffer(self._memory, np.uint8)

    @property
    def slots(self) -> int:
        """How many slots this reader may hold at a time."""
        return len(self._own)

    @property
    def ready(self) -> int:
        """How many messages are there to be read without waiting, the end included."""
        (unread_bytes,) = struct.unpack("i", fcntl.ioctl(self._filled, termios.FIONREAD, bytes(4)))
        return len(self._messages) + int(unread_bytes) // MESSAGE.size

    def wait_ready(self) -> None:
        """Waits until the producer has loaded everything, then checks the header that it has completed."""
        self._await_messages()
        if (message := self._messages.popleft()) != READY:
            raise RingError(f"the producer began with message {message:#x} instead of `ready`")
        expected = self.layout.header()
        header = self._memory[: HEADER.size]
        (id_bytes,) = MESSAGE.unpack_from(header, _ID_BYTES_AT)
        before, after = slice(_ID_BYTES_AT), slice(_ID_BYTES_AT + MESSAGE.size, None)
        if id_bytes not in (2, 4) or header[before] != expected[before] or header[after] != expected[after]:
            raise RingError(
                f"the ring's header is malformed: {header.hex()}",
                hint="both sides must be of the same release: run `make setup`",
            )
        self._room = {index: self._view(index, id_bytes) for index in self._own}
        self._with_producer = {index: FilledSlot(index, ids) for index, ids in self._room.items()}

    def _view(self, index: int, id_bytes: int) -> IdBatch:
        kind: Any = np.uint16 if id_bytes == 2 else np.uint32
        start = self.layout.slot_at(index) + self.layout.ids_at
        flat: IdBatch = np.frombuffer(self._memory, kind, self.layout.tokens, start)
        return flat if self.layout.ragged else flat.reshape(self.layout.batch, self.layout.seq_len)

    def next(self) -> FilledSlot | None:
        """The next batch, waiting for it if need be; None at the end. Give it back with `give_back`.

        Raises ProducerGoneError when the producer is gone, RingError when it broke the rules.
        """
        if not self._messages:
            self._await_messages()
        message = self._messages[0]  # stays first until it is taken: an end, and a fault, are told each time
        slot = self._with_producer.get(message)
        if slot is None:
            if message == END:
                return None
            raise RingError(f"the producer announced slot {message} of {self.layout.slots}, which is not its own")
        sequence, tokens, slot.text_bytes, slot.documents, rows = _read_header(self._memory, self._header_at[message])
        if sequence != self._sequence or (tokens != self._tokens and (tokens > self._tokens or not self._ragged)):
            raise RingError(
                f"slot {message} contains batch {sequence} of {tokens} ids, "
                f"expected batch {self._sequence} of {self._tokens}"
            )
        if self._ragged:
            slot.ids, slot.offsets = self._room[message][:tokens], self._offsets(message, rows)
        self._messages.popleft()
        self._sequence += self._step
        self._lent[message] = self._with_producer.pop(message)
        return slot

    def _offsets(self, index: int, rows: int) -> NDArray[np.uint64]:
        if rows > self.layout.batch:
            raise RingError(f"slot {index} contains {rows} rows, at most {self.layout.batch} expected")
        return np.frombuffer(self._memory, np.uint64, rows + 1, self.layout.slot_at(index) + SLOT_HEADER.size)

    def give_back(self, index: int) -> None:
        """Lets the producer overwrite a slot: at once, or soon with others, and always before waiting for the next."""
        self._with_producer[index] = self._lent.pop(index)
        self._credits.append(index)
        if len(self._credits) >= self._credits_together:
            self._send_credits()

    def _send_credits(self) -> None:
        if not self._credits:
            return
        data = b"".join(map(MESSAGE.pack, self._credits))
        self._credits.clear()
        try:
            os.write(self._free, data)
        except BrokenPipeError:
            return  # its death shows, with its reason, where the next batch is awaited

    def _await_messages(self) -> None:
        """At least one message; several are fetched with one read where several wait."""
        self._send_credits()
        before = monotonic_ns()
        data = os.read(self._filled, MESSAGE.size * (self.layout.slots + 2))
        self.wait_ns += monotonic_ns() - before
        if not data:
            raise ProducerGoneError("the producer closed the ring before the end of the corpus")
        if len(data) % MESSAGE.size:
            raise RingError(f"the producer sent {len(data)} bytes, not whole messages of {MESSAGE.size}")
        self._messages.extend(message for (message,) in MESSAGE.iter_unpack(data))

    @property
    def wait_s(self) -> float:
        """How long `next` and `wait_ready` have waited for the producer."""
        return self.wait_ns / NANOSECONDS_PER_SECOND

    def close(self) -> None:
        """Closes the ends here; twice is harmless."""
        if self._is_open:
            self._is_open = False
            os.close(self._filled)
            os.close(self._free)
            self._room, self._with_producer, self._lent = {}, {}, {}
