"""How long jobs took in, how long the next one of its kind will take out.

For each stage and size bucket the last few dozen times are kept, and a high quantile of them is the estimate: a
deadline is missed by the slow ones. Sizes are bucketed by powers of two. How wrong the estimates were is kept as well,
as the ratio of what was taken to what was said.
Units: ns. Threads: one; the scheduler's.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.core.stamps import Stage
    from antiphon.scheduling.job import Job

KEPT = 64  # times per bucket
LEAST = 5  # below which the engine's own guess counts
QUANTILE = 0.8


class Estimates:
    """Learned while jobs run; bounded by the number of stages and size buckets."""

    def __init__(self) -> None:
        self._times: dict[tuple[str, Stage, int], _Times] = {}
        self._known: dict[tuple[str, Stage, int], int] = {}
        self.errors: dict[Stage, deque[float]] = {}  # taken / said, of jobs that had an estimate

    def of(self, lane: str, job: Job) -> int:
        """What the job will probably take."""
        return self._known.get(_bucket(lane, job), job.estimate_ns)

    def learn(self, lane: str, job: Job, said_ns: int, took_ns: int) -> None:
        """A job took so long; it was said to take `said_ns`, 0 if nothing was said."""
        if said_ns > 0:
            self.errors.setdefault(job.stage, deque(maxlen=KEPT)).append(took_ns / said_ns)
        bucket = _bucket(lane, job)
        times = self._times.get(bucket)
        if times is None:
            times = self._times[bucket] = _Times()
        times.add(took_ns)
        if len(times.in_order) >= LEAST:
            self._known[bucket] = quantile(times.in_order, QUANTILE)


class _Times:
    """The latest, by their length as well: sorting them at each job would cost more than all else of an estimate."""

    def __init__(self) -> None:
        self._latest: deque[int] = deque()
        self.in_order: list[int] = []

    def add(self, took_ns: int) -> None:
        if len(self._latest) == KEPT:
            del self.in_order[bisect_left(self.in_order, self._latest.popleft())]
        self._latest.append(took_ns)
        insort(self.in_order, took_ns)


def quantile(times: Sequence[int], part: float) -> int:
    """The time that `part` of these, the shortest first, do not exceed."""
    return times[min(len(times) - 1, int(part * len(times)))]


def _bucket(lane: str, job: Job) -> tuple[str, Stage, int]:
    return lane, job.stage, job.size.bit_length()
