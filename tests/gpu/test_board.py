"""Which slice begins where: situations, and that the books add up whatever happens."""

from __future__ import annotations

import random

import pytest

from antiphon.core.clock import MILLISECOND_NS
from antiphon.core.errors import BusyError
from antiphon.core.stamps import Stage
from antiphon.gpu.board import HELD, Board, BoardSettings
from antiphon.gpu.places import Place
from antiphon.gpu.placing import CROWDED, DUE
from antiphon.gpu.slices import Slice
from antiphon.scheduling.job import Claim, Urgency
from antiphon.scheduling.settings import SchedulingSettings

pytestmark = pytest.mark.unit
MS = MILLISECOND_NS
START = 1000 * MS


def board(**settings) -> Board:
    return Board(SchedulingSettings(), BoardSettings(**{"is_cut": True, **settings}))


def step(**what) -> Slice:
    return Slice(**{"stage": Stage.THINK, "body": "decode", "claim": Claim(urgency=Urgency.CONFIRMED), **what})


def hearing(urgency: Urgency = Urgency.AHEAD, **what) -> Slice:
    return Slice(**{"stage": Stage.RECOGNISE, "body": "asr", "claim": Claim(urgency=urgency), **what})


def begun(on: Board, now_ns: int = START) -> list[tuple[str, Place]]:
    return [(work.asked.body, work.place) for work in on.begin(now_ns)]


def test_a_step_alone_has_the_whole_gpu_and_the_next_one_follows_it() -> None:
    on = board()
    for _ in range(3):
        on.ask(step(), START)
    assert [("decode", Place.WHOLE), ("decode", Place.WHOLE)] == begun(on)
    assert 1 == len(on.waiting)


def test_a_step_and_a_recognition_compute_beside_each_other() -> None:
    on = board()
    on.ask(step(), START)
    on.ask(hearing(), START)
    assert [("decode", Place.REPLIES), ("asr", Place.OTHERS)] == begun(on)


def test_without_parts_a_recognition_waits_for_the_step() -> None:
    on = board(is_cut=False)
    on.ask(step(), START)
    on.ask(hearing(), START)
    assert [("decode", Place.WHOLE)] == begun(on)


def test_what_ends_before_the_next_step_has_the_whole_gpu() -> None:
    on = board()
    work = on.ask(step(next_ns=START + 25 * MS), START)
    begun(on)
    on.ended(work.number, START + 6 * MS, 6 * MS)
    on.ask(hearing(estimate_ns=4 * MS), START + 6 * MS)
    assert [("asr", Place.WHOLE)] == begun(on, START + 6 * MS)


def test_what_would_not_has_its_part() -> None:
    on = board()
    work = on.ask(step(next_ns=START + 8 * MS), START)
    begun(on)
    on.ended(work.number, START + 6 * MS, 6 * MS)
    on.ask(hearing(estimate_ns=4 * MS), START + 6 * MS)
    assert [("asr", Place.OTHERS)] == begun(on, START + 6 * MS)


def test_who_takes_the_bandwidth_waits_for_the_step_and_for_one_that_is_due() -> None:
    on = board()
    work = on.ask(step(bandwidth=0.8, next_ns=START + 8 * MS), START)
    hog = on.ask(hearing(bandwidth=0.9, estimate_ns=4 * MS), START)
    assert [("decode", Place.REPLIES)] == begun(on)
    assert CROWDED == hog.reason
    on.ended(work.number, START + 6 * MS, 6 * MS)
    hog.reason = ""
    assert [] == begun(on, START + 6 * MS)
    assert DUE == hog.reason
    assert on.wake_ns == START + 13 * MS


def test_whoever_is_late_waits_for_nobody() -> None:
    on = board()
    on.ask(step(bandwidth=0.8), START)
    on.ask(hearing(bandwidth=0.9, deadline_ns=START - MS), START)
    assert ("asr", Place.OTHERS) in begun(on)


def test_background_stays_back_while_the_memory_is_in_pieces() -> None:
    on = board()
    on.holds_background = True
    held = on.ask(hearing(Urgency.BACKGROUND), START)
    assert [] == begun(on)
    assert HELD == held.reason
    on.holds_background = False
    assert [("asr", Place.WHOLE)] == begun(on)


def test_a_full_queue_gives_room_to_the_more_urgent_alone() -> None:
    on = board(most_waiting=2)
    on.ask(hearing(), START)
    least = on.ask(hearing(Urgency.BACKGROUND), START)
    on.ask(step(), START)
    assert [least] == on.displaced
    with pytest.raises(BusyError):
        on.ask(hearing(Urgency.BACKGROUND), START)


def test_ten_thousand_admissions_and_cancellations_leave_nothing() -> None:
    """Every slice ends once: it ran, was given up, displaced or refused; no body ever runs twice beside itself."""
    rng, on, now_ns = random.Random(4), board(most_waiting=32), START
    ended = refused = taken_back = 0
    for _ in range(10_000):
        now_ns += rng.randrange(2 * MS)
        asked = rng.choice((step, hearing))(
            bucket=rng.choice((1, 2, 4, 8)),
            claim=Claim(urgency=rng.choice(list(Urgency))),
            bandwidth=rng.choice((None, 0.1, 0.9)),
            next_ns=rng.choice((None, now_ns, now_ns + 10 * MS)),
        )
        try:
            on.ask(asked, now_ns)
        except BusyError:
            refused += 1
        if on.waiting and rng.random() < 0.3:
            taken_back += on.give_up(rng.choice(list(on.waiting))) is not None
        list(on.begin(now_ns))
        assert sum(work.asked.body == "asr" for work in on.running.values()) <= 1
        assert sum(work.is_reply for work in on.running.values()) <= 2
        if on.running and rng.random() < 0.8:
            on.ended(min(on.running), now_ns, rng.choice((None, MS)))
            ended += 1
    assert 10_000 == ended + refused + taken_back + len(on.displaced) + len(on.waiting) + len(on.running)
