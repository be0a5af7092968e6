"""Many callers on few cores, on a simulated clock: the same policy as live, and the cores shared as the system does."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.scheduling.tickets import LANES as TEST_LANES
from tests.scheduling.tickets import ns, policy, ticket

from antiphon.core.clock import SECOND_NS
from antiphon.core.stamps import Stage
from antiphon.scheduling.core_shares import Want, paces
from antiphon.scheduling.job import Urgency
from antiphon.scheduling.outcome import outcome_of
from antiphon.scheduling.processor import Processor
from antiphon.scheduling.settings import Order, SchedulingSettings
from antiphon.scheduling.simulated_lanes import Site
from antiphon.scheduling.simulator import simulate
from antiphon.scheduling.ticket import LaneFacts
from antiphon.scheduling.waiting_room import WaitingRoom
from antiphon.scheduling.workload import Slice, Turn, Workload, read_workload

pytestmark = pytest.mark.unit

LANES = (
    LaneFacts(name="recognizer", cores=2, nice=5),
    LaneFacts(name="quick_recognizer", nice=2),
    LaneFacts(name="prosody", nice=5),
    LaneFacts(name="language_model", cores=2, width=64, shares_cores=True, nice=3),
    LaneFacts(name="voice", nice=1),
)


def site(cores=2, **rules):
    return Site(lanes=LANES, rules=SchedulingSettings(**rules), cores=cores)


def outcome(callers, seconds=60, seed=0, **rules):
    ledger = simulate(site(**rules), read_workload(), callers=callers, measured_ns=seconds * SECOND_NS, seed=seed)
    return outcome_of(ledger, order="", callers=callers, cores=2)


def draft(*takes_ms, stage=Stage.RECOGNISE, lane="recognizer", period_ms=2000):
    """A turn of one draft: so many jobs one after the other, and then 10 ms of sound."""
    chain = [
        Slice(
            claim=0, stage=stage, lane=lane, work_ns=ns(ms), urgency=Urgency.DRAFT, after=place - 1 if place else None
        )
        for place, ms in enumerate(takes_ms)
    ]
    sound = Slice(claim=0, stage=Stage.SPEAK, lane="voice", work_ns=ns(10), urgency=Urgency.DRAFT, after=len(chain) - 1)
    turn = Turn(slices=(*chain, sound), sounds={0: len(chain)}, pause_ns=0, sound_ns={0: ns(sum(takes_ms) + 10)})
    return Workload(turns=(turn,), period_ns=ns(period_ms))


# Schedules.


@pytest.mark.parametrize("order", list(Order))
def test_equal_seeds_give_equal_schedules_and_others_others(order):
    def schedule(seed):
        begun = []
        simulate(
            site(order=order),
            read_workload(),
            callers=6,
            measured_ns=10 * SECOND_NS,
            seed=seed,
            watch=lambda one: begun.append((one.started_ns, one.number, one.lane, one.claim.caller)),
        )
        return begun

    assert schedule(1) == schedule(1)
    assert schedule(1) != schedule(2)


def test_a_caller_alone_waits_as_long_as_their_jobs_take():
    ledger = simulate(site(), draft(100, 50), callers=1, measured_ns=20 * SECOND_NS)
    assert len(ledger.replies_ns) in (9, 10, 11)
    assert all(each == pytest.approx(ns(160), abs=10) for each in ledger.replies_ns)


def test_utilisation_is_the_cores_that_jobs_took():
    ledger = simulate(site(), draft(100, 50), callers=1, measured_ns=200 * SECOND_NS)
    found = outcome_of(ledger, order="", callers=1, cores=2)
    assert found.busy == pytest.approx((2 * 150 + 10) / (2 * 2000), rel=0.02)


def test_more_callers_wait_longer_and_keep_the_cores_busier():
    few, many = outcome(2), outcome(10)
    assert few.ready_p95_ms < many.ready_p95_ms
    assert few.busy < many.busy <= 1
    assert few.jobs < many.jobs


def test_whose_caller_goes_on_to_their_next_turn_is_never_answered():
    ledger = simulate(site(), draft(3000, period_ms=1000), callers=1, measured_ns=10 * SECOND_NS)
    assert {inf} == set(ledger.replies_ns[:-1])  # after the last one there is time
    assert ledger.late > 0


def test_an_urgent_order_serves_drafts_better_than_first_come_first_served():
    assert outcome(8).ready_p50_ms < outcome(8, order=Order.FIFO, yielding=False).ready_p50_ms


def test_without_a_scheduler_all_is_begun_as_it_comes():
    found = outcome(4, enabled=False)
    assert found.waits_p95_ms["confirmed"] < outcome(4).waits_p95_ms["confirmed"]
    assert found.jobs < outcome(4).jobs  # nobody makes way


def test_writing_makes_way_for_the_first_chunk_at_a_token():
    """The voice alone needs a core that the model has: with the whole text first it would come 400 ms later."""
    draft_s = {"claim": 0, "urgency": Urgency.DRAFT}
    writing = Slice(
        stage=Stage.THINK, lane="language_model", work_ns=ns(500), due_ns=ns(900), can_yield=True, **draft_s
    )
    chunk = Slice(
        stage=Stage.SPEAK,
        lane="voice",
        work_ns=ns(10),
        estimate_ns=ns(60),
        along=0,
        part=0.2,
        due_ns=ns(150),
        **draft_s,
    )
    turn = Turn(slices=(writing, chunk), sounds={0: 1}, pause_ns=0, sound_ns={0: ns(110)})
    work = Workload(turns=(turn,), period_ns=ns(2000))
    (yielding, stubborn) = (
        simulate(site(yielding=on, overtaking=False), work, callers=1, measured_ns=6 * SECOND_NS).replies_ns[0]
        for on in (True, False)
    )
    assert ns(110) <= yielding <= ns(120)
    assert ns(500) <= stubborn


# Cores.


def test_cores_go_by_niceness_and_a_call_is_as_fast_as_its_slowest_thread():
    lanes = (LaneFacts(name="nice", cores=2, nice=3), LaneFacts(name="plain", cores=1))
    cpu = Processor(2.0, lanes)
    runs = {name: cpu.begin(name, name) for name in ("nice", "plain")}
    cpu.advance(100)
    (slow, quick), busy = paces(2.0, [Want(1, 2, 1.25**-3), Want(1, 1, 1.0)])
    assert cpu.done(runs["plain"]) == pytest.approx(100 * quick)
    assert cpu.done(runs["nice"]) == pytest.approx(100 * slow)
    assert cpu.busy_ns == pytest.approx(100 * busy)


def test_a_batch_gets_on_more_slowly_with_each_reply():
    cpu = Processor(4.0, [LaneFacts(name="model", cores=2, width=9, shares_cores=True)], one_reply_more=0.5)
    runs = [cpu.begin("model", number) for number in range(3)]
    cpu.mark(runs[0], 50, "there")
    assert cpu.next_ns() == pytest.approx(100)
    assert [(runs[0], "there")] == cpu.advance(100)
    assert cpu.busy_ns == pytest.approx(200)


# The waiting room.

tickets = st.lists(
    st.tuples(
        st.sampled_from(sorted(TEST_LANES)),
        st.sampled_from(list(Urgency)),
        st.integers(0, 3000),
        st.none() | st.integers(0, 5000),
        st.integers(0, 300),
    ),
    max_size=14,
)


@settings(deadline=None)
@given(tickets, tickets, st.sampled_from(list(Order)), st.integers(1, 8), st.integers(3000, 9000))
def test_the_few_of_the_waiting_room_lead_to_the_same_choice_as_all(waiting, running, order, cores, now_ms):
    """Whatever came at whatever time: those that matter are among them."""
    rules = policy(cores=cores, order=order)
    room = WaitingRoom(rules)
    all_waiting = []
    for lane, urgency, since_ms, due_ms, takes_ms in sorted(waiting, key=lambda one: one[2]):
        kind, most = ("k", 3) if lane == "recognizer" else (None, 1)
        made = ticket(lane, urgency, since_ms=since_ms, due_ms=due_ms, takes_ms=takes_ms, kind=kind, most=most)
        room.refresh(ns(since_ms))
        room.add(made, ns(since_ms))
        all_waiting.append(made)
    at_work = [
        ticket(lane, urgency, since_ms=since_ms, due_ms=due_ms, takes_ms=takes_ms, started_ms=since_ms + 1)
        for place, (lane, urgency, since_ms, due_ms, takes_ms) in enumerate(running)
        if sum(other[0] == lane for other in running[:place]) < TEST_LANES[lane].width  # no lane ever runs more
    ]
    room.refresh(ns(now_ms))
    expected = rules.choose(ns(now_ms), all_waiting, at_work)
    found = rules.choose(ns(now_ms), room.best(), at_work)
    assert (expected and (expected.ticket, expected.company)) == (found and (found.ticket, found.company))
    ways = [rules.make_way(ns(now_ms), some, at_work) for some in (all_waiting, room.tightest())]
    assert set(map(id, ways[0])) == set(map(id, ways[1]))


def test_the_sides_of_a_recording_scale():
    work = read_workload()
    slower = work.at_speed(dict.fromkeys(Stage, 2.0))
    (one, two) = (
        outcome_of(
            simulate(replace(site(), cores=64), each, callers=1, measured_ns=60 * SECOND_NS),
            order="",
            callers=1,
            cores=64,
        )
        for each in (work, slower)
    )
    assert one.ready_p50_ms < two.ready_p50_ms < 2.1 * one.ready_p50_ms
