"""What deciding costs, counted: times in, a mean and a P99 out. Units: ns. Threads: the event loop's."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field


@dataclass(slots=True)
class Overhead:
    """What deciding costs for each job: the event loop's own processor time, which other threads cannot lengthen."""

    times_ns: deque[int] = field(default_factory=lambda: deque(maxlen=4096))
    total_ns: int = 0
    jobs: int = 0
    _pending_ns: int = 0

    @property
    def p99_ns(self) -> int:
        """Of the latest jobs, the nearest rank."""
        times = sorted(self.times_ns)
        return times[-(len(times) // 100) - 1] if times else 0

    def add(self, took_ns: int) -> None:
        """Another job came, which took so much."""
        self.times_ns.append(self._pending_ns + took_ns)
        self._pending_ns = 0
        self.total_ns += took_ns
        self.jobs += 1

    def more(self, took_ns: int) -> None:
        """Deciding took so much; it counts with the job that comes next."""
        self._pending_ns += took_ns
        self.total_ns += took_ns
