"""Engine calls in, their results out, in the order that the policy gives them: the scheduler on the CPU.

Each engine has a lane: its threads, how many calls it takes at once, and how many cores one computes on. Whoever calls
`run` waits until the policy lets the job begin; the call then runs on one of the lane's threads.

Threads: everything happens on one event loop, except the calls themselves. A call that has begun cannot be stopped, but
one that passes borders (tokens, batches of a prompt) is asked there to make way. Waiting jobs are bounded by what the
sessions ask for: a few for each.
"""

from __future__ import annotations

import asyncio
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from time import thread_time_ns
from typing import TYPE_CHECKING, Any, TypeVar

from antiphon.core.clock import MILLISECOND_NS, SECOND_NS
from antiphon.core.errors import EngineError
from antiphon.core.stamps import Stage
from antiphon.scheduling.admission import Pressure
from antiphon.scheduling.border import Border
from antiphon.scheduling.estimates import Estimates
from antiphon.scheduling.job import Urgency, current_claim
from antiphon.scheduling.lanes import CLOSED
from antiphon.scheduling.overhead import Overhead
from antiphon.scheduling.policy import Policy
from antiphon.scheduling.shares import SIDES, Side, Signs, hear_share
from antiphon.scheduling.threads import settle_thread
from antiphon.scheduling.ticket import LaneFacts, Ticket
from antiphon.scheduling.work import Call, Ending, Work, computed, settle

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from antiphon.core.clock import Clock
    from antiphon.scheduling.decisions import Decision
    from antiphon.scheduling.job import Job
    from antiphon.scheduling.moment import Moment
    from antiphon.scheduling.settings import SchedulingSettings

Item = TypeVar("Item")
Result = TypeVar("Result")

_LATELY = 256  # jobs over which waiting is told
_BUSY_WINDOW_NS = 20 * SECOND_NS
_SIGNS_LAST_NS = 250 * MILLISECOND_NS  # what was heard longer ago says nothing of the moment


class CpuScheduler:
    """Decides for all lanes of one process; its `watchers` are told what became of each job."""

    def __init__(self, rules: SchedulingSettings, *, cores: int, clock: Clock) -> None:
        self._clock = clock
        self._lanes: dict[str, LaneFacts] = {}
        self._policy = Policy(rules=rules, cores=cores, lanes=self._lanes)
        self._waiting: dict[int, Work] = {}
        self._running: dict[int, list[Work]] = {}
        self._numbers = count(1)
        self._pumping = False  # a decision is about to be made
        self._pools: dict[str, ThreadPoolExecutor] = {}
        self._closed: set[str] = set()
        self._voices: dict[int, tuple[int, Signs]] = {}
        self._tokens_per_s: tuple[int, float] | None = None  # when, and how fast
        self._waits: deque[tuple[int, int]] = deque(maxlen=_LATELY)  # (when, how long) of what callers waited for
        self._busy: deque[tuple[int, int]] = deque()  # (when, core-ns)
        self.estimates = Estimates()
        self.overhead = Overhead()
        self.watchers: list[Callable[[Decision], None]] = []

    @property
    def rules(self) -> SchedulingSettings:
        """What is decided by."""
        return self._policy.rules

    def adjust(self, rules: SchedulingSettings) -> None:
        """Decide by these from here on."""
        self._policy.rules = rules

    def lane(self, facts: LaneFacts, *, cores: Sequence[int] = ()) -> CpuLane:
        """A lane with threads of its own, on these cores, or on any."""
        self._lanes[facts.name] = facts
        self._pools[facts.name] = ThreadPoolExecutor(
            max_workers=facts.width,
            thread_name_prefix=f"antiphon-{facts.name}",
            initializer=settle_thread_quietly,
            initargs=(facts.nice, tuple(cores)),
        )
        return CpuLane(self, facts.name, self._pools[facts.name])

    def hears(self, caller: int, signs: Signs) -> None:
        """What a caller's microphone gives just now."""
        self._voices[caller] = (self._clock.now_ns(), signs)

    def leaves(self, caller: int) -> None:
        """A conversation is over."""
        self._voices.pop(caller, None)

    def pressure(self, callers: int) -> Pressure:
        """How busy the cores were in the last seconds, and how long replies waited for them."""
        now_ns = self._clock.now_ns()
        since_ns = self._forget_before_window(now_ns)
        busy = sum(core_ns for _, core_ns in self._busy) / (_BUSY_WINDOW_NS * self._policy.cores)
        waits = sorted(wait for at_ns, wait in self._waits if at_ns >= since_ns)
        wait_ns = waits[min(len(waits) - 1, int(0.95 * len(waits)))] if waits else 0
        return Pressure(callers=callers, busy=busy, wait_p95_ms=wait_ns / MILLISECOND_NS)

    def signs(self) -> Signs:
        """What is known of this moment; see shares.py."""
        now_ns = self._clock.now_ns()
        voices = [signs for at_ns, signs in self._voices.values() if now_ns - at_ns < _SIGNS_LAST_NS]
        loudest = max(voices, key=lambda signs: signs.voiced_frames, default=Signs())
        late_ns = [
            now_ns - work.ticket.deadline_ns
            for works in (*self._running.values(), self._waiting.values())
            for work in works
            if SIDES[work.ticket.job.stage] is Side.SPEAK and work.ticket.claim.urgency <= Urgency.DRAFT
        ]
        pace = self._tokens_per_s
        is_recent = pace is not None and now_ns - pace[0] < _SIGNS_LAST_NS
        return replace(
            loudest,
            decode_lag_ms=max(0, *late_ns, 0) / MILLISECOND_NS,
            tokens_per_s=pace[1] if pace and is_recent else None,
        )

    # For the lanes.

    def enter(self, lane: str, job: Job, call: Call) -> Work:
        """A job begins to wait; it may begin to run at once."""
        start_ns = thread_time_ns()
        if lane in self._closed:
            raise EngineError(CLOSED)
        ticket = Ticket(
            number=next(self._numbers),
            lane=lane,
            job=job,
            claim=current_claim(),
            since_ns=self._clock.now_ns(),
            estimate_ns=self.estimates.of(lane, job),
            kind=call.kind,
            most=call.most,
            can_yield=call.can_yield,
        )
        work = Work(ticket, call, asyncio.get_running_loop().create_future(), Border())
        self._waiting[ticket.number] = work
        self._pump_soon()
        work.deciding_ns = thread_time_ns() - start_ns
        return work

    def give_up(self, work: Work) -> None:
        """Whoever asked for it does not want it any more."""
        if self._waiting.pop(work.ticket.number, None) is not None:
            now_ns = self._clock.now_ns()
            work.ticket.started_ns = now_ns
            self._tell(work, now_ns, dropped=True)
        else:
            work.border.ask()

    def close(self, lane: str) -> None:
        """The lane takes no more; what waits for it fails, what runs is waited for."""
        self._closed.add(lane)
        for number in [number for number, work in self._waiting.items() if work.ticket.lane == lane]:
            work = self._waiting.pop(number)
            if not work.future.done():
                work.future.set_exception(EngineError(CLOSED))
        self._pools[lane].shutdown(wait=True, cancel_futures=True)

    # Inside.

    def _forget_before_window(self, now_ns: int) -> int:
        """Keep the load of the last seconds alone; the moment from which it is kept."""
        since_ns = now_ns - _BUSY_WINDOW_NS
        while self._busy and self._busy[0][0] < since_ns:
            self._busy.popleft()
        return since_ns

    def _pump_soon(self) -> None:
        """Decide once all that is ready now has asked: those whose call has just ended, and want the next one."""
        if not self._pumping:
            self._pumping = True
            asyncio.get_running_loop().call_soon(self._pump)

    def _pump(self) -> None:
        """Begin whatever may begin."""
        self._pumping = False
        if not self._waiting:
            return
        start_ns = thread_time_ns()
        now_ns = self._clock.now_ns()
        before = list(self._waiting.values())
        begun = self._chosen(before, now_ns)
        chosen_ns = thread_time_ns()
        for works in begun:
            self._hand_over(works)
        _share(before, deciding_ns=chosen_ns - start_ns)
        if begun:
            _share([work for works in begun for work in works], handing_ns=thread_time_ns() - chosen_ns)

    def _chosen(self, before: list[Work], now_ns: int) -> list[list[Work]]:
        """What begins now, removed from those that wait; those who make way for others are asked to."""
        if len(before) == 1 and not self._running:  # as mostly: there is nothing to choose
            self._waiting.clear()
            self._note_begin(before, now_ns)
            return [before]
        if len({SIDES[work.ticket.job.stage] for work in before}) > 1:  # else there is nobody to share with
            self._policy.hear_share = hear_share(self.signs(), self._policy.rules)
        moment = self._policy.at(now_ns)
        running = [works[0].ticket for works in self._running.values()]
        begun: list[list[Work]] = []
        while self._waiting:
            choice = moment.choose([work.ticket for work in self._waiting.values()], running)
            if choice is None:
                self._note_waiting(moment, running)
                break
            works = [self._waiting.pop(ticket.number) for ticket in (choice.ticket, *choice.company)]
            self._note_begin(works, now_ns)
            begun.append(works)
            running.append(works[0].ticket)
        return begun

    def _note_begin(self, works: list[Work], now_ns: int) -> None:
        for work in works:
            work.ticket.started_ns = now_ns
            work.company = len(works) - 1
            work.urgency = work.ticket.claim.urgency
            if work.urgency <= Urgency.DRAFT:
                self._waits.append((now_ns, now_ns - work.ticket.since_ns))
        self._running[works[0].ticket.number] = works

    def _note_waiting(self, moment: Moment, running: Sequence[Ticket]) -> None:
        for work in self._waiting.values():
            if not work.reason:
                work.reason = moment.obstacle(work.ticket, running) or "others go first"
                work.ahead = tuple(ticket.number for ticket in running)
        if all(works[0].border.is_asked for works in self._running.values() if works[0].ticket.can_yield):
            return  # whoever can make way does so already
        for ticket in moment.make_way([work.ticket for work in self._waiting.values()], running):
            for work in self._running[ticket.number]:
                work.border.ask()

    def _hand_over(self, works: list[Work]) -> None:
        loop, clock = asyncio.get_running_loop(), self._clock
        first = works[0].ticket

        def compute() -> None:
            ending = computed(works, clock.now_ns)
            try:
                loop.call_soon_threadsafe(self._ended, works, ending)
            except RuntimeError:  # the loop was closed over our head: nobody waits any more
                return

        try:
            self._pools[first.lane].submit(compute)
        except RuntimeError:  # the pool was shut down
            del self._running[first.number]
            settle(works, Ending((), EngineError(CLOSED), 0, 0))

    def _ended(self, works: list[Work], ending: Ending) -> None:
        start_ns = thread_time_ns()
        first, ended_ns = works[0].ticket, ending.ended_ns
        del self._running[first.number]
        took_ns = ended_ns - ending.began_ns
        core_ns = took_ns * self._lanes[first.lane].cores
        self._policy.usage.add(SIDES[first.job.stage], core_ns, ended_ns, self._policy.rules)
        self._busy.append((ended_ns, core_ns))
        self._forget_before_window(ended_ns)
        if ending.error is None and not first.can_yield and len(works) == 1:
            self.estimates.learn(first.lane, first.job, first.estimate_ns, took_ns)
        if first.job.stage is Stage.THINK and works[0].border.passed > 1:
            self._tokens_per_s = (ended_ns, works[0].border.passed * SECOND_NS / max(1, ended_ns - first.since_ns))
        learned_ns = thread_time_ns()
        settle(works, ending)
        self._pump_soon()
        _share(works, deciding_ns=learned_ns - start_ns, handing_ns=thread_time_ns() - learned_ns)
        for work in works:
            self._tell(work, ended_ns, failed=ending.error is not None)

    def _tell(self, work: Work, ended_ns: int, *, dropped: bool = False, failed: bool = False) -> None:
        telling_ns = 0
        if self.watchers:
            start_ns = thread_time_ns()
            decision = work.decision(ended_ns, dropped=dropped, failed=failed)
            for watch in self.watchers:
                watch(decision)
            telling_ns = thread_time_ns() - start_ns
        self.overhead.ended(deciding_ns=work.deciding_ns, handing_ns=work.handing_ns, telling_ns=telling_ns)


class CpuLane:
    """One engine's way to the cores; see lanes.Lane."""

    def __init__(self, scheduler: CpuScheduler, name: str, pool: ThreadPoolExecutor) -> None:
        self._scheduler = scheduler
        self._name = name
        self._pool = pool

    async def run(self, job: Job, call: Callable[[], Result]) -> Result:
        result: Result = await self._result(job, Call(compute=lambda _: (call(),)))
        return result

    async def run_yielding(self, job: Job, call: Callable[[Border], Result]) -> Result:
        compute = lambda works: (call(works[0].border),)  # noqa: E731
        result: Result = await self._result(job, Call(compute=compute, can_yield=True))
        return result

    async def run_batch(
        self, job: Job, item: Item, call: Callable[[Sequence[Item]], Sequence[Result]], *, kind: Hashable, most: int
    ) -> Result:
        compute = lambda works: call([work.call.item for work in works])  # noqa: E731
        result: Result = await self._result(job, Call(compute=compute, item=item, kind=kind, most=most))
        return result

    async def load(self, call: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)

    def close(self) -> None:
        self._scheduler.close(self._name)

    async def _result(self, job: Job, call: Call) -> Any:
        work = self._scheduler.enter(self._name, job, call)
        try:
            return await work.future
        except asyncio.CancelledError:
            self._scheduler.give_up(work)
            raise


def _share(works: Sequence[Work], *, deciding_ns: int = 0, handing_ns: int = 0) -> None:
    """Charge these with equal parts."""
    for work in works:
        work.deciding_ns += deciding_ns // len(works)
        work.handing_ns += handing_ns // len(works)


def settle_thread_quietly(nice: int, cores: tuple[int, ...]) -> None:
    """As a pool's initializer, which has nobody to tell; what is refused is found out at the start."""
    settle_thread(nice=nice, cores=cores)
