"""Who waits and what runs in, what begins next and who makes way out. All of it is decided here, on any clock.

Rank: the more urgent class first (job.Urgency); within a class the side that is below its share; then the least
laxity, which is deadline - now - estimate; then who came first. Two things move a job between classes: whoever can wait
longer than `ample_ms` counts as working ahead at most, and every `patience_ms` of waiting is one step up, so that
nobody waits for ever.
Start: the best in rank whose lane is free and whose cores are. No core lies idle for the sake of a better one that
cannot begin, unless that one is late or has waited for `patience_ms`: then nobody of its class or below begins before
it. Cores on which only lesser jobs run, on lanes that the system treats as lesser (nice), count as free: the system
takes them away in that moment. Jobs that can yield are asked to, at their next token, by a better one that cannot
begin otherwise.
Units: ns. Threads: pure; the same input gives the same decision.
What it does not know: threads, models, what an engine does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from antiphon.core.clock import MILLISECOND_NS
from antiphon.scheduling.batching import Companion, company
from antiphon.scheduling.job import Urgency
from antiphon.scheduling.settings import Order
from antiphon.scheduling.shares import SIDES, Usage

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from antiphon.scheduling.job import Claim, Job
    from antiphon.scheduling.settings import SchedulingSettings

# When work without a deadline of its own is wanted, after it was asked for.
WANTED_WITHIN_NS = {
    Urgency.PLAYBACK: 10 * MILLISECOND_NS,
    Urgency.CONFIRMED: 100 * MILLISECOND_NS,
    Urgency.DRAFT: 150 * MILLISECOND_NS,  # people leave about 200 ms between turns
    Urgency.AHEAD: 400 * MILLISECOND_NS,
    Urgency.BACKGROUND: 5000 * MILLISECOND_NS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneFacts:
    """How an engine takes work."""

    name: str
    width: int = 1  # jobs at once
    cores: int = 1  # that one job computes on
    shares_cores: bool = False  # all of its jobs compute on the same cores, as one batch
    nice: int = 0  # how much the system prefers others' threads


@dataclass(slots=True, kw_only=True, eq=False)
class Ticket:
    """A job on its way: it waits, then it runs."""

    number: int
    lane: str
    job: Job
    claim: Claim
    since_ns: int  # when it was asked for; for the rest of a job that made way, when that was
    estimate_ns: int
    kind: Hashable = None  # jobs of one kind may run as one call
    most: int = 1  # of them
    can_yield: bool = False
    started_ns: int = 0

    @property
    def deadline_ns(self) -> int:
        """By when it is wanted."""
        for own in (self.job.deadline_ns, self.claim.deadline_ns):
            if own is not None:
                return own
        return self.since_ns + WANTED_WITHIN_NS[self.claim.urgency]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What begins now."""

    ticket: Ticket
    company: tuple[Ticket, ...] = ()  # that go with it, in one call
    passed: tuple[tuple[Ticket, str], ...] = ()  # better in rank, and why they do not begin


@dataclass(slots=True, kw_only=True)
class Policy:
    """The rules, and what they remember: how the cores were shared lately."""

    rules: SchedulingSettings
    cores: int
    lanes: Mapping[str, LaneFacts]
    usage: Usage = field(default_factory=Usage)
    hear_share: float = 0.6  # of the moment; see shares.hear_share
    _known: dict[Ticket, tuple[int, int]] | None = None  # class and laxity, while one decision asks for them often

    def choose(self, now_ns: int, waiting: Iterable[Ticket], running: Sequence[Ticket]) -> Choice | None:
        """What begins now, if anything does; ask again until nothing does."""
        self._known = {}
        try:
            return self._choose(now_ns, waiting, running)
        finally:
            self._known = None

    def make_way(self, now_ns: int, waiting: Sequence[Ticket], running: Sequence[Ticket]) -> tuple[Ticket, ...]:
        """Who is to yield at the next border: lesser jobs that can, in the way of a better one."""
        if not self.rules.yielding or not any(one.can_yield for one in running):
            return ()
        self._known = {}
        try:
            return self._make_way(now_ns, waiting, running)
        finally:
            self._known = None

    def _choose(self, now_ns: int, waiting: Iterable[Ticket], running: Sequence[Ticket]) -> Choice | None:
        passed: list[tuple[Ticket, str]] = []
        in_order = sorted(waiting, key=lambda ticket: self.rank(ticket, now_ns))
        kept: int | None = None  # the class for which the cores are kept free
        somebody_can_yield = self.rules.yielding and any(one.can_yield for one in running)
        made_way_for: list[Ticket] = []  # those for whom cores are about to be given up, a token at a time
        for ticket in in_order:
            if kept is not None and self.urgency(ticket, now_ns) >= kept:
                return None
            obstacle = self.obstacle(ticket, running, now_ns)
            if not obstacle and any(self._goes_before(better, ticket, now_ns) for better in made_way_for):
                continue  # else of two that write together the first to stop would be back before the second stops
            if not obstacle:
                together = self._company(ticket, in_order, running, now_ns)
                return Choice(ticket=ticket, company=together, passed=tuple(passed))
            passed.append((ticket, obstacle))
            if somebody_can_yield and self._in_the_way(ticket, running, now_ns):
                made_way_for.append(ticket)
            if kept is None and self._keeps_cores(ticket, running, now_ns):
                kept = self.urgency(ticket, now_ns)
        return None

    def _make_way(self, now_ns: int, waiting: Sequence[Ticket], running: Sequence[Ticket]) -> tuple[Ticket, ...]:
        asked: list[Ticket] = []
        for ticket in waiting:
            if self.obstacle(ticket, running, now_ns):
                asked += [one for one in self._in_the_way(ticket, running, now_ns) if one not in asked]
        # Words that are read beside a reply that is written slow down each of its tokens.
        asked += [
            one for one in running if one.can_yield and one not in asked and self._slows_a_better(one, running, now_ns)
        ]
        return tuple(asked)

    def urgency(self, ticket: Ticket, now_ns: int) -> int:
        """Its class at this moment."""
        return self._standing(ticket, now_ns)[0]

    def _laxity_ns(self, ticket: Ticket, now_ns: int) -> int:
        return self._standing(ticket, now_ns)[1]

    def _standing(self, ticket: Ticket, now_ns: int) -> tuple[int, int]:
        """Its class and its laxity; within one decision worked out once."""
        if self._known is None:
            return self._worked_out(ticket, now_ns)
        known = self._known.get(ticket)
        if known is None:
            known = self._known[ticket] = self._worked_out(ticket, now_ns)
        return known

    def _worked_out(self, ticket: Ticket, now_ns: int) -> tuple[int, int]:
        laxity_ns = ticket.deadline_ns - now_ns - ticket.estimate_ns
        urgency = int(ticket.claim.urgency)
        if laxity_ns > self.rules.ample_ms * MILLISECOND_NS:
            urgency = max(urgency, Urgency.AHEAD)
        waited_ns = 0 if ticket.started_ns else now_ns - ticket.since_ns
        return max(int(Urgency.PLAYBACK), urgency - waited_ns // (self.rules.patience_ms * MILLISECOND_NS)), laxity_ns

    def rank(self, ticket: Ticket, now_ns: int) -> tuple[float, ...]:
        """Less is better."""
        match self.rules.order:
            case Order.FIFO:
                return (ticket.number,)
            case Order.STATIC:
                return (ticket.claim.urgency, ticket.number)
            case Order.EDF:
                return (ticket.deadline_ns, ticket.number)
        beyond = self.rules.shares and self.usage.is_beyond(SIDES[ticket.job.stage], self.hear_share)
        return (self.urgency(ticket, now_ns), beyond, self._laxity_ns(ticket, now_ns), ticket.number)

    def obstacle(self, ticket: Ticket, running: Sequence[Ticket], now_ns: int) -> str:
        """Why it cannot begin now; "" if it can."""
        lane = self.lanes[ticket.lane]
        beside = [other for other in running if other.lane == ticket.lane]
        if len(beside) >= lane.width:
            return f"{ticket.lane} is at work for others"
        if lane.shares_cores and beside:  # it joins them
            if any(self._is_better(other, ticket, now_ns) for other in beside):
                return f"{ticket.lane} is at work for somebody more urgent"
            return ""
        taken = self._taken(ticket, running, now_ns)
        if taken and taken + lane.cores > self.cores:
            return f"{taken} of {self.cores} cores are taken, it needs {min(lane.cores, self.cores)}"
        return ""

    def _taken(self, ticket: Ticket, running: Sequence[Ticket], now_ns: int) -> int:
        """The cores that others keep from it."""
        shared: dict[str, int] = {}
        taken = 0
        for other in running:
            lane = self.lanes[other.lane]
            if self._gives_way(other, ticket, now_ns):
                continue
            if lane.shares_cores:
                shared[other.lane] = lane.cores
            else:
                taken += lane.cores
        return taken + sum(shared.values())

    def _gives_way(self, other: Ticket, ticket: Ticket, now_ns: int) -> bool:
        """Whether the system will take the cores from `other` for `ticket`."""
        if not self.rules.overtaking or self.lanes[other.lane].nice <= self.lanes[ticket.lane].nice:
            return False
        return self._is_better(ticket, other, now_ns)

    def _is_better(self, one: Ticket, other: Ticket, now_ns: int) -> bool:
        """Whether one is clearly to go before the other, whatever the shares are."""
        if self.rules.order is Order.FIFO:
            return False
        urgency, others = self.urgency(one, now_ns), self.urgency(other, now_ns)
        return urgency < others

    def _keeps_cores(self, ticket: Ticket, running: Sequence[Ticket], now_ns: int) -> bool:
        """Whether cores are to be left idle until it can begin: it is late, or has waited too long for them."""
        if self.rules.order is not Order.LAXITY:  # the others are as the books have them
            return False
        if sum(other.lane == ticket.lane for other in running) >= self.lanes[ticket.lane].width:
            return False  # it waits for its engine, not for cores
        has_waited = now_ns - ticket.since_ns >= self.rules.patience_ms * MILLISECOND_NS
        is_late = ticket.claim.urgency <= Urgency.DRAFT and self._laxity_ns(ticket, now_ns) < 0
        return has_waited or is_late

    def _in_the_way(self, ticket: Ticket, running: Sequence[Ticket], now_ns: int) -> Sequence[Ticket]:
        """Who has to yield for it to begin: one, if that is enough, or all that can and should; none, if in vain."""
        lesser = [one for one in running if one.can_yield and self._goes_before(ticket, one, now_ns)]
        for some in (*([one] for one in lesser), lesser):
            if not self.obstacle(ticket, [other for other in running if other not in some], now_ns):
                return some
        return ()

    def _goes_before(self, ticket: Ticket, runner: Ticket, now_ns: int) -> bool:
        """Whether a runner should yield to who waits: a better class, or clearly less time to wait in the same."""
        if self.rules.order is Order.FIFO:
            return False
        urgency, others = self.urgency(ticket, now_ns), self.urgency(runner, now_ns)
        margin_ns = self.rules.margin_ms * MILLISECOND_NS
        sooner = self._laxity_ns(ticket, now_ns) + margin_ns < self._laxity_ns(runner, now_ns)
        return urgency < others or (urgency == others and sooner)

    def _slows_a_better(self, runner: Ticket, running: Sequence[Ticket], now_ns: int) -> bool:
        if not self.lanes[runner.lane].shares_cores:
            return False
        return any(other.lane == runner.lane and self._is_better(other, runner, now_ns) for other in running)

    def _company(
        self, ticket: Ticket, in_order: Sequence[Ticket], running: Sequence[Ticket], now_ns: int
    ) -> tuple[Ticket, ...]:
        if ticket.most <= 1 or not self.rules.batching:
            return ()
        others = [
            other
            for other in in_order
            if other is not ticket
            and other.lane == ticket.lane
            and other.kind == ticket.kind
            and self.obstacle(other, [*running, ticket], now_ns)  # else it begins at once, on another worker
        ]
        companions = [Companion(item=other, laxity_ns=self._laxity_ns(other, now_ns)) for other in others]
        first = Companion(item=ticket, laxity_ns=self._laxity_ns(ticket, now_ns))
        return company(first, companions, most=ticket.most, alone_ns=ticket.estimate_ns)
