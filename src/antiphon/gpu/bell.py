"""The GPU says that a slice has ended -> the lane's thread wakes, and a file descriptor counts it; nothing polls.

`PosixBell` is a semaphore of the C library. CUDA calls its `sem_post` by itself at the end of a slice (`post_address`,
`address`): no Python runs on CUDA's thread, so no lock of Python's holds up what comes next on the stream. The lane's
thread sleeps in `sem_clockwait`, and asyncio or a playout process may watch `Ends`' eventfd for the count.
Units: ns of the monotonic clock. Threads: `ring` from any, `wait` from one.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
import threading
import time

SECOND_NS = 1_000_000_000
_SEMAPHORE_BYTES = 32  # sem_t of glibc and musl on 64 bits
_CLOCK_MONOTONIC = 1


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class PosixBell:
    """Rung by CUDA itself, or from Python.

    Raises:
        OSError: the C library has no such semaphores.
    """

    def __init__(self) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        try:
            self._post, self._timed_wait = library.sem_post, library.sem_clockwait
        except AttributeError as error:
            raise OSError(errno.ENOSYS, "the C library has no sem_clockwait") from error
        self._library = library
        self._memory = ctypes.create_string_buffer(_SEMAPHORE_BYTES)
        self.address = ctypes.addressof(self._memory)  # what post_address is to be called with
        self.post_address = ctypes.cast(self._post, ctypes.c_void_p).value or 0
        self._pointer = ctypes.c_void_p(self.address)
        if library.sem_init(self._pointer, 0, 0):
            raise OSError(ctypes.get_errno(), "sem_init")

    def ring(self) -> None:
        self._post(self._pointer)

    def wait(self, timeout_ns: int | None) -> bool:
        if timeout_ns is None:
            while self._library.sem_wait(self._pointer):
                if ctypes.get_errno() != errno.EINTR:
                    raise OSError(ctypes.get_errno(), "sem_wait")
        else:
            until = _Timespec(*divmod(time.monotonic_ns() + max(0, timeout_ns), SECOND_NS))
            while self._timed_wait(self._pointer, _CLOCK_MONOTONIC, ctypes.byref(until)):
                if ctypes.get_errno() == errno.ETIMEDOUT:
                    return False
                if ctypes.get_errno() != errno.EINTR:
                    raise OSError(ctypes.get_errno(), "sem_clockwait")
        while self._library.sem_trywait(self._pointer) == 0:  # one wake-up for all that has happened by now
            pass
        return True

    def close(self) -> None:
        """The memory stays until nobody refers to the bell: CUDA may still ring."""


class ThreadBell:
    """Where there are no such semaphores: rung from Python alone."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def ring(self) -> None:
        self._event.set()

    def wait(self, timeout_ns: int | None) -> bool:
        rang = self._event.wait(None if timeout_ns is None else max(0, timeout_ns) / SECOND_NS)
        self._event.clear()
        return rang

    def close(self) -> None:
        self._event.set()


def make_bell() -> PosixBell | ThreadBell:
    """The best there is."""
    if sys.platform != "linux":
        return ThreadBell()
    try:
        return PosixBell()
    except OSError:
        return ThreadBell()


class Ends:
    """An eventfd that counts ended slices, for a loop that watches file descriptors; Linux alone.

    Raises:
        OSError: the system has no eventfd, or no more of them.
    """

    def __init__(self) -> None:
        if sys.platform != "linux":
            raise OSError(errno.ENOSYS, "eventfd is for Linux alone")
        self.descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def add(self, number: int) -> None:
        """So many slices have ended."""
        if number:
            os.eventfd_write(self.descriptor, number)

    def take(self) -> int:
        """How many have ended since it was last asked; 0: none."""
        try:
            return os.eventfd_read(self.descriptor)
        except BlockingIOError:
            return 0

    def close(self) -> None:
        os.close(self.descriptor)
