"""The two sides of a ring; see ring.py.

A view that was handed out stays valid until its slot is published or released, not longer: afterwards the other side
writes there. Neither side holds on to anything per message; the small Python objects of one come from the
interpreter's own pools. Units: ns, bytes, messages; seconds for `wait`. Threads: one per side.
"""

from __future__ import annotations

import mmap
import os
import select
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from antiphon.core.errors import CallerError, PeerError
from antiphon.exchange.checksum import find_checksum
from antiphon.exchange.layout import (
    AS_BYTES,
    CHECK,
    CONTROL_BYTES,
    DTYPES,
    HEAD_WORD,
    HEADER,
    HEADER_BYTES,
    KINDS,
    MODULUS,
    MOST_DIMENSIONS,
    READER_WORD,
    TAIL_WORD,
    WRITER_WORD,
    Kind,
    RingShape,
    Stamp,
)
from antiphon.exchange.memory_order import find_fence

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

MOST_REFUSED = MODULUS - 1
UNUSED = (0,) * MOST_DIMENSIONS


class Fds(NamedTuple):
    """A ring's file descriptors."""

    memory: int
    filled: int  # rung for every message
    freed: int  # rung for every release
    line: int  # one end of the socket pair that hangs up


class Message(NamedTuple):
    """One message, in place."""

    number: int  # since the ring was made; one that came twice has the same
    generation: int  # of its writer
    refused: int  # how many did not fit before it, since the ring was made
    stamp: Stamp
    payload: memoryview  # read-only; valid until `release`

    def array(self) -> npt.NDArray[np.generic]:
        """The payload as an array of the shape and type that its writer gave it, without a copy, read-only."""
        flat: npt.NDArray[np.generic] = np.frombuffer(self.payload, DTYPES[self.stamp.dtype])
        return flat.reshape(self.stamp.sizes)


class _Mapped:
    """What both sides do alike: map, look at words, ring, wait, notice that the other is gone."""

    def __init__(self, fds: Fds, shape: RingShape, *, writes: bool, fence: Callable[[], None] | None) -> None:
        memory = memoryview(mmap.mmap(fds.memory, shape.total_bytes))
        places = range(CONTROL_BYTES, shape.total_bytes, shape.slot_bytes)
        self.words = memory[:CONTROL_BYTES].cast("Q")
        self.headers = [memory[place : place + HEADER_BYTES] for place in places]
        self.payloads = [memory[place + HEADER_BYTES :][: shape.payload_bytes] for place in places]
        self.mask = shape.slots - 1
        self.checksum = find_checksum()
        self.fence = fence or find_fence()
        self.awaited_fd, self.rung_fd = (fds.freed, fds.filled) if writes else (fds.filled, fds.freed)
        self.line_fd = fds.line
        self._strike, self._hear = os.eventfd_write, os.eventfd_read  # found once: every look-up is in every hop
        self._poll = select.poll()
        self._poll.register(self.awaited_fd, select.POLLIN)
        self._poll.register(self.line_fd, select.POLLIN)

    def ring(self) -> None:
        self._strike(self.rung_fd, 1)

    def hush(self) -> None:
        with suppress(BlockingIOError):
            self._hear(self.awaited_fd)

    def wait(self, is_there: Callable[[], bool], timeout_s: float | None) -> bool:
        """Until it is there; False once the time is over, or the peer is gone and it is not there."""
        if is_there():
            return True
        until = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            left_ms = None if until is None else max(0.0, until - time.monotonic()) * 1000
            hung_up, told = False, self._poll.poll(left_ms)
            for fd, _ in told:
                if fd == self.awaited_fd:
                    self._hear(fd)  # before looking, so that what comes after the look rings again
                else:
                    hung_up = True
            if is_there():
                return True
            if hung_up or not told:
                return False

    def is_peer_gone(self) -> bool:
        poll = select.poll()
        poll.register(self.line_fd, select.POLLIN)
        return bool(poll.poll(0))

    def follow(self, line_fd: int) -> None:
        self._poll.unregister(self.line_fd)
        self._poll.register(line_fd, select.POLLIN)
        self.line_fd = line_fd

    def close(self) -> None:
        """Views that somebody still holds keep the memory mapped."""
        self.headers, self.payloads = [], []


class Writer:
    """The side that puts messages in."""

    def __init__(self, fds: Fds, shape: RingShape, generation: int, *, fence: Callable[[], None] | None = None) -> None:
        self.shape = shape
        self.generation = generation
        self._mapped = _Mapped(fds, shape, writes=True, fence=fence)
        self._head = self._mapped.words[HEAD_WORD]
        self._tail = self._mapped.words[TAIL_WORD]  # as far as it was looked at
        self._mapped.fence()

    @property
    def refused(self) -> int:
        """Messages that did not fit since the ring was made, by earlier writers too."""
        return self._mapped.words[WRITER_WORD + 1]

    @property
    def unread(self) -> int:
        """Messages that the reader has not released yet; what is lost, if no other reader will come."""
        return (self._head - self._mapped.words[TAIL_WORD]) % MODULUS

    @property
    def is_peer_gone(self) -> bool:
        """Whether the reader's process has ended."""
        return self._mapped.is_peer_gone()

    @property
    def is_replaced(self) -> bool:
        """Whether another writer has taken this one's place."""
        return self._mapped.words[WRITER_WORD] != self.generation

    def line_fileno(self) -> int:
        """Readable when the reader's process has ended, for an event loop."""
        return self._mapped.line_fd

    def write(self, data: bytes | bytearray | memoryview, stamp: Stamp = AS_BYTES) -> bool:
        """Copy a message in; False if the ring is full, and the message is refused and counted.

        Raises:
            CallerError: the message is longer than a slot.
            PeerError: another writer has taken this one's place.
        """
        given = memoryview(data).cast("B")
        if len(given) > self.shape.payload_bytes:
            hint = f"at most {self.shape.payload_bytes}"
            raise CallerError(f"a message of {len(given)} bytes for the ring", hint=hint)
        slot = self.claim()
        if slot is None:
            self.refuse()
            return False
        slot[: len(given)] = given
        self.publish(len(given), stamp)
        return True

    def claim(self) -> memoryview | None:
        """The next slot's payload, to be filled in place and published; None while the ring is full."""
        if (self._head - self._tail) % MODULUS > self._mapped.mask:
            self._tail = self._mapped.words[TAIL_WORD]
            self._mapped.fence()
            if (self._head - self._tail) % MODULUS > self._mapped.mask:
                return None
        return self._mapped.payloads[self._head & self._mapped.mask]

    def claim_array(self, sizes: tuple[int, ...], dtype: str) -> npt.NDArray[np.generic] | None:
        """The next slot as an array to fill; None while the ring is full. `publish_array` takes the same arguments.

        Raises:
            CallerError: the array is longer than a slot, or has more than three dimensions.
        """
        length = array_bytes(sizes, dtype)
        if length > self.shape.payload_bytes or len(sizes) > MOST_DIMENSIONS:
            hint = f"at most {self.shape.payload_bytes} bytes and {MOST_DIMENSIONS} dimensions"
            raise CallerError(f"an array of shape {sizes} and type {dtype} for the ring", hint=hint)
        slot = self.claim()
        return None if slot is None else np.frombuffer(slot[:length], dtype).reshape(sizes)

    def publish_array(self, sizes: tuple[int, ...], dtype: str, *, kind: Kind = Kind.TENSOR) -> None:
        """Let the reader see the array that was filled. Raises: as `publish`."""
        stamp = Stamp(kind=kind, dtype=DTYPES.index(np.dtype(dtype)), sizes=sizes)
        self.publish(array_bytes(sizes, dtype), stamp)

    def publish(self, length: int, stamp: Stamp = AS_BYTES) -> None:
        """Let the reader see the slot that was claimed.

        Raises:
            PeerError: another writer has taken this one's place.
        """
        mapped, place = self._mapped, self._head & self._mapped.mask
        if mapped.words[WRITER_WORD] != self.generation:
            raise PeerError("another writer has taken this one's place", hint="end; what it should do, another does")
        header = HEADER.pack(
            self._head,
            self.generation,
            mapped.words[WRITER_WORD + 1],
            stamp.captured_ns,
            stamp.pos_samples,
            length,
            stamp.kind,
            stamp.dtype,
            len(stamp.sizes),
            *(stamp.sizes + UNUSED)[:MOST_DIMENSIONS],
        )
        covered = header if stamp.kind == Kind.TENSOR else header + mapped.payloads[place][:length]
        mapped.headers[place][:] = header + CHECK.pack(mapped.checksum(covered))
        self._head = (self._head + 1) % MODULUS
        mapped.words[HEAD_WORD] = self._head  # from here on the reader sees it
        mapped.ring()

    def refuse(self, messages: int = 1) -> None:
        """Count what was not written because the ring was full; the next message tells the reader."""
        words = self._mapped.words
        words[WRITER_WORD + 1] = min(words[WRITER_WORD + 1] + messages, MOST_REFUSED)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Until a slot is free; False if the time was over before, or the reader is gone."""
        return self._mapped.wait(lambda: self.claim() is not None, timeout_s)

    def follow(self, line_fd: int) -> None:
        """Another reader has come: watch its line instead."""
        self._mapped.follow(line_fd)

    def close(self) -> None:
        """Use it no more."""
        self._mapped.close()


class Reader:
    """The side that takes messages out."""

    def __init__(self, fds: Fds, shape: RingShape, generation: int, *, fence: Callable[[], None] | None = None) -> None:
        self.shape = shape
        self.generation = generation
        self.damaged = 0  # messages that were passed over: checksum, number or a replaced writer's
        self._mapped = _Mapped(fds, shape, writes=False, fence=fence)
        self._tail = self._mapped.words[TAIL_WORD]
        self._head = self._tail  # as far as it was looked at
        self._newest = 0  # writer's generation
        self._taken: Message | None = None

    @property
    def is_peer_gone(self) -> bool:
        """Whether the writer's process has ended; what it wrote is still to be taken."""
        return self._mapped.is_peer_gone()

    @property
    def is_replaced(self) -> bool:
        """Whether another reader has taken this one's place."""
        return self._mapped.words[READER_WORD] != self.generation

    def fileno(self) -> int:
        """Readable when messages have come, for an event loop; `hush` before taking them."""
        return self._mapped.awaited_fd

    def line_fileno(self) -> int:
        """Readable when the writer's process has ended, for an event loop."""
        return self._mapped.line_fd

    def hush(self) -> None:
        """Take note of the bell; afterwards take messages until there is none."""
        self._mapped.hush()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Until a message is there; False if the time was over before, or the writer is gone and all were taken."""
        return self._mapped.wait(self._is_there, timeout_s)

    def take(self) -> Message | None:
        """The oldest message that was not released, the same one until then; None if there is none.

        Raises:
            PeerError: the writer's index cannot be; the ring is beyond use.
        """
        while self._taken is None and self._is_there():
            self._taken = self._read()
            if self._taken is None:
                self.damaged += 1
                self._move()
        return self._taken

    def release(self) -> None:
        """Give the slot of the message that was taken back to the writer."""
        assert self._taken is not None, "nothing was taken"
        self._taken = None
        self._move()

    def follow(self, line_fd: int) -> None:
        """Another writer has come: watch its line instead."""
        self._mapped.follow(line_fd)

    def close(self) -> None:
        """Use it no more."""
        self._taken = None
        self._mapped.close()

    def _is_there(self) -> bool:
        if self._head != self._tail:
            return True
        self._head = self._mapped.words[HEAD_WORD]
        self._mapped.fence()
        if (self._head - self._tail) % MODULUS > self.shape.slots:
            raise PeerError(f"the ring's writer is at {self._head}, its reader at {self._tail}", hint="make a new ring")
        return self._head != self._tail

    def _read(self) -> Message | None:
        """The message at our index, if it is one."""
        place = self._tail & self._mapped.mask
        header = bytes(self._mapped.headers[place])
        number, generation, refused, captured_ns, pos_samples, length, kind, dtype, dimensions, *sizes = (
            HEADER.unpack_from(header)
        )
        if number != self._tail or length > self.shape.payload_bytes or generation < self._newest or kind not in KINDS:
            return None
        payload = self._mapped.payloads[place][:length]
        covered = header[: HEADER.size] if kind == Kind.TENSOR else header[: HEADER.size] + payload
        if self._mapped.checksum(covered) != CHECK.unpack_from(header, HEADER.size)[0]:
            return None
        self._newest = generation
        stamp = Stamp(KINDS[kind], captured_ns, pos_samples, dtype, tuple(sizes[:dimensions]))
        return Message(number, generation, refused, stamp, payload.toreadonly())

    def _move(self) -> None:
        self._tail = (self._tail + 1) % MODULUS
        self._mapped.words[TAIL_WORD] = self._tail  # from here on the writer may use the slot
        self._mapped.ring()


def array_bytes(sizes: tuple[int, ...], dtype: str) -> int:
    """How long such an array is."""
    return int(np.prod(sizes, dtype=np.int64)) * np.dtype(dtype).itemsize
