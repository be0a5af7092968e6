"""How the system treats a thread: how willingly it gives way (nice), and on which cores it may run.

Both are set by the thread for itself, and the threads that a library starts from it inherit them. Whoever is not Linux,
or is refused, runs as before; what was refused is returned in words, to be said once.
Threads: call on the thread that is meant.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def settle_thread(*, nice: int, cores: Sequence[int] = ()) -> tuple[str, ...]:
    """Give the calling thread this niceness and these cores, none meaning any; what could not be done, in words."""
    if sys.platform != "linux":
        return ("threads of their own priority are for Linux alone",) if nice or cores else ()
    refused = []
    if nice:
        try:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), nice)
        except OSError as error:
            refused.append(f"a niceness of {nice} was refused ({error.strerror})")
    if cores:
        try:
            os.sched_setaffinity(0, cores)
        except OSError as error:
            refused.append(f"the cores {', '.join(map(str, cores))} were refused ({error.strerror})")
    return tuple(refused)
