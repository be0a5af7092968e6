"""Who waits and what runs at one moment in, what begins and who makes way out: policy.py's rules, worked out.

Decisions of one moment follow each other, and each asks for the same things many times: a job's class and laxity, which
hold for the moment, and whether its cores are free, which depends on its lane and class alone for as long as the same
jobs run. Both are kept, since all of this runs on the event loop, between one caller's sound and the next.
Units: ns. Threads: pure; the same input gives the same decision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.core.clock import MILLISECOND_NS
from antiphon.scheduling.batching import Companion, company
from antiphon.scheduling.job import Urgency
from antiphon.scheduling.settings import Order
from antiphon.scheduling.shares import SIDES, Side
from antiphon.scheduling.ticket import Choice

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from antiphon.scheduling.policy import Policy
    from antiphon.scheduling.ticket import Ticket


class Moment:
    """The decisions of one moment; no claim changes within it."""

    def __init__(self, policy: Policy, now_ns: int) -> None:
        self._policy = policy
        self._rules = policy.rules
        self._now_ns = now_ns
        self._known: dict[Ticket, tuple[int, int]] = {}  # class and laxity
        self._room: _Room | None = None
        self._is_beyond: dict[Side, bool] = {}  # its share

    def choose(self, waiting: Iterable[Ticket], running: Sequence[Ticket]) -> Choice | None:
        """What begins now, if anything does; ask again until nothing does."""
        room = self._beside(running)
        in_order = list(waiting)
        if len(in_order) > 1:
            in_order.sort(key=self.rank)
        kept: int | None = None  # the class for which the cores are kept free
        somebody_can_yield = bool(running) and self._rules.yielding and any(one.can_yield for one in running)
        made_way_for: list[Ticket] = []  # those for whom cores are about to be given up, a token at a time
        for ticket in in_order:
            if kept is not None and self.urgency(ticket) >= kept:
                return None
            if room.obstacle(ticket):
                if somebody_can_yield and self._in_the_way(ticket, running):
                    made_way_for.append(ticket)
                if kept is None and self._keeps_cores(ticket, running):
                    kept = self.urgency(ticket)
            # else of two that write together the first to stop would be back before the second stops
            elif not any(self._goes_before(better, ticket) for better in made_way_for):
                together = self._company(ticket, in_order, running)
                for one in (ticket, *together):  # they wait no more, which may have made them urgent
                    self._known.pop(one, None)
                return Choice(ticket=ticket, company=together)
        return None

    def make_way(self, waiting: Iterable[Ticket], running: Sequence[Ticket]) -> tuple[Ticket, ...]:
        """Who is to yield at the next border: lesser jobs that can, in the way of a better one."""
        if not self._rules.yielding or not any(one.can_yield for one in running):
            return ()
        room = self._beside(running)
        asked: list[Ticket] = []
        for ticket in waiting:
            if room.obstacle(ticket):
                asked += [one for one in self._in_the_way(ticket, running) if one not in asked]
        # Words that are read beside a reply that is written slow down each of its tokens.
        asked += [one for one in running if one.can_yield and one not in asked and self._slows_a_better(one, running)]
        return tuple(asked)

    def obstacle(self, ticket: Ticket, running: Sequence[Ticket]) -> str:
        """Why it cannot begin beside these; "" if it can."""
        return self._beside(running).obstacle(ticket)

    def rank(self, ticket: Ticket) -> tuple[float, ...]:
        """Less is better."""
        match self._rules.order:
            case Order.LAXITY:
                urgency, laxity_ns = self._standing(ticket)
                return (urgency, self._had_too_much(SIDES[ticket.job.stage]), laxity_ns, ticket.number)
            case Order.FIFO:
                return (ticket.number,)
            case Order.STATIC:
                return (ticket.claim.urgency, ticket.number)
            case Order.EDF:
                return (ticket.deadline_ns, ticket.number)

    def urgency(self, ticket: Ticket) -> int:
        """Its class at this moment."""
        return self._standing(ticket)[0]

    def is_better(self, urgency: int, others: int) -> bool:
        """Whether one class is clearly to go before the other, whatever the shares are."""
        return self._rules.order is not Order.FIFO and urgency < others

    def _had_too_much(self, side: Side) -> bool:
        known = self._is_beyond.get(side)
        if known is None:
            policy = self._policy
            known = self._rules.shares and policy.usage.is_beyond(side, policy.hear_share)
            self._is_beyond[side] = known
        return known

    def _standing(self, ticket: Ticket) -> tuple[int, int]:
        known = self._known.get(ticket)
        if known is None:
            known = self._known[ticket] = self._worked_out(ticket)
        return known

    def _worked_out(self, ticket: Ticket) -> tuple[int, int]:
        laxity_ns = ticket.deadline_ns - self._now_ns - ticket.estimate_ns
        urgency = int(ticket.claim.urgency)
        if laxity_ns > self._rules.ample_ms * MILLISECOND_NS:
            urgency = max(urgency, Urgency.AHEAD)
        waited_ns = 0 if ticket.started_ns else self._now_ns - ticket.since_ns
        steps = waited_ns // (self._rules.patience_ms * MILLISECOND_NS)
        return max(int(Urgency.PLAYBACK), urgency - steps), laxity_ns

    def _beside(self, running: Sequence[Ticket]) -> _Room:
        """What these leave free; kept until others run."""
        beside = tuple(running)
        if self._room is None or self._room.running != beside:
            self._room = _Room(self._policy, self, beside)
        return self._room

    def _keeps_cores(self, ticket: Ticket, running: Sequence[Ticket]) -> bool:
        """Whether cores are to be left idle until it can begin: it is late, or has waited too long for them."""
        if self._rules.order is not Order.LAXITY:  # the others are as the books have them
            return False
        if sum(other.lane == ticket.lane for other in running) >= self._policy.lanes[ticket.lane].width:
            return False  # it waits for its engine, not for cores
        has_waited = self._now_ns - ticket.since_ns >= self._rules.patience_ms * MILLISECOND_NS
        is_late = ticket.claim.urgency <= Urgency.DRAFT and self._standing(ticket)[1] < 0
        return has_waited or is_late

    def _in_the_way(self, ticket: Ticket, running: Sequence[Ticket]) -> Sequence[Ticket]:
        """Who has to yield for it to begin, those that matter least before others; none, if all would be in vain."""
        lesser = [one for one in running if one.can_yield and self._goes_before(ticket, one)]
        lesser.sort(key=self._standing, reverse=True)
        for enough in range(1, len(lesser) + 1):
            if self._can_begin_without(lesser[:enough], ticket, running):
                asked = lesser[:enough]
                for one in lesser[: enough - 1]:  # of another engine, it may have been asked in vain
                    others = [other for other in asked if other is not one]
                    if self._can_begin_without(others, ticket, running):
                        asked = others
                return asked
        return ()

    def _can_begin_without(self, some: Sequence[Ticket], ticket: Ticket, running: Sequence[Ticket]) -> bool:
        left = tuple(other for other in running if other not in some)
        return not _Room(self._policy, self, left).obstacle(ticket)

    def _goes_before(self, ticket: Ticket, runner: Ticket) -> bool:
        """Whether a runner should yield to who waits: a better class, or clearly less time to wait in the same."""
        if self._rules.order is Order.FIFO:
            return False
        (urgency, laxity_ns), (others, others_laxity_ns) = self._standing(ticket), self._standing(runner)
        sooner = laxity_ns + self._rules.margin_ms * MILLISECOND_NS < others_laxity_ns
        return urgency < others or (urgency == others and sooner)

    def _slows_a_better(self, runner: Ticket, running: Sequence[Ticket]) -> bool:
        if not self._policy.lanes[runner.lane].shares_cores:
            return False
        own = self.urgency(runner)
        return any(other.lane == runner.lane and self.is_better(self.urgency(other), own) for other in running)

    def _company(self, ticket: Ticket, in_order: Sequence[Ticket], running: Sequence[Ticket]) -> tuple[Ticket, ...]:
        if ticket.most <= 1 or not self._rules.batching:
            return ()
        room = _Room(self._policy, self, (*running, ticket))
        others = [
            other
            for other in in_order
            if other is not ticket
            and other.lane == ticket.lane
            and other.kind == ticket.kind
            and room.obstacle(other)  # else it begins at once, on another worker
        ]
        companions = [Companion(item=other, laxity_ns=self._standing(other)[1]) for other in others]
        first = Companion(item=ticket, laxity_ns=self._standing(ticket)[1])
        return company(first, companions, most=ticket.most, alone_ns=ticket.estimate_ns)


class _Room:
    """What running jobs leave free for one more: the same for all of a lane that are of one class."""

    def __init__(self, policy: Policy, moment: Moment, running: tuple[Ticket, ...]) -> None:
        self.running = running
        self._policy = policy
        self._moment = moment
        self._obstacles: dict[tuple[str, int], str] = {}

    def obstacle(self, ticket: Ticket) -> str:
        """Why it cannot begin; "" if it can."""
        if not self.running:
            return ""
        key = (ticket.lane, self._moment.urgency(ticket))
        known = self._obstacles.get(key)
        if known is None:
            known = self._obstacles[key] = self._find_obstacle(*key)
        return known

    def _find_obstacle(self, name: str, urgency: int) -> str:
        lane = self._policy.lanes[name]
        beside = [other for other in self.running if other.lane == name]
        if len(beside) >= lane.width:
            return f"{name} is at work for others"
        if lane.shares_cores and beside:  # it joins them
            if any(self._moment.is_better(self._moment.urgency(other), urgency) for other in beside):
                return f"{name} is at work for somebody more urgent"
            return ""
        taken, cores = self._taken(lane.nice, urgency), self._policy.cores
        if lane.cores and taken and taken + lane.cores > cores:
            return f"{taken} of {cores} cores are taken, it needs {min(lane.cores, cores)}"
        return ""

    def _taken(self, nice: int, urgency: int) -> int:
        """The cores that others keep from one of this niceness and class; from lesser ones the system takes them."""
        shared: dict[str, int] = {}
        taken = 0
        for other in self.running:
            lane = self._policy.lanes[other.lane]
            is_nicer = self._policy.rules.overtaking and lane.nice > nice
            if is_nicer and self._moment.is_better(urgency, self._moment.urgency(other)):
                continue
            if lane.shares_cores:
                shared[other.lane] = lane.cores
            else:
                taken += lane.cores
        return taken + sum(shared.values())
