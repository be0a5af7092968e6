"""What the scheduler itself costs for each job, in parts: times in, a sum and a P99 for each part out.

Only deciding grows with the rules and the crowd; giving a call to a thread wakes that thread, which is the system's
work; telling depends on who listens. So they are counted apart. A decision falls on all that wait in that moment, and
each of them is charged an equal part of it.
Units: ns of the event loop's own processor time, which other threads cannot lengthen. Threads: the event loop's.
"""

from __future__ import annotations

from collections import deque

KEPT = 4096  # jobs
PARTS = ("deciding", "handing", "telling")


class Account:
    """Of one part."""

    __slots__ = ("times_ns", "total_ns")

    def __init__(self) -> None:
        self.total_ns = 0
        self.times_ns: deque[int] = deque(maxlen=KEPT)  # for each of the latest jobs

    @property
    def p99_ns(self) -> int:
        """Of the latest jobs, the nearest rank."""
        times = sorted(self.times_ns)
        return times[-(len(times) // 100) - 1] if times else 0

    def add(self, took_ns: int) -> None:
        """What one job took."""
        self.total_ns += took_ns
        self.times_ns.append(took_ns)


class Overhead:
    """What each job that has ended, or was given up, cost the event loop."""

    def __init__(self) -> None:
        self.jobs = 0
        self.deciding = Account()  # taking a job in, choosing what begins, noting why others wait, learning at its end
        self.handing = Account()  # its call to a thread, its result to whoever waits
        self.telling = Account()  # counters and traces what became of it

    def ended(self, *, deciding_ns: int, handing_ns: int, telling_ns: int) -> None:
        """A job is over."""
        self.jobs += 1
        self.deciding.add(deciding_ns)
        self.handing.add(handing_ns)
        self.telling.add(telling_ns)

    def part(self, name: str) -> Account:
        """One of PARTS."""
        account: Account = getattr(self, name)
        return account
