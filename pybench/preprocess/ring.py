# SPDX-License-Identifier: Apache-2.0
"""The consumer's side of the ring: shared memory and two pipes, as `docs/ring.md` defines them.

`Ring` makes all three, hands their other ends to a producer and gives out slots as numpy arrays without a copy. It
blocks, never spins, and knows nothing of processes, tokenizers or files: `go_rust` does.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
from collections import deque
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pybench.errors import PybenchError, UsageError
from pybench.measure.clock import NANOSECONDS_PER_SECOND, monotonic_ns

MAGIC = b"PYBRING\0"
VERSION = 1
HEADER = struct.Struct("<8sIIIIQQQ16x")  # magic, version, id_bytes, slot_count, zero, slot_bytes, batch, seq_len
SLOT_HEADER = struct.Struct("<QQQQ32x")  # sequence, token_count, text_bytes, document_count
MESSAGE = struct.Struct("<I")
READY = 0xFFFFFFFE
END = 0xFFFFFFFF

ALIGNMENT_BYTES = 64  # one cache line
WIDEST_ID_BYTES = 4
SLOTS_MAX = 4096
SLOT_TOKENS_MAX = 1 << 28
_ID_BYTES_AT = 12

IdBatch = NDArray[np.uint16] | NDArray[np.uint32]


class RingError(PybenchError):
    """The other side of the ring broke its rules, or is gone (`ProducerGoneError`)."""


class ProducerGoneError(RingError):
    """The producer's end of the filled pipe closed before it had sent `end`."""


@dataclass(frozen=True, slots=True)
class RingLayout:
    """Shape and size of a ring: `slots` batches of `batch` rows of `seq_len` ids."""

    batch: int
    seq_len: int
    slots: int

    def __post_init__(self) -> None:
        if self.batch < 1 or self.seq_len < 1 or self.batch * self.seq_len > SLOT_TOKENS_MAX:
            raise UsageError(
                f"a batch of {self.batch} rows of {self.seq_len} ids is impossible",
                hint=f"both at least 1, together at most {SLOT_TOKENS_MAX} ids",
            )
        if not 1 <= self.slots <= SLOTS_MAX:
            raise UsageError(f"a ring of {self.slots} slots is impossible", hint=f"1 to {SLOTS_MAX}")

    @property
    def tokens(self) -> int:
        """Ids in a slot."""
        return self.batch * self.seq_len

    @property
    def slot_bytes(self) -> int:
        """From one slot to the next: header, and room for ids of 4 bytes, in whole cache lines."""
        used = SLOT_HEADER.size + self.tokens * WIDEST_ID_BYTES
        return -(-used // ALIGNMENT_BYTES) * ALIGNMENT_BYTES

    @property
    def memory_bytes(self) -> int:
        """Size of the memory file. Pages never written are never allocated."""
        return HEADER.size + self.slots * self.slot_bytes

    def slot_at(self, index: int) -> int:
        """Offset of a slot in the memory."""
        return HEADER.size + index * self.slot_bytes

    def header(self) -> bytes:
        """The ring header as the consumer writes it; id_bytes is the producer's to fill in."""
        return HEADER.pack(MAGIC, VERSION, 0, self.slots, 0, self.slot_bytes, self.batch, self.seq_len)


@dataclass(frozen=True, slots=True)
class FilledSlot:
    """One batch in place. `ids`: uint16 or uint32 [batch, seq_len], valid until the slot is given back.

    `text_bytes` and `documents` count, from the beginning, the documents that have ended by the end of this batch.
    """

    index: int
    ids: IdBatch
    text_bytes: int
    documents: int


class Ring:
    """Memory, pipes, and whose turn it is. Use as a context manager; `close` twice is harmless.

    The memory stays mapped for as long as any array that was given out lives, so no stale view can crash the process.
    """

    def __init__(self, layout: RingLayout) -> None:
        self.layout = layout
        self.wait_ns = 0  # how long `next` has waited for the producer
        self._open_fds: set[int] = set()
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
        self._memory = mmap.mmap(self.memory_fd, layout.memory_bytes)
        self._memory[: HEADER.size] = layout.header()
        self._filled, self.filled_fd = map(self._keep, os.pipe())
        self.free_fd, self._free = map(self._keep, os.pipe())
        self._views: list[IdBatch] = []
        self._messages: deque[int] = deque()
        self._sequence = 0
        self._lent: set[int] = set()
        self._credits = list(range(layout.slots))
        # Each write wakes the producer. For batches of 1,024 ids one wake a batch cost this side 6 us of processor time
        # a batch, one for a quarter of the slots 4 us; one for half of them starved the producer.
        self._credits_together = max(1, layout.slots // 4)
        self._send_credits()

    def _keep(self, fd: int) -> int:
        self._open_fds.add(fd)
        return fd

    @property
    def producer_fds(self) -> tuple[int, int, int]:
        """What the producer inherits: memory, the writing end of filled, the reading end of free."""
        return self.memory_fd, self.filled_fd, self.free_fd

    def producer_started(self) -> None:
        """Closes the producer's ends here: only then does its death show as the end of a file."""
        self._close(self.memory_fd, self.filled_fd, self.free_fd)

    def wait_ready(self) -> None:
        """Waits until the producer has loaded everything, then checks the header that it has completed."""
        if (message := self._next_message()) != READY:
            raise RingError(f"the producer began with message {message:#x} instead of `ready`")
        expected = self.layout.header()
        header = self._memory[: HEADER.size]
        (id_bytes,) = MESSAGE.unpack_from(header, _ID_BYTES_AT)
        before, after = slice(_ID_BYTES_AT), slice(_ID_BYTES_AT + MESSAGE.size, None)
        if id_bytes not in (2, 4) or header[before] != expected[before] or header[after] != expected[after]:
            raise RingError(
                f"the ring's header is malformed: {header.hex()}", hint="both sides have to be of the same release"
            )
        self._views = [self._view(index, id_bytes) for index in range(self.layout.slots)]

    def _view(self, index: int, id_bytes: int) -> IdBatch:
        kind: Any = np.uint16 if id_bytes == 2 else np.uint32
        start = self.layout.slot_at(index) + SLOT_HEADER.size
        flat: IdBatch = np.frombuffer(self._memory, kind, self.layout.tokens, start)
        return flat.reshape(self.layout.batch, self.layout.seq_len)

    def next(self) -> FilledSlot | None:
        """The next batch, waiting for it if need be; None at the end. Give it back with `give_back`.

        Raises ProducerGoneError when the producer is gone, RingError when it broke the rules.
        """
        message = self._next_message()
        if message == END:
            return None
        if message >= self.layout.slots or message in self._lent:
            raise RingError(f"the producer announced slot {message} of {self.layout.slots}, which it did not hold")
        header = SLOT_HEADER.unpack_from(self._memory, self.layout.slot_at(message))
        sequence, tokens, text_bytes, documents = header
        if sequence != self._sequence or tokens != self.layout.tokens:
            raise RingError(
                f"slot {message} holds batch {sequence} of {tokens} ids, "
                f"expected batch {self._sequence} of {self.layout.tokens}"
            )
        self._sequence += 1
        self._lent.add(message)
        return FilledSlot(message, self._views[message], text_bytes, documents)

    def give_back(self, index: int) -> None:
        """Lets the producer overwrite a slot: at once, or soon with others, and always before waiting for the next."""
        self._lent.remove(index)
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

    def _next_message(self) -> int:
        """One message; several are fetched with one read where several wait."""
        if not self._messages:
            self._send_credits()
            before = monotonic_ns()
            data = os.read(self._filled, MESSAGE.size * (self.layout.slots + 2))
            self.wait_ns += monotonic_ns() - before
            if not data:
                raise ProducerGoneError("the producer closed the ring before the end of the corpus")
            if len(data) % MESSAGE.size:
                raise RingError(f"the producer sent {len(data)} bytes, not whole messages of {MESSAGE.size}")
            self._messages.extend(message for (message,) in MESSAGE.iter_unpack(data))
        return self._messages.popleft()

    @property
    def wait_s(self) -> float:
        """How long `next` and `wait_ready` have waited for the producer."""
        return self.wait_ns / NANOSECONDS_PER_SECOND

    def close(self) -> None:
        """Closes every end here; a producer that still runs then ends by itself."""
        self._close(*self._open_fds)
        self._views = []

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
