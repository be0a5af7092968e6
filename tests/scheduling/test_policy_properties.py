"""What holds for every load, by a small loop of its own: jobs take their time, whatever runs beside them."""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.scheduling.tickets import LANES, STAGES, ns

from antiphon.scheduling.batching import ONE_MORE
from antiphon.scheduling.job import Claim, Job, Urgency
from antiphon.scheduling.policy import Policy
from antiphon.scheduling.settings import Order, SchedulingSettings
from antiphon.scheduling.shares import SIDES, Side, Signs, hear_share
from antiphon.scheduling.ticket import LaneFacts, Ticket

pytestmark = pytest.mark.unit

TOKEN_MS = 8
LONGEST_MS = 200  # that a job takes
PATIENCE_MS = 500
KINDS = {"recognizer": "decode"}
MOST = 4


@dataclass(frozen=True, slots=True)
class Wish:
    """A job that is asked for."""

    at_ms: int
    lane: str
    urgency: Urgency = Urgency.DRAFT
    takes_ms: int = 20
    due_ms: int | None = None  # after it was asked for


@dataclass(slots=True, eq=False)
class At:
    """One of them on its way."""

    wish: Wish
    ticket: Ticket
    takes_ms: float
    ends_ms: float = 0.0
    stops: bool = False


@dataclass(slots=True)
class Loop:
    """Runs wishes by a policy; `look` sees each choice, and None when nobody more may begin."""

    policy: Policy
    look: object = None
    now_ms: float = 0.0
    waiting: dict[int, At] = field(default_factory=dict)
    running: dict[int, list[At]] = field(default_factory=dict)
    begun: list[tuple[float, int, int]] = field(default_factory=list)  # (when, wish, how many together)
    waits_ms: dict[int, float] = field(default_factory=dict)  # wish -> its first wait
    _events: list = field(default_factory=list)
    _numbers: count = field(default_factory=lambda: count(1))
    _order: count = field(default_factory=count)

    def run(self, wishes, until_ms=60_000):
        for wish_number, wish in enumerate(wishes):
            self._at(wish.at_ms, ("ask", wish_number, wish))
        while self._events and self._events[0][0] <= until_ms:
            self.now_ms = self._events[0][0]
            while self._events and self._events[0][0] <= self.now_ms:
                self._happens(*heappop(self._events)[2])
            self._pump()
        return self

    @property
    def tickets(self):
        return [at.ticket for at in self.waiting.values()]

    @property
    def at_work(self):
        return [together[0].ticket for together in self.running.values()]

    def _at(self, when_ms, what):
        heappush(self._events, (when_ms, next(self._order), what))

    def _happens(self, what, *rest):
        if what == "ask":
            wish_number, wish = rest
            self._enter(wish_number, wish, wish.takes_ms, self._claim(wish))
            return
        if what == "rest":
            self._enter(*rest)
            return
        (number,) = rest
        together = self.running.get(number)
        if together is None or together[0].ends_ms > self.now_ms:
            return
        del self.running[number]
        first = together[0].ticket
        took_ns = ns(self.now_ms) - first.started_ns
        cores = self.policy.lanes[first.lane].cores
        self.policy.usage.add(SIDES[first.job.stage], took_ns * cores, ns(self.now_ms), self.policy.rules)

    def _claim(self, wish):
        due_ns = None if wish.due_ms is None else ns(self.now_ms + wish.due_ms)
        return Claim(number=0, urgency=wish.urgency, deadline_ns=due_ns)

    def _enter(self, wish_number, wish, takes_ms, claim):
        ticket = Ticket(
            number=next(self._numbers),
            lane=wish.lane,
            job=Job(stage=STAGES[wish.lane], size=wish_number),
            claim=claim,
            since_ns=ns(self.now_ms),
            estimate_ns=ns(takes_ms),
            kind=KINDS.get(wish.lane),
            most=MOST if wish.lane in KINDS else 1,
            can_yield=wish.lane == "model",
        )
        self.waiting[ticket.number] = At(wish, ticket, takes_ms)

    def _pump(self):
        now_ns = ns(self.now_ms)
        while choice := self.policy.choose(now_ns, self.tickets, self.at_work):
            if self.look:
                self.look(self, choice)
            together = [self.waiting.pop(one.number) for one in (choice.ticket, *choice.company)]
            longest_ms = max(at.takes_ms for at in together) * (1 + ONE_MORE * (len(together) - 1))
            for at in together:
                at.ticket.started_ns = max(1, now_ns)
                self.begun.append((self.now_ms, at.ticket.job.size, len(together)))
                self.waits_ms.setdefault(at.ticket.job.size, self.now_ms - at.wish.at_ms)
                at.ends_ms = self.now_ms + longest_ms
            self.running[choice.ticket.number] = together
            self._at(self.now_ms + longest_ms, ("end", choice.ticket.number))
        if self.look:
            self.look(self, None)
        for one in self.policy.make_way(now_ns, self.tickets, self.at_work):
            self._stop(self.running[one.number][0])

    def _stop(self, at):
        """It makes way at its next token; the rest is asked for there."""
        begun_ms = at.ticket.started_ns / 1e6
        stop_ms = begun_ms + TOKEN_MS * (int((self.now_ms - begun_ms) / TOKEN_MS) + 1)
        if at.stops or stop_ms >= at.ends_ms:
            return
        at.stops = True
        rest = Wish(at_ms=0, lane=at.wish.lane, urgency=at.wish.urgency)
        number, claim, rest_ms = at.ticket.job.size, at.ticket.claim, at.ends_ms - stop_ms
        at.ends_ms = stop_ms
        self._at(stop_ms, ("end", at.ticket.number))
        self._at(stop_ms, ("rest", number, rest, rest_ms, claim))


# Wishes.

URGENCIES = (Urgency.CONFIRMED, Urgency.DRAFT, Urgency.AHEAD, Urgency.BACKGROUND)
wish = st.builds(
    Wish,
    at_ms=st.integers(0, 2000),
    lane=st.sampled_from(sorted(LANES)),
    urgency=st.sampled_from(URGENCIES),
    takes_ms=st.integers(1, LONGEST_MS),
    due_ms=st.none() | st.integers(0, 3000),
)
wishes = st.lists(wish, max_size=30)
orders = st.sampled_from(list(Order))


def policy(lanes=LANES, cores=2, **rules):
    return Policy(rules=SchedulingSettings(patience_ms=PATIENCE_MS, **rules), cores=cores, lanes=lanes)


@given(wishes, orders, st.integers(1, 8))
def test_every_job_begins_once_no_more_come(asked, order, cores):
    """All end within the sum of what they take: nothing is forgotten, and nothing waits for what never comes."""
    loop = Loop(policy(cores=cores, order=order)).run(asked)
    assert set(range(len(asked))) == set(loop.waits_ms)
    most_ms = sum(2 * one.takes_ms for one in asked)
    assert all(wait <= most_ms for wait in loop.waits_ms.values())


@settings(max_examples=15)
@given(st.lists(wish, min_size=1, max_size=5), st.sampled_from([Urgency.CONFIRMED, Urgency.DRAFT]))
def test_nobody_starves_beside_those_who_come_again_and_again(asked, urgency):
    """A flow that would fill all cores for ever, in a better class: each still begins after some steps of patience."""
    flow = [Wish(at_ms=number * 40, lane="recognizer", urgency=urgency, takes_ms=30) for number in range(500)]
    lanes = {**LANES, "recognizer": LaneFacts(name="recognizer", cores=2, nice=0)}
    loop = Loop(policy(lanes)).run([*asked, *flow], until_ms=20_000)
    bound_ms = Urgency.BACKGROUND * PATIENCE_MS + 5000 + len(asked) * 2 * LONGEST_MS
    assert all(number in loop.waits_ms for number in range(len(asked)))
    assert all(loop.waits_ms[number] <= bound_ms for number in range(len(asked)))


def test_who_needs_two_cores_begins_though_short_jobs_overlap_for_ever():
    short = [
        Wish(at_ms=20 * number + shift, lane=lane, takes_ms=20)
        for lane, shift in (("prosody", 0), ("voice", 10))
        for number in range(500)
    ]
    loop = Loop(policy()).run([Wish(at_ms=5, lane="recognizer", urgency=Urgency.CONFIRMED), *short], until_ms=10_000)
    assert loop.waits_ms.get(0, 10_000) <= PATIENCE_MS + 40


def test_two_replies_that_are_written_together_make_way_for_somebody_more_urgent():
    rules = policy()
    replies = [Wish(at_ms=0, lane="model", takes_ms=400, due_ms=5000) for _ in range(2)]
    recognition = Wish(at_ms=10, lane="recognizer", urgency=Urgency.CONFIRMED, due_ms=100)
    loop = Loop(rules).run([recognition, *replies])
    assert loop.waits_ms[0] <= TOKEN_MS


# Each moment.


def fits(loop, ticket):
    """Whether a job could begin on cores and a lane that are free, whoever else there is."""
    lane, running = loop.policy.lanes[ticket.lane], loop.at_work
    if sum(other.lane == ticket.lane for other in running) >= lane.width:
        return False
    if lane.shares_cores and any(other.lane == ticket.lane for other in running):
        return False  # it would join others, on their cores
    taken = {other.lane if loop.policy.lanes[other.lane].shares_cores else other.number: other for other in running}
    return lane.cores + sum(loop.policy.lanes[other.lane].cores for other in taken.values()) <= loop.policy.cores


def keeps_cores(loop, ticket):
    """Whether it has waited so long, or is so late, that cores may be kept for it."""
    now_ns = ns(loop.now_ms)
    return now_ns - ticket.since_ns >= ns(PATIENCE_MS) or ticket.deadline_ns - now_ns - ticket.estimate_ns < 0


@given(wishes, orders, st.integers(1, 8))
def test_no_core_is_idle_while_somebody_could_begin_on_it(asked, order, cores):
    """Except for the sake of those that have waited too long for more cores than are free."""

    def look(loop, choice):
        if choice is None and not any(keeps_cores(loop, one) for one in loop.tickets):
            assert not [one for one in loop.tickets if fits(loop, one)]

    Loop(policy(cores=cores, order=order), look).run(asked)


@given(wishes, orders, st.integers(1, 8), st.booleans())
def test_a_lane_never_runs_more_than_its_width(asked, order, cores, overtaking):
    def look(loop, _):
        for name, lane in LANES.items():
            assert sum(other.lane == name for other in loop.at_work) <= lane.width

    Loop(policy(cores=cores, order=order, overtaking=overtaking), look).run(asked)


@given(wishes, orders)
def test_the_same_wishes_begin_at_the_same_moments(asked, order):
    first, second = (Loop(policy(order=order)).run(asked) for _ in range(2))
    assert first.begun == second.begun


# Batches.


hops = st.lists(
    st.builds(
        Wish,
        at_ms=st.sampled_from([0, 10, 60]),
        lane=st.just("recognizer"),
        takes_ms=st.just(50),
        due_ms=st.integers(0, 300),
    ),
    max_size=12,
)


@given(hops)
def test_a_batch_is_never_too_large_nor_breaks_a_deadline_that_would_have_been_met(asked):
    """Whoever is in it ends by their deadline, or no later than if all had gone one after the other."""

    def look(loop, choice):
        if choice is None or not choice.company:
            return
        together, now_ns = (choice.ticket, *choice.company), ns(loop.now_ms)
        assert len(together) <= MOST
        ends_ns = now_ns + choice.ticket.estimate_ns * (1 + ONE_MORE * len(choice.company))
        for place, one in enumerate(together):
            alone_ns = now_ns + one.estimate_ns * (1 + place)
            assert ends_ns <= one.deadline_ns or alone_ns > one.deadline_ns or ends_ns <= alone_ns

    Loop(policy({"recognizer": LaneFacts(name="recognizer", cores=2)}), look).run(asked)


def test_nobody_joins_a_batch_who_could_begin_beside_it():
    lanes = {"recognizer": LaneFacts(name="recognizer", cores=2, width=2)}
    asked = [Wish(at_ms=0, lane="recognizer", takes_ms=50, due_ms=due_ms) for due_ms in (0, 60)]
    assert [(0, 0, 1), (0, 1, 1)] == Loop(policy(lanes, cores=4)).run(asked).begun


# Shares.

RULES = SchedulingSettings()
QUIET = Signs()
BEGINS = Signs(voiced_frames=RULES.voiced_frames, energy_ratio=1.0)
LATE = Signs(decode_lag_ms=RULES.decode_lag_ms)


@pytest.mark.parametrize(
    ("signs", "expected"), [(QUIET, 0.6), (BEGINS, 0.85), (LATE, 0.45)], ids=["quiet", "somebody begins", "late"]
)
@settings(max_examples=10)
@given(st.integers(5, 20), st.integers(5, 20))
def test_while_both_sides_want_all_cores_hearing_has_its_share(signs, expected, hear_ms, speak_ms):
    """Drafts of both sides, each of which asks again when it ends: over 5 s hearing has its share within 3 %."""
    lanes = {name: LaneFacts(name=name, cores=2) for name in ("recognizer", "voice")}
    rules = Policy(rules=RULES, cores=2, lanes=lanes, hear_share=hear_share(signs, RULES))
    took_ms, now_ms, number = dict.fromkeys(Side, 0.0), 0.0, count(1)
    takes_ms = {"recognizer": hear_ms, "voice": speak_ms}

    def asked(lane):
        return Ticket(
            number=next(number),
            lane=lane,
            job=Job(stage=STAGES[lane]),
            claim=Claim(number=0, urgency=Urgency.DRAFT),
            since_ns=ns(now_ms),
            estimate_ns=ns(takes_ms[lane]),
        )

    waiting = [asked("recognizer"), asked("voice")]
    while now_ms < 7000:
        choice = rules.choose(ns(now_ms), waiting, [])
        now_ms += takes_ms[choice.ticket.lane]
        side = SIDES[choice.ticket.job.stage]
        rules.usage.add(side, ns(2 * takes_ms[choice.ticket.lane]), ns(now_ms), RULES)
        took_ms[side] += takes_ms[choice.ticket.lane] if now_ms > 2000 else 0
        waiting = [asked(one.lane) if one is choice.ticket else one for one in waiting]
    assert took_ms[Side.HEAR] / sum(took_ms.values()) == pytest.approx(expected, abs=0.03)
