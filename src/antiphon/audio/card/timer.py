"""A moment of the monotonic clock -> a file descriptor that is readable from then on: poll() itself counts in ms.

Units: ns. Threads: one. Linux alone.
"""

from __future__ import annotations

import ctypes
import errno
import os
from contextlib import suppress

from antiphon.core.clock import SECOND_NS
from antiphon.core.errors import MachineError

CLOCK_MONOTONIC = 1
ABSOLUTE = 1
FLAGS = os.O_NONBLOCK | os.O_CLOEXEC if hasattr(os, "O_NONBLOCK") else 0


class _Moment(ctypes.Structure):
    """struct itimerspec: no interval, the moment."""

    _fields_ = (
        ("interval_s", ctypes.c_long),
        ("interval_ns", ctypes.c_long),
        ("seconds", ctypes.c_long),
        ("nanoseconds", ctypes.c_long),
    )


class Timer:
    """One of the kernel's.

    Raises:
        MachineError: there is none to be had.
    """

    def __init__(self) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        try:
            self.fd: int = library.timerfd_create(CLOCK_MONOTONIC, FLAGS)
            self._set = library.timerfd_settime
        except AttributeError:
            self.fd = -1
            ctypes.set_errno(errno.ENOSYS)
        if self.fd < 0:
            raise MachineError(f"there is no timer to wake by: {os.strerror(ctypes.get_errno())}", hint="use Linux")
        self._moment = _Moment()
        self._address = ctypes.byref(self._moment)

    def set(self, at_ns: int | None) -> None:
        """Ring then, at once if that is over; None: not at all."""
        seconds, rest = (0, 0) if at_ns is None else divmod(max(at_ns, 1), SECOND_NS)
        self._moment.seconds, self._moment.nanoseconds = seconds, rest
        self._set(self.fd, ABSOLUTE, self._address, None)

    def hush(self) -> None:
        """Take note of it."""
        with suppress(BlockingIOError):
            os.read(self.fd, 8)

    def close(self) -> None:
        """Use it no more."""
        os.close(self.fd)
