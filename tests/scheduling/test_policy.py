"""What runs next, situation by situation: times in ms, two cores unless said otherwise."""

from __future__ import annotations

import pytest
from tests.scheduling.tickets import ns, policy, running, ticket

from antiphon.core.stamps import Stage
from antiphon.scheduling.job import Urgency
from antiphon.scheduling.settings import Order
from antiphon.scheduling.shares import Side

pytestmark = pytest.mark.unit

CONFIRMED, DRAFT, AHEAD, BACKGROUND = Urgency.CONFIRMED, Urgency.DRAFT, Urgency.AHEAD, Urgency.BACKGROUND


def first(chosen_by, *waiting, now_ms=0, running=()):
    choice = chosen_by.choose(ns(now_ms), waiting, running)
    return choice.ticket if choice else None


# Order.


def test_a_confirmed_turn_goes_before_a_draft_that_came_first():
    draft, confirmed = ticket("recognizer", DRAFT), ticket("recognizer", CONFIRMED, since_ms=5)
    assert first(policy(), draft, confirmed, now_ms=5) is confirmed


def test_a_draft_that_is_confirmed_while_it_waits_goes_before_others_at_once():
    early, late = ticket("recognizer", DRAFT), ticket("recognizer", DRAFT, since_ms=5)
    assert first(policy(), early, late, now_ms=5) is early
    late.claim.urgency = CONFIRMED
    assert first(policy(), early, late, now_ms=5) is late


def test_within_a_class_the_one_that_can_wait_least_goes_first():
    near_but_short = ticket("recognizer", due_ms=100, takes_ms=10)  # can wait 90
    far_but_long = ticket("recognizer", due_ms=150, takes_ms=100)  # can wait 50
    assert first(policy(), near_but_short, far_but_long) is far_but_long
    assert first(policy(order=Order.EDF), near_but_short, far_but_long) is near_but_short


def test_equals_go_in_the_order_in_which_they_came():
    one, other = ticket("recognizer"), ticket("recognizer")
    assert first(policy(), other, one) is one


def test_a_reply_that_has_sound_for_seconds_is_not_urgent():
    writing_on = ticket("model", CONFIRMED, due_ms=3000, takes_ms=10)
    draft = ticket("recognizer", DRAFT, due_ms=150, takes_ms=90)
    assert first(policy(), writing_on, draft) is draft
    assert first(policy(), writing_on, draft, now_ms=2500) is writing_on  # the draft is urgent too, but not confirmed


def test_whoever_waits_long_enough_comes_before_the_urgent():
    background = ticket("recognizer", BACKGROUND, since_ms=0, due_ms=0)
    draft = ticket("recognizer", DRAFT, since_ms=3999, due_ms=4100)
    assert first(policy(), background, draft, now_ms=3999) is draft
    draft = ticket("recognizer", DRAFT, since_ms=6000, due_ms=6100)
    assert first(policy(), background, draft, now_ms=6000) is background


@pytest.mark.parametrize(("order", "expected"), [(Order.FIFO, 0), (Order.STATIC, 1), (Order.EDF, 2), (Order.LAXITY, 3)])
def test_each_order_has_its_own_first(order, expected):
    waiting = [
        ticket("recognizer", AHEAD, due_ms=900),
        ticket("recognizer", DRAFT, due_ms=800),
        ticket("recognizer", AHEAD, due_ms=100),
        ticket("recognizer", DRAFT, due_ms=500),
    ]
    assert first(policy(order=order), *waiting) is waiting[expected]


# Shares.


def test_between_equals_the_side_that_had_too_much_waits():
    rules = policy()
    rules.usage.add(Side.HEAR, ns(90), ns(0), rules.rules)
    rules.usage.add(Side.SPEAK, ns(10), ns(0), rules.rules)
    hearing = ticket("recognizer", DRAFT, due_ms=50)
    writing = ticket("model", DRAFT, due_ms=100)
    assert first(rules, hearing, writing) is writing
    rules.hear_share = 0.95
    assert first(rules, hearing, writing) is hearing


def test_shares_never_put_a_draft_before_a_confirmed_turn():
    rules = policy()
    rules.usage.add(Side.HEAR, ns(90), ns(0), rules.rules)
    hearing = ticket("recognizer", CONFIRMED, due_ms=50)
    writing = ticket("model", DRAFT, due_ms=10)
    assert first(rules, hearing, writing) is hearing


# Lanes and cores.


def test_a_lane_runs_no_more_at_once_than_it_can():
    assert first(policy(cores=8), ticket("recognizer"), running=[running("recognizer")]) is None


def test_what_needs_more_cores_than_are_free_waits_and_lesser_work_that_fits_begins():
    rules = policy()
    recognition, voice = ticket("recognizer", CONFIRMED), ticket("voice", DRAFT)
    choice = rules.choose(0, [recognition, voice], [running("prosody", CONFIRMED)])
    assert choice is not None
    assert choice.ticket is voice
    why = rules.at(0).obstacle(recognition, [running("prosody", CONFIRMED)])
    assert "1 of 2 cores are taken, it needs 2" == why


def test_an_engine_that_wants_more_cores_than_there_are_runs_when_nothing_else_does():
    assert first(policy(cores=1), ticket("recognizer")) is not None
    assert first(policy(cores=1), ticket("recognizer"), running=[running("voice")]) is None


def test_urgent_work_begins_beside_lesser_work_that_the_system_takes_the_cores_from():
    hop = running("recognizer", AHEAD)
    assert first(policy(), ticket("voice", CONFIRMED), running=[hop]) is not None
    assert first(policy(overtaking=False), ticket("voice", CONFIRMED), running=[hop]) is None
    assert first(policy(), ticket("voice", AHEAD), running=[hop]) is None  # no more urgent
    assert first(policy(), ticket("recognizer", CONFIRMED), running=[running("voice", AHEAD)]) is None  # not nicer


def test_replies_are_written_together_on_the_same_cores():
    assert first(policy(), ticket("model", DRAFT), running=[running("model", DRAFT)]) is not None


def test_reading_ahead_does_not_join_a_reply_that_somebody_waits_for():
    assert first(policy(), ticket("model", AHEAD), running=[running("model", DRAFT, due_ms=100)]) is None
    assert first(policy(), ticket("model", AHEAD), running=[running("model", CONFIRMED, due_ms=5000)]) is not None


# Making way.


def way_made(rules, waiting, at_work, now_ms=0):
    return list(rules.make_way(ns(now_ms), waiting, at_work))


def test_writing_makes_way_for_the_first_chunk_of_a_reply_in_the_same_class():
    writing, chunk = running("model", DRAFT, due_ms=200), ticket("voice", DRAFT, due_ms=200, takes_ms=30)
    assert way_made(policy(), [chunk], [writing]) == [writing]
    assert way_made(policy(yielding=False), [chunk], [writing]) == []


def test_writing_does_not_make_way_for_who_can_wait_as_long():
    writing, chunk = running("model", DRAFT, due_ms=200), ticket("voice", DRAFT, due_ms=200, takes_ms=10)
    assert way_made(policy(), [chunk], [writing]) == []


def test_nobody_makes_way_in_vain():
    """Where more is in the way than can yield, all go on."""
    writing, judging = running("model", AHEAD), running("prosody", CONFIRMED)
    assert way_made(policy(), [ticket("recognizer", CONFIRMED)], [writing, judging]) == []


def test_who_made_way_does_not_come_back_before_the_one_it_was_for():
    """Two write together and a voice wants the cores: they stop a token apart, and none begins again in between."""
    first_writer, second_writer = (running("model", AHEAD, due_ms=3000) for _ in range(2))
    voice = ticket("voice", CONFIRMED, due_ms=200, takes_ms=20)
    rest = ticket("model", AHEAD, due_ms=3000)
    rules = policy(overtaking=False)
    assert rules.make_way(0, [voice], [first_writer, second_writer]) == (first_writer, second_writer)
    assert first(rules, voice, rest, running=[second_writer]) is None
    assert first(rules, voice, rest) is voice


def test_reading_makes_way_for_a_reply_that_is_written_beside_it():
    reading = running("model", AHEAD, stage=Stage.PREFILL)
    writing = running("model", DRAFT, due_ms=100)
    assert way_made(policy(), [], [reading, writing]) == [reading]


def test_an_indivisible_call_is_never_asked():
    assert way_made(policy(), [ticket("prosody", CONFIRMED)], [running("recognizer", AHEAD, can_yield=False)]) == []


# Batches.


def test_those_that_wait_for_the_same_call_go_together():
    one, two, other = (ticket("recognizer", kind=kind, most=4, due_ms=500) for kind in ("a", "a", "b"))
    choice = policy().choose(0, [one, two, other], [])
    assert choice is not None
    assert (choice.ticket, choice.company) == (one, (two,))
    choice = policy(batching=False).choose(0, [one, two, other], [])
    assert choice is not None
    assert choice.company == ()
