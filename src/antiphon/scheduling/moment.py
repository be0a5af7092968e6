"""Who waits and what runs at one moment in, what begins and who makes way out: policy.py's rules, worked out.

Decisions of one moment follow each other, and each asks for the same things many times: a job's class and laxity, which
hold for the moment, and whether its cores are free, which depends on its lane and class alone for as long as the same
jobs run. Both are kept, since all of this runs on the event loop, between one caller's sound and the next.
Units: ns. Threads: pure; the same input gives the same decision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from antiphon.core.clock import MILLISECOND_NS
from antiphon.scheduling.batching import Companion, company
from antiphon.scheduling.job import Urgency
from antiphon.scheduling.settings import Order
from antiphon.scheduling.shares import SIDES, Side
from antiphon.scheduling.ticket import Choice

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from antiphon.scheduling.policy import Policy
    from antiphon.scheduling.ticket import LaneFacts, Ticket


# Of what runs: its class, its laxity, its number, itself, its lane.
_Runner: TypeAlias = "tuple[int, int, int, Ticket, LaneFacts]"


class Moment:
    """The decisions of one moment; no claim changes within it."""

    def __init__(self, policy: Policy, now_ns: int) -> None:
        self._policy = policy
        self._rules = policy.rules
        self._now_ns = now_ns
        self.margin_ns = policy.rules.margin_ms * MILLISECOND_NS
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
        held_up: list[Ticket] = []  # who is better in rank and cannot begin
        for ticket in in_order:
            if kept is not None and self.urgency(ticket) >= kept:
                return None
            if room.obstacle(ticket):
                held_up.append(ticket)
                if kept is None and self._keeps_cores(ticket, running):
                    kept = self.urgency(ticket)
            # else of two that write together the first to stop would be back before the second stops
            elif not any(self._goes_before(better, ticket) and room.in_the_way(better) for better in held_up):
                together = self._company(ticket, in_order, running)
                for one in (ticket, *together):  # they wait no more, which may have made them urgent
                    self._known.pop(one, None)
                return Choice(ticket=ticket, company=together)
        return None

    def make_way(self, waiting: Iterable[Ticket], running: Sequence[Ticket]) -> tuple[Ticket, ...]:
        """Who is to yield at the next border: lesser jobs that can, in the way of a better one."""
        room = self._beside(running)
        if not room.yielders:
            return ()
        asked: list[Ticket] = []
        for ticket in waiting:
            if room.obstacle(ticket):
                asked += [one for one in room.in_the_way(ticket) if one not in asked]
        # Words that are read beside a reply that is written slow down each of its tokens.
        asked += [one for one in room.slowing_a_better() if one not in asked]
        return tuple(asked)

    def obstacle(self, ticket: Ticket, running: Sequence[Ticket]) -> str:
        """Why it cannot begin beside these; "" if it can."""
        return self._beside(running).obstacle(ticket)

    def rank(self, ticket: Ticket) -> tuple[float, ...]:
        """Less is better."""
        match self._rules.order:
            case Order.LAXITY:
                urgency, laxity_ns = self.standing(ticket)
                return (urgency, self._had_too_much(SIDES[ticket.job.stage]), laxity_ns, ticket.number)
            case Order.FIFO:
                return (ticket.number,)
            case Order.STATIC:
                return (ticket.claim.urgency, ticket.number)
            case Order.EDF:
                return (ticket.deadline_ns, ticket.number)

    def urgency(self, ticket: Ticket) -> int:
        """Its class at this moment."""
        return self.standing(ticket)[0]

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

    def standing(self, ticket: Ticket) -> tuple[int, int]:
        """Its class and laxity at this moment."""
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
        is_late = ticket.claim.urgency <= Urgency.DRAFT and self.standing(ticket)[1] < 0
        return has_waited or is_late

    def _goes_before(self, ticket: Ticket, runner: Ticket) -> bool:
        """Whether a runner should yield to who waits: a better class, or clearly less time to wait in the same."""
        if self._rules.order is Order.FIFO:
            return False
        (urgency, laxity_ns), (others, others_laxity_ns) = self.standing(ticket), self.standing(runner)
        return urgency < others or (urgency == others and laxity_ns + self.margin_ns < others_laxity_ns)

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
        companions = [Companion(item=other, laxity_ns=self.standing(other)[1]) for other in others]
        first = Companion(item=ticket, laxity_ns=self.standing(ticket)[1])
        return company(first, companions, most=ticket.most, alone_ns=ticket.estimate_ns)


class _Room:
    """What running jobs leave free for one more: the same for all of a lane that are of one class."""

    def __init__(self, policy: Policy, moment: Moment, running: tuple[Ticket, ...]) -> None:
        self.running = running
        self._policy = policy
        self._moment = moment
        self._runners: list[_Runner] = [
            (*moment.standing(one), one.number, one, policy.lanes[one.lane]) for one in running
        ]
        self._obstacles: dict[tuple[str, int], str] = {}
        self._ways: dict[tuple[str, int, int], Sequence[Ticket]] = {}
        # Those that can make way, those that matter least before others.
        rules = policy.rules
        self.yielders: list[_Runner] = []
        if rules.yielding and rules.order is not Order.FIFO:
            self.yielders = [one for one in self._runners if one[3].can_yield]
            self.yielders.sort(key=_standing, reverse=True)

    def obstacle(self, ticket: Ticket) -> str:
        """Why it cannot begin; "" if it can."""
        if not self.running:
            return ""
        key = (ticket.lane, self._moment.urgency(ticket))
        known = self._obstacles.get(key)
        if known is None:
            known = self._obstacles[key] = self._find_obstacle(*key, self._runners)
        return known

    def in_the_way(self, ticket: Ticket) -> Sequence[Ticket]:
        """Who has to yield for it to begin, those that matter least before others; none, if all would be in vain."""
        if not self.yielders:
            return ()
        urgency, laxity_ns = self._moment.standing(ticket)
        least_ns = laxity_ns + self._moment.margin_ns
        count = 0  # of them are lesser: they come first
        for others, others_laxity_ns, *_ in self.yielders:
            if not (urgency < others or (urgency == others and least_ns < others_laxity_ns)):
                break
            count += 1
        if not count:
            return ()
        key = (ticket.lane, urgency, count)
        known = self._ways.get(key)
        if known is None:
            asked = self._least_of(self.yielders[:count], ticket.lane, urgency)
            known = self._ways[key] = [one[3] for one in asked]
        return known

    def slowing_a_better(self) -> list[Ticket]:
        """Those that can make way, on an engine that computes for somebody more urgent with them."""
        best: dict[str, int] = {}
        for urgency, _, _, ticket, lane in self._runners:
            if lane.shares_cores:
                best[ticket.lane] = min(urgency, best.get(ticket.lane, urgency))
        return [one[3] for one in self.yielders if one[3].lane in best and best[one[3].lane] < one[0]]

    def _least_of(self, lesser: Sequence[_Runner], lane: str, urgency: int) -> Sequence[_Runner]:
        """The first of them without whom there is room, less those who are not in the way after all."""
        for enough in range(1, len(lesser) + 1):
            last = lesser[enough - 1]
            if enough < len(lesser) and last[3].lane != lane and last[4].shares_cores and _alike(last, lesser[enough]):
                continue  # as long as its mate stays, their engine keeps its cores
            if self._is_free_without(lesser[:enough], lane, urgency):
                asked = lesser[:enough]
                for one in lesser[: enough - 1]:  # of another engine, it may have been asked in vain
                    if len(asked) == enough and _alike(one, last):
                        continue  # without it this were the one before, and that was not enough
                    others = [other for other in asked if other is not one]
                    if self._is_free_without(others, lane, urgency):
                        asked = others
                return asked
        return ()

    def _is_free_without(self, some: Sequence[_Runner], lane: str, urgency: int) -> bool:
        return not self._find_obstacle(lane, urgency, [other for other in self._runners if other not in some])

    def _find_obstacle(self, name: str, urgency: int, runners: Sequence[_Runner]) -> str:
        lane = self._policy.lanes[name]
        beside = [other for other in runners if other[3].lane == name]
        if len(beside) >= lane.width:
            return f"{name} is at work for others"
        if lane.shares_cores and beside:  # it joins them
            if any(self._moment.is_better(other[0], urgency) for other in beside):
                return f"{name} is at work for somebody more urgent"
            return ""
        if not lane.cores:
            return ""
        taken, cores = self._taken(lane.nice, urgency, runners), self._policy.cores
        if taken and taken + lane.cores > cores:
            return f"{taken} of {cores} cores are taken, it needs {min(lane.cores, cores)}"
        return ""

    def _taken(self, nice: int, urgency: int, runners: Sequence[_Runner]) -> int:
        """The cores that others keep from one of this niceness and class; from lesser ones the system takes them."""
        moment, overtakes = self._moment, self._policy.rules.overtaking
        shared: dict[str, int] = {}
        taken = 0
        for others, _, _, _, lane in runners:
            if overtakes and lane.nice > nice and moment.is_better(urgency, others):
                continue
            if lane.shares_cores:
                shared[lane.name] = lane.cores
            else:
                taken += lane.cores
        return taken + sum(shared.values())


def _standing(one: _Runner) -> tuple[int, int]:
    return one[0], one[1]


def _alike(one: _Runner, other: _Runner) -> bool:
    """To whoever wants their cores."""
    return one[3].lane == other[3].lane and one[0] == other[0]
