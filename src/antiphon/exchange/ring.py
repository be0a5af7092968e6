"""Messages from one process to one other, in order, through memory that both map: no copy, no lock, no pickling.

    maker                                   peer
    ring = Ring.make(shape, peer="reads")   reader = open_reader(handle)     # handle.fds came through `pass_fds`
    ring.writer.write(b"...")               while reader.wait(): message = reader.take(); ...; reader.release()

One writer, one reader, each on one thread. The writer fills a slot and then moves its index; the reader looks, and then
moves its own: what is between the indices is whole, whoever is killed at whatever moment. Nothing is lost silently: a
message that does not fit is refused to the writer, counted, and every later message carries the count; what a dead
reader had not released is still there for the next one, its last message perhaps for a second time under the same
number; what does not match its checksum or number is counted and passed over.

A bell (eventfd) rings for every message and for every release, so no wake-up is lost and none needs a fence
(memory_order.py). A line (one socket pair) hangs up when the peer's process ends, however it does: no timeout is waited
for, and no process number can be taken by another. Nothing has a name: what nobody holds any more, the kernel frees.

Units: ns, bytes, messages. Threads: one per side; `wait` blocks, nothing else does. Linux alone.
What it does not know: what the messages mean, and when to start a peer anew.
"""

from __future__ import annotations

import mmap
import os
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, Self, TypeAlias, TypeVar

from antiphon.core.errors import MachineError, PeerError
from antiphon.exchange.ends import Fds, Reader, Writer
from antiphon.exchange.layout import (
    HEAD_WORD,
    MAGIC,
    MAGIC_WORD,
    MODULUS,
    PAYLOAD_WORD,
    READER_WORD,
    SLOTS_WORD,
    TAIL_WORD,
    VERSION,
    VERSION_WORD,
    WRITER_WORD,
    RingShape,
)

Side: TypeAlias = Literal["reads", "writes"]
End = TypeVar("End", Reader, Writer)


@dataclass(frozen=True, slots=True, kw_only=True)
class RingHandle:
    """What a peer needs to open its side: file descriptors that it inherits under the same numbers, and its turn."""

    fds: Fds
    generation: int  # of the side: how often it was given out

    def text(self) -> str:
        """For a command line; `read_handle` reads it."""
        return ",".join(map(str, (*self.fds, self.generation)))


def read_handle(text: str) -> RingHandle:
    """A handle from a command line.

    Raises:
        PeerError: the text is none.
    """
    try:
        memory, filled, freed, line, generation = (int(number) for number in text.split(","))
    except ValueError:
        raise PeerError(f"{text!r} is no ring's handle", hint="five numbers with commas") from None
    return RingHandle(fds=Fds(memory, filled, freed, line), generation=generation)


class Ring:
    """The maker's: its own side, open, and handles for the peer's. Close it, or use it as a context manager."""

    def __init__(self, shape: RingShape, peer: Side, own: Fds, peers_line: socket.socket, words: memoryview) -> None:
        self._shape = shape
        self._peer: Side = peer
        self._own = own
        self._words = words
        self._peers_line: socket.socket | None = peers_line
        self._side = Reader(own, shape, 1) if peer == "writes" else Writer(own, shape, 1)

    @classmethod
    def make(cls, shape: RingShape, *, peer: Side, first: int = 0) -> Ring:
        """A new ring, all of its memory there; `first` is the number of its first message.

        Raises:
            MachineError: not on Linux, or the system has no memory or descriptors left.
        """
        if sys.platform != "linux":
            raise MachineError(f"rings need Linux, this is {sys.platform}", hint="use sound from a client instead")
        try:
            memory = os.memfd_create("antiphon-ring")
            os.posix_fallocate(memory, 0, shape.total_bytes)
            filled, freed = (os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC) for _ in range(2))
            ours, theirs = socket.socketpair()
        except OSError as error:
            raise MachineError(f"a ring of {shape.total_bytes} bytes cannot be made: {error}") from error
        words = memoryview(mmap.mmap(memory, shape.total_bytes)).cast("Q")
        words[MAGIC_WORD], words[VERSION_WORD] = MAGIC, VERSION
        words[SLOTS_WORD], words[PAYLOAD_WORD] = shape.slots, shape.payload_bytes
        words[HEAD_WORD] = words[TAIL_WORD] = first % MODULUS
        words[WRITER_WORD] = words[READER_WORD] = 1
        return cls(shape, peer, Fds(memory, filled, freed, ours.detach()), theirs, words)

    @property
    def writer(self) -> Writer:
        """Our side, where the peer reads."""
        assert isinstance(self._side, Writer)
        return self._side

    @property
    def reader(self) -> Reader:
        """Our side, where the peer writes."""
        assert isinstance(self._side, Reader)
        return self._side

    def handle(self) -> RingHandle:
        """For the peer's process. Once it has been started, call `handed_over`, or its death goes unnoticed."""
        assert self._peers_line is not None
        fds = self._own._replace(line=self._peers_line.fileno())
        word = READER_WORD if self._peer == "reads" else WRITER_WORD
        return RingHandle(fds=fds, generation=self._words[word])

    def handed_over(self) -> None:
        """The peer's process holds its end of the line now; let go of ours of it."""
        if self._peers_line is not None:
            self._peers_line.close()
            self._peers_line = None

    def renew(self) -> RingHandle:
        """The handle for another peer in the place of one that is gone; what was not released waits for it.

        The old one must have been waited for: a process that still runs is refused by its number, but not stopped.
        """
        self.handed_over()
        ours, self._peers_line = socket.socketpair()
        os.close(self._own.line)
        self._own = self._own._replace(line=ours.detach())
        self._side.follow(self._own.line)
        word = READER_WORD if self._peer == "reads" else WRITER_WORD
        self._words[word] += 1
        return self.handle()

    def close(self) -> None:
        """Let go of the memory and hang up; the peer keeps what it has mapped."""
        self.handed_over()
        self._side.close()
        for fd in self._own:
            with suppress(OSError):
                os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_reader(handle: RingHandle) -> Reader:
    """The peer's side, where the maker writes.

    Raises:
        PeerError: the memory holds no ring of ours, or another peer has taken this one's place.
    """
    shape = _shape(handle)
    return _checked(Reader(handle.fds, shape, handle.generation))


def open_writer(handle: RingHandle) -> Writer:
    """The peer's side, where the maker reads.

    Raises:
        PeerError: as open_reader.
    """
    shape = _shape(handle)
    return _checked(Writer(handle.fds, shape, handle.generation))


def _checked(end: End) -> End:
    if end.is_replaced:
        end.close()
        raise PeerError("another process has taken this ring's side", hint="end; what it should do, another does")
    return end


def _shape(handle: RingHandle) -> RingShape:
    try:
        size = os.fstat(handle.fds.memory).st_size
        words = memoryview(mmap.mmap(handle.fds.memory, size)).cast("Q")
    except (OSError, ValueError, TypeError) as error:
        raise PeerError(f"the ring's memory cannot be mapped: {error}") from error
    if (words[MAGIC_WORD], words[VERSION_WORD]) != (MAGIC, VERSION):
        raise PeerError("the memory holds no ring of this version", hint="start both processes from one installation")
    shape = RingShape(slots=words[SLOTS_WORD], payload_bytes=words[PAYLOAD_WORD])
    if shape.total_bytes > size:
        raise PeerError(f"a ring of {shape.total_bytes} bytes in {size}", hint="start both from one installation")
    return shape
