"""Scripts of turns, lanes and cores in, what would have become of every job out: the live policy on a simulated clock.

Callers hold their turns in an open loop: the next one is due whether the last was answered or not, and then gives up
what is left of it. When they begin is drawn from the seed and the caller's number alone, so that every order, and every
number of callers, is asked the same. As live, one look ahead of a caller is under way at a time, and a draft ends it.
Units: ns. Threads: pure; the same input gives the same schedule.
What it does not know: caches and memory, what deciding costs, the network. See processor.py for how cores are shared.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING

from antiphon.core.clock import SECOND_NS
from antiphon.core.stamps import Stage
from antiphon.scheduling.job import Claim, Job, Urgency
from antiphon.scheduling.outcome import Ledger
from antiphon.scheduling.simulated_lanes import Lanes, Piece, Site
from antiphon.scheduling.ticket import Ticket

if TYPE_CHECKING:
    from collections.abc import Callable

    from antiphon.scheduling.workload import Slice, Turn, Workload

DRAIN_NS = 10 * SECOND_NS  # for replies that are under way when measuring ends
WANDERS = 0.25  # of a period, by which turns come early or late: callers in step would meet always, or never


def simulate(
    site: Site,
    work: Workload,
    *,
    callers: int,
    measured_ns: int,
    seed: int = 0,
    watch: Callable[[Ticket], None] | None = None,
) -> Ledger:
    """So many callers for one period, which is not counted, and then for `measured_ns`.

    `watch` is told of each ticket that begins.
    """
    return _Simulation(site, work, callers, (work.period_ns, work.period_ns + measured_ns), seed, watch).run()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Script:
    """A turn, and who follows whom."""

    turn: Turn
    first: tuple[int, ...]  # slices that come from outside
    after: tuple[tuple[int, ...], ...]  # for each slice, those that wait for its end
    along: tuple[tuple[int, ...], ...]  # and those that are asked for during it
    unmet: tuple[int, ...]  # for each slice, how many it waits for
    claims: tuple[tuple[int, ...], ...]  # the slices of each

    @classmethod
    def of(cls, turn: Turn) -> _Script:
        slices = turn.slices
        places = range(len(slices))
        unmet = tuple((each.after is not None) + (each.along is not None) for each in slices)
        return cls(
            turn=turn,
            first=tuple(place for place in places if not unmet[place]),
            after=tuple(tuple(mate for mate in places if slices[mate].after == place) for place in places),
            along=tuple(tuple(mate for mate in places if slices[mate].along == place) for place in places),
            unmet=unmet,
            claims=tuple(
                tuple(place for place in places if slices[place].claim == claim)
                for claim in range(1 + max((each.claim for each in slices), default=-1))
            ),
        )


@dataclass(slots=True, eq=False)
class _Held:
    """A turn that a caller holds."""

    caller: int
    script: _Script
    start_ns: int
    unmet: list[int]
    ready_ns: list[int]
    open: list[set[int]]  # for each claim, slices that have not ended; none: it is over, or nobody wants it
    claims: dict[int, Claim] = field(default_factory=dict)  # that have begun
    pieces: dict[int, Piece] = field(default_factory=dict)  # slice -> it waits or runs
    asked_ns: dict[int, int] = field(default_factory=dict)  # claim -> when, of those that wait for a first sound
    shift_ns: dict[int, int] = field(default_factory=dict)  # claim -> how much later its first sound was than recorded


@dataclass(slots=True, kw_only=True)
class _Caller:
    """Their place in time; they come into the middle of the script."""

    draws: random.Random
    phase: float
    offset: int
    held: _Held | None = None


class _Simulation:
    """The events, in order; jobs are on the lanes in between."""

    def __init__(
        self,
        site: Site,
        work: Workload,
        callers: int,
        measured: tuple[int, int],
        seed: int,
        watch: Callable[[Ticket], None] | None,
    ) -> None:
        self._measured = measured
        self._ledger = Ledger(since_ns=measured[0], until_ns=measured[1])
        self._lanes = Lanes(site, ledger=self._ledger, ended=self._ended, reached=self._reached, watch=watch)
        self._period_ns = work.period_ns
        self._scripts = [_Script.of(turn) for turn in work.turns]
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers = count(1)
        self._tickets = count(1)
        self._callers = []
        for number in range(callers):
            draws = random.Random(f"{seed}/{number}")  # noqa: S311 - to be drawn again
            offset = draws.randrange(len(self._scripts))
            self._callers.append(_Caller(draws=draws, phase=draws.random(), offset=offset))

    def run(self) -> Ledger:
        for number in range(len(self._callers)):
            self._plan_turn(number, 0)
        began_ns, ended_ns = self._measured
        self._until(began_ns)
        before_ns = self._lanes.cpu.busy_ns
        self._until(ended_ns)
        self._ledger.busy_core_ns = self._lanes.cpu.busy_ns - before_ns
        self._until(ended_ns + DRAIN_NS)
        for caller in self._callers:
            if caller.held is not None:
                self._leave(caller.held)
        return self._ledger

    def _until(self, limit_ns: int) -> None:
        """Go on to a moment."""
        events, lanes = self._events, self._lanes
        while True:
            mark_ns = lanes.cpu.next_ns()
            at_ns = min(mark_ns, events[0][0]) if events else mark_ns
            if at_ns > limit_ns:
                break
            now_ns = int(at_ns) + (int(at_ns) < at_ns)
            lanes.advance(now_ns)
            while events and events[0][0] <= now_ns:
                heappop(events)[2]()
            lanes.pump()
        lanes.advance(limit_ns)

    def _at(self, when_ns: int, do: Callable[[], None]) -> None:
        heappush(self._events, (when_ns, next(self._numbers), do))

    # Callers.

    def _plan_turn(self, number: int, turn: int) -> None:
        caller = self._callers[number]
        wandering = WANDERS * (caller.draws.random() - 0.5)
        at_ns = max(self._lanes.now_ns, round((turn + caller.phase + wandering) * self._period_ns))
        if at_ns < self._measured[1]:
            self._at(at_ns, lambda: self._begin_turn(number, turn))

    def _begin_turn(self, number: int, turn: int) -> None:
        caller, now_ns = self._callers[number], self._lanes.now_ns
        if caller.held is not None:
            self._leave(caller.held)
        script = self._scripts[(caller.offset + turn) % len(self._scripts)]
        held = caller.held = _Held(
            caller=number + 1,
            script=script,
            start_ns=now_ns,
            unmet=list(script.unmet),
            ready_ns=[now_ns] * len(script.unmet),
            open=[set(places) for places in script.claims],
        )
        self._lanes.speaking += 1
        self._at(now_ns + script.turn.pause_ns, self._falls_silent)
        for place in script.first:
            self._ask_at(held, place, now_ns + script.turn.slices[place].gap_ns)
        self._plan_turn(number, turn + 1)

    def _falls_silent(self) -> None:
        self._lanes.speaking -= 1

    def _leave(self, held: _Held) -> None:
        """The caller takes their next turn; nobody waits for the rest of this one."""
        for claim in range(len(held.open)):
            self._drop(held, claim)

    def _drop(self, held: _Held, claim: int) -> None:
        places, held.open[claim] = held.open[claim], set()
        for place in places:
            piece = held.pieces.pop(place, None)
            if piece is not None:
                self._lanes.drop(piece)
        asked_ns = held.asked_ns.pop(claim, None)
        if asked_ns is not None:
            self._ledger.replied(asked_ns, None)

    # Jobs.

    def _ask_at(self, held: _Held, place: int, when_ns: int) -> None:
        self._at(when_ns, lambda: self._ask(held, place))

    def _ask(self, held: _Held, place: int) -> None:
        """A job is asked for, unless nobody wants it any more."""
        each = held.script.turn.slices[place]
        if place not in held.open[each.claim]:
            return
        if each.claim not in held.claims and not self._begin_claim(held, each):
            return
        claim = held.claims[each.claim]
        self._change(held, claim, each)
        job = Job(stage=each.stage, estimate_ns=each.estimate_ns, size=each.size)
        piece = Piece(
            held=held,
            place=place,
            slice=each,
            ticket=self._ticket(each, job, claim),
            left=each.work_ns,
            milestones={mate: self._left_then(held, mate, each) for mate in held.script.along[place]},
        )
        held.pieces[place] = piece
        self._lanes.enter(piece)

    def _change(self, held: _Held, claim: Claim, each: Slice) -> None:
        """A claim becomes as urgent as its latest job was; its deadline moves on as sound is made."""
        urgency, deadline_ns = min(claim.urgency, each.urgency), claim.deadline_ns
        # A reply is written from before its first sound until behind it; what was recorded is its last deadline.
        if each.due_ns is not None and each.stage is not Stage.THINK:
            deadline_ns = held.start_ns + each.due_ns
            if each.is_after_sound:
                deadline_ns += held.shift_ns.get(each.claim, 0)
        if (urgency, deadline_ns) == (claim.urgency, claim.deadline_ns):
            return
        claim.urgency, claim.deadline_ns = urgency, deadline_ns
        self._lanes.changed([piece for piece in held.pieces.values() if piece.ticket.claim is claim])

    def _left_then(self, held: _Held, mate: int, each: Slice) -> float:
        """How much of a job is left when another is asked for."""
        return each.work_ns * (1 - held.script.turn.slices[mate].part)

    def _ticket(self, each: Slice, job: Job, claim: Claim) -> Ticket:
        return Ticket(
            number=next(self._tickets),
            lane=each.lane,
            job=job,
            claim=claim,
            since_ns=self._lanes.now_ns,
            estimate_ns=self._lanes.estimates.of(each.lane, job),
            kind=each.kind,
            most=each.most,
            can_yield=each.can_yield,
        )

    def _begin_claim(self, held: _Held, first: Slice) -> bool:
        """A draft ends what was done ahead on its lane; a look ahead is left out while another is under way."""
        ahead = [
            claim
            for claim, begun in held.claims.items()
            if begun.urgency == Urgency.AHEAD
            and held.open[claim]
            and held.script.turn.slices[held.script.claims[claim][0]].lane == first.lane
        ]
        if first.urgency == Urgency.AHEAD and ahead:
            held.open[first.claim] = set()
            return False
        if first.urgency <= Urgency.DRAFT:
            for claim in ahead:
                self._drop(held, claim)
        held.claims[first.claim] = Claim(number=first.claim, caller=held.caller, urgency=first.urgency)
        if first.claim in held.script.turn.sounds:
            held.asked_ns[first.claim] = self._lanes.now_ns
        return True

    def _reached(self, piece: Piece, mate: int) -> None:
        """So much of a reply is written that another job is asked for."""
        assert isinstance(piece.held, _Held)
        self._met(piece.held, mate, self._lanes.now_ns)

    def _ended(self, piece: Piece, *, made_way: bool) -> None:
        held, place, each, now_ns = piece.held, piece.place, piece.slice, self._lanes.now_ns
        assert isinstance(held, _Held)
        if made_way:
            rest = Piece(
                held=held,
                place=place,
                slice=each,
                ticket=self._ticket(each, piece.ticket.job, piece.ticket.claim),
                left=piece.left,
                milestones=piece.milestones,
            )
            held.pieces[place] = rest
            self._lanes.enter(rest)
            return
        del held.pieces[place]
        held.open[each.claim].discard(place)
        if held.script.turn.sounds.get(each.claim) == place:
            self._ledger.replied(held.asked_ns.pop(each.claim), now_ns)
            held.shift_ns[each.claim] = now_ns - held.start_ns - held.script.turn.sound_ns[each.claim]
        for mate in piece.milestones:  # that the sums of work just missed
            self._met(held, mate, now_ns)
        for mate in held.script.after[place]:
            self._met(held, mate, now_ns + held.script.turn.slices[mate].gap_ns)

    def _met(self, held: _Held, place: int, ready_ns: int) -> None:
        """One of what a job waits for has come."""
        held.unmet[place] -= 1
        held.ready_ns[place] = max(held.ready_ns[place], ready_ns)
        if not held.unmet[place]:
            self._ask_at(held, place, held.ready_ns[place])
