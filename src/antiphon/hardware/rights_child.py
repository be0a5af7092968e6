"""Run as a process of its own: tries what its command line names, writes what was granted, and is gone.

    python -I rights_child.py FIFO_PRIORITIES NICE_VALUES SCHED_SETATTR

The first two are lists of numbers with commas, tried in order until one is granted; the last is the number of the
system call, or 0. Writes one line of JSON: {"fifo": 99, "nice": -20, "deadline": "granted"}; 0 means that none was
granted, and `deadline` is else the name of the error. Whatever is granted is given back at once. Imports nothing of
Antiphon, so that it starts within a few hundredths of a second.
"""

import ctypes
import errno
import json
import os
import struct
import sys

SCHED_DEADLINE = 6
MS_NS = 1_000_000


def try_fifo(priorities: list[int]) -> int:
    """The first priority that is granted; back to ordinary scheduling at once."""
    for priority in priorities:
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
        except OSError:
            continue
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        return priority
    return 0


def try_nice(values: list[int]) -> int:
    """The first nice value that is granted; a child that ends soon need not give it back."""
    for value in values:
        try:
            os.setpriority(os.PRIO_PROCESS, 0, value)
        except OSError:
            continue
        return value
    return 0


def try_deadline(call: int) -> str:
    """A tenth of one core; last of all, since a thread under SCHED_DEADLINE is refused other real-time policies."""
    if not call:
        return "ENOSYS"
    size = 48  # of the structure's first version, which every kernel with SCHED_DEADLINE takes
    attributes = struct.pack("=IIQiIQQQ", size, SCHED_DEADLINE, 0, 0, 0, MS_NS, 10 * MS_NS, 10 * MS_NS)
    library = ctypes.CDLL(None, use_errno=True)
    if library.syscall(ctypes.c_long(call), 0, attributes, 0) == 0:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        return "granted"
    return errno.errorcode.get(ctypes.get_errno(), "unknown")


def main() -> None:
    """Try in an order in which no attempt hinders the next."""
    fifo, nice, call = sys.argv[1:4]
    granted = {
        "fifo": try_fifo([int(number) for number in fifo.split(",") if number]),
        "nice": try_nice([int(number) for number in nice.split(",") if number]),
        "deadline": try_deadline(int(call)),
    }
    sys.stdout.write(json.dumps(granted) + "\n")


if __name__ == "__main__":
    main()
