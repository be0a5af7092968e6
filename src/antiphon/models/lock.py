"""A path -> the right to change what lies beside it, held by one process at a time.

The lock belongs to the open file, so the system gives it back when its holder dies, however it dies.
Threads: blocks its caller until the lock is free.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

RETRY_S = 0.2  # Windows has no lock that waits for longer than ten seconds, so every system polls alike

# what a file system says that knows no locks; downloads are renamed into place, so going on is safe, only wasteful
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}
_BUSY = {errno.EACCES, errno.EAGAIN, errno.EDEADLK}


@contextlib.contextmanager
def exclusive(
    path: Path, *, on_wait: Callable[[], None], pause: Callable[[float], None] = time.sleep
) -> Iterator[None]:
    """Hold the lock of `path` inside the block; `on_wait` is called once if another holds it first.

    Raises:
        OSError: `path` cannot be created or opened.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
    try:
        waited = False
        while not _try(descriptor):
            if not waited:
                on_wait()
                waited = True
            pause(RETRY_S)
        yield
    finally:
        os.close(descriptor)


def _try(descriptor: int) -> bool:
    """Whether the lock is ours now, or the file system has none to give."""
    try:
        if sys.platform == "win32":
            import msvcrt  # noqa: PLC0415 - only there

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl  # noqa: PLC0415 - not on Windows

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _BUSY:
            return False
        if error.errno in _NO_LOCKS:
            return True
        raise
    return True
