"""What ALSA says went wrong -> what to do about it. Pure.

Numbers are Linux's, negative as the library returns them.
"""

from __future__ import annotations

import errno
from enum import Enum, auto

SUSPENDED = 86  # ESTRPIPE, which errno does not have everywhere
MOST_RESUMES = 40  # asked at every wake-up; a driver that has not woken by then is set going from the beginning


class Remedy(Enum):
    """What to do."""

    WAIT = auto()  # nothing went wrong, nothing is there
    PREPARE = auto()  # an xrun: set it going again
    RESUME = auto()  # the machine slept: ask the driver to go on
    REOPEN = auto()  # it is gone


def remedy(error: int, resumes: int = 0) -> Remedy:
    """For a call's negative result; `resumes` is how often the driver was asked to go on already."""
    number = -error
    if number in {errno.EAGAIN, errno.EINTR}:
        return Remedy.RESUME if resumes and resumes < MOST_RESUMES else Remedy.PREPARE if resumes else Remedy.WAIT
    if number == errno.EPIPE:
        return Remedy.PREPARE
    if number == SUSPENDED:
        return Remedy.RESUME if resumes < MOST_RESUMES else Remedy.PREPARE
    if number == errno.ENOSYS and resumes:  # a driver that cannot resume
        return Remedy.PREPARE
    return Remedy.REOPEN
