"""Three processes on one core and a lock between two of them: how long the urgent one waits for it. Prints ns.

The least urgent takes the lock and lets the others know; the urgent one asks for it; the one in between wants nothing
of it, and computes for BUSY_S. With a plain mutex the holder does not run until that one is done, and so neither does
the urgent one; with PTHREAD_PRIO_INHERIT the holder runs as urgently as who waits for it until it lets go.
Argument: a name of PROTOCOLS. Needs the right to SCHED_FIFO. Linux alone.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import time

PROTOCOLS = {"none": 0, "inherit": 1}  # PTHREAD_PRIO_NONE, PTHREAD_PRIO_INHERIT
PROCESS_SHARED = 1
LOW, MIDDLE, HIGH = 10, 20, 30
BUSY_NS = 400_000_000  # well below what the kernel leaves real-time processes of a second
HELD_NS = 20_000_000
ATTRIBUTE_BYTES, MUTEX_BYTES = 64, 128  # more than any system's

library = ctypes.CDLL(None)


def mutex(protocol: str) -> ctypes.c_char:
    """One that processes share, in memory that they share."""
    attributes = ctypes.create_string_buffer(ATTRIBUTE_BYTES)
    lock = ctypes.c_char.from_buffer(mmap.mmap(-1, MUTEX_BYTES))
    for result in (
        library.pthread_mutexattr_init(attributes),
        library.pthread_mutexattr_setpshared(attributes, PROCESS_SHARED),
        library.pthread_mutexattr_setprotocol(attributes, PROTOCOLS[protocol]),
        library.pthread_mutex_init(ctypes.byref(lock), attributes),
    ):
        assert result == 0, os.strerror(result)
    return lock


def compute(for_ns: int) -> None:
    """As much of the processor's time, whoever interrupts."""
    until_ns = time.process_time_ns() + for_ns
    while time.process_time_ns() < until_ns:
        pass


def begin(core: int, priority: int) -> None:
    os.sched_setaffinity(0, {core})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))


def waited_ns(protocol: str) -> int:
    """How long the urgent one waited."""
    core = max(os.sched_getaffinity(0))
    lock = ctypes.byref(mutex(protocol))
    to_low, to_middle, to_high, ready = (os.eventfd(0) for _ in range(4))
    result, answer = os.pipe()

    def low() -> None:
        os.eventfd_read(to_low)
        library.pthread_mutex_lock(lock)
        os.eventfd_write(to_high, 1)  # it runs at once, and comes to the lock
        os.eventfd_write(to_middle, 1)  # so does this one, unless we are more urgent by now
        compute(HELD_NS)
        library.pthread_mutex_unlock(lock)

    def middle() -> None:
        os.eventfd_read(to_middle)
        compute(BUSY_NS)

    def high() -> None:
        os.eventfd_read(to_high)
        began_ns = time.monotonic_ns()
        library.pthread_mutex_lock(lock)
        os.write(answer, str(time.monotonic_ns() - began_ns).encode())
        library.pthread_mutex_unlock(lock)

    children = []
    for work, priority in ((low, LOW), (middle, MIDDLE), (high, HIGH)):
        child = os.fork()
        if not child:
            try:
                begin(core, priority)
                os.eventfd_write(ready, 1)
                work()
            finally:
                os._exit(0)
        children.append(child)
    began = 0
    while began < len(children):
        began += os.eventfd_read(ready)
    time.sleep(0.05)  # until each sleeps on its eventfd
    os.eventfd_write(to_low, 1)
    os.close(answer)
    waited = int(os.read(result, 32))
    for child in children:
        os.waitpid(child, 0)
    return waited


if __name__ == "__main__":
    print(waited_ns(sys.argv[1]))
