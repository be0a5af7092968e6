"""Which jobs run on which lanes in, how fast each gets on and which is the next to reach something out.

Cores are divided between threads as the Linux scheduler divides them: by a weight that falls by 1.25 with each step of
niceness; core_shares.py says what that leaves to calls of several threads. All jobs of a lane get on alike, so a lane
has one clock, which counts the work that each of its jobs has done; where a job reaches something is a mark on it.
A lane that shares its cores runs its jobs as one batch, which takes longer with each of them.
Units: ns, of time and of work; a job that is alone does one of work in one of time. Threads: pure.
What it does not know: caches and memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Generic, TypeVar

from antiphon.scheduling.core_shares import Want, paces

if TYPE_CHECKING:
    from collections.abc import Iterable

    from antiphon.scheduling.ticket import LaneFacts

Item = TypeVar("Item")

WEIGHT_A_STEP = 1.25  # of niceness: the table in Linux's kernel/sched/core.c is this to the power of the step
# A reply more in the language model's batch makes each of its steps longer by this part of one alone: a small model's
# step computes as long as it reads. Two and four replies together added 0.88 and 0.73 of one with two threads, 1.30 and
# 1.04 with one (results/beside.json), the reading of each other's prompts among it.
ONE_REPLY_MORE = 1.0


@dataclass(slots=True, kw_only=True, eq=False)
class Run(Generic[Item]):
    """A call at work."""

    item: Item
    lane: str
    start: float  # on its lane's clock
    has_ended: bool = False


@dataclass(slots=True, eq=False)
class _LaneClock(Generic[Item]):
    facts: LaneFacts
    weight: float
    jobs: int = 0
    done: float = 0.0  # work that a job did which runs since the start
    rate: float = 0.0
    marks: list[tuple[float, int, Run[Item], object]] = field(default_factory=list)

    def want(self) -> Want:
        """What its jobs want of the cores."""
        calls = min(1, self.jobs) if self.facts.shares_cores else self.jobs
        return Want(calls, self.facts.cores, self.weight)


class Processor(Generic[Item]):
    """Cores, and who computes on them."""

    def __init__(
        self,
        cores: float,
        lanes: Iterable[LaneFacts],
        *,
        uses_nice: bool = True,
        one_reply_more: float = ONE_REPLY_MORE,
    ) -> None:
        self.cores = cores
        self.busy = 0.0  # cores that compute now
        self.busy_ns = 0.0  # core-ns since the start
        self._one_reply_more = one_reply_more
        self._now_ns = 0.0
        self._numbers = count()
        self._is_settled = True
        self._known: dict[tuple[int, ...], tuple[tuple[float, ...], float]] = {}  # jobs of each lane -> paces
        self._lanes: dict[str, _LaneClock[Item]] = {
            lane.name: _LaneClock(lane, WEIGHT_A_STEP**-lane.nice if uses_nice else 1.0) for lane in lanes
        }

    def begin(self, lane: str, item: Item) -> Run[Item]:
        """A call begins now."""
        clock = self._lanes[lane]
        clock.jobs += 1
        self._is_settled = False
        return Run(item=item, lane=lane, start=clock.done)

    def mark(self, run: Run[Item], after: float, what: object) -> None:
        """Tell `what` when the run has done so much work."""
        heappush(self._lanes[run.lane].marks, (run.start + after, next(self._numbers), run, what))

    def done(self, run: Run[Item]) -> float:
        """The work that a run has done."""
        return self._lanes[run.lane].done - run.start

    def end(self, run: Run[Item]) -> None:
        """A call ends now; its marks are forgotten."""
        run.has_ended = True
        self._lanes[run.lane].jobs -= 1
        self._is_settled = False

    def next_ns(self) -> float:
        """When the next mark will be reached as things are; infinite: never."""
        self._settle()
        soonest = float("inf")
        for clock in self._lanes.values():
            marks = clock.marks
            while marks and marks[0][2].has_ended:
                heappop(marks)
            if marks:
                soonest = min(soonest, max(0.0, marks[0][0] - clock.done) / clock.rate)
        return self._now_ns + soonest

    def advance(self, now_ns: float) -> list[tuple[Run[Item], object]]:
        """Compute until then; the marks that were reached, by lane and in order."""
        self._settle()
        passed_ns = now_ns - self._now_ns
        self._now_ns = now_ns
        self.busy_ns += self.busy * passed_ns
        reached = []
        for clock in self._lanes.values():
            if not clock.jobs:
                continue
            clock.done += passed_ns * clock.rate
            marks, limit = clock.marks, clock.done + 1e-3  # a thousandth of a ns: what sums of floats may be off
            while marks and marks[0][0] <= limit:
                _, _, run, what = heappop(marks)
                if not run.has_ended:
                    reached.append((run, what))
        return reached

    def _settle(self) -> None:
        """Divide the cores anew."""
        if self._is_settled:
            return
        self._is_settled = True
        key = tuple(clock.jobs for clock in self._lanes.values())
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = paces(self.cores, [clock.want() for clock in self._lanes.values()])
        found, self.busy = known
        for clock, pace in zip(self._lanes.values(), found, strict=True):
            more = max(0, clock.jobs - 1) if clock.facts.shares_cores else 0
            clock.rate = max(pace, 1e-9) / (1.0 + self._one_reply_more * more)
