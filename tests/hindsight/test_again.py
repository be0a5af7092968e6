"""A turn that was measured, with other settings: by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.dialogue.conversation import MODEL, ns
from tests.hindsight.recorded import LAG_MS, log, turn

from antiphon.hindsight.again import Policy, Sounding, again, lag_of, lags_of, measured
from antiphon.hindsight.join import Joined, Span, Told
from antiphon.hindsight.policies import silence_alone, smart_turn_alone, step_at
from antiphon.lab.result import Outcome

if TYPE_CHECKING:
    from antiphon.lab.result import Turn

pytestmark = pytest.mark.unit

SPAN = Span(began_ns=0, spoken_ns=ns(2500), until_ns=None)


def joined(*turns: Turn) -> Joined:
    return Joined(
        told=tuple(Told(turn=one, span=SPAN, talk=0) for one in turns or (turn(),)), logs=(log(),), left_out={}
    )


def by(policy: Policy) -> Turn:
    found = again(joined(), [policy], [ns(LAG_MS)])
    assert (0, 1) == (found.unknown, len(found.turns))
    return found.turns[0]


def with_settings(**changes: object) -> Turn:
    return by(Policy(settings=replace(log().start.settings, **changes)))


def test_the_same_settings_are_the_same() -> None:
    assert turn() == with_settings()


def test_words_that_are_heard_twice_are_measured_as_words_that_are_heard_once() -> None:
    """A reply begins as early, whichever settings are tried; only what it goes on with waits for the careful ear."""
    once, twice = joined(), Joined(told=joined().told, logs=(log(twice=True),), left_out={})
    for changes in ({}, {"shortest_wait_ms": 100}, {"shortest_wait_ms": 100, "longest_wait_ms": 500}):
        policy = Policy(settings=replace(log().start.settings, **changes))
        assert again(once, [policy], [ns(LAG_MS)]).turns == again(twice, [policy], [ns(LAG_MS)]).turns


@pytest.mark.parametrize(
    ("shortest_ms", "v2v_ms"),
    [
        (900, 900 + LAG_MS),  # confirmed at 3400
        (600, 600 + LAG_MS),
        (550, 550 + LAG_MS),
        (100, 500 + LAG_MS),  # confirmed at 2800, but the first sound is ready at 3000
    ],
)
def test_a_reply_begins_when_it_is_both_confirmed_and_voiced(shortest_ms: int, v2v_ms: float) -> None:
    """The latency is the live one, shifted by how much later or earlier that is."""
    changed = with_settings(shortest_wait_ms=shortest_ms)

    assert (Outcome.ANSWERED, v2v_ms) == (changed.outcome, changed.v2v_ms)


def test_a_short_wait_cuts_in() -> None:
    """Confirmed 500 ms into the pause at 1500, voiced at 1600, heard at 1620: 880 ms before the true end."""
    changed = with_settings(shortest_wait_ms=100, longest_wait_ms=500)

    assert (Outcome.CUT_IN, None, 880.0) == (changed.outcome, changed.v2v_ms, changed.cut_in_ms)


def test_lateness_stays_part_of_it() -> None:
    """A turn that began 70 ms behind its schedule does so again."""
    late = turn(v2v_ms=690.0, late_ms=70.0)
    found = again(joined(late), [Policy(settings=log().start.settings)], lags_of(joined(late))[0])

    assert (late,) == found.turns


def test_what_fell_silent_before_it_was_heard_is_no_cut_in() -> None:
    """Nor is what began before the clip; what never sounds is silent."""
    short, long = Sounding(ns(1600), ns(1615)), Sounding(ns(3000), None)

    assert 520.0 == measured(turn(), SPAN, [short, long], ns(20)).v2v_ms
    assert Outcome.CUT_IN is measured(turn(), SPAN, [Sounding(ns(1600), ns(1800)), long], ns(20)).outcome
    assert Outcome.ANSWERED is measured(turn(), SPAN, [Sounding(ns(-500), ns(100)), long], ns(20)).outcome
    assert Outcome.SILENT is measured(turn(), SPAN, [short], ns(20)).outcome
    assert Outcome.SILENT is measured(turn(), replace(SPAN, until_ns=ns(2900)), [long], ns(20)).outcome


def test_the_lag_is_the_live_turns_own() -> None:
    """One whose reply was not heard has the median; a reply that began long before was another one."""
    assert ns(20) == lag_of(turn(), SPAN, [Sounding(ns(3100), None)])
    assert None is lag_of(turn(v2v_ms=None, outcome=Outcome.SILENT), SPAN, [Sounding(ns(3100), None)])
    assert None is lag_of(turn(), SPAN, [Sounding(ns(1000), None)])
    silent = turn(v2v_ms=None, outcome=Outcome.SILENT)
    assert ([ns(20), ns(20)], [True, False]) == lags_of(joined(turn(), silent))


def test_a_turn_whose_words_are_not_in_the_log_is_left_out() -> None:
    """Nobody knows what would have become of it; it is not counted as silent."""
    whole = log()
    cut = replace(whole, steps=tuple(step for step in whole.steps if step.line < 9))  # up to the second pause
    found = again(
        Joined(told=joined().told, logs=(cut,), left_out={}), [Policy(settings=whole.start.settings)], [ns(LAG_MS)]
    )

    assert ((), 1) == (found.turns, found.unknown)


def test_silence_alone() -> None:
    """300 ms cut in, 900 ms wait; the pause is 800 ms long."""
    short, long = (variant.of(log().start.settings) for variant in silence_alone((300, 900)))

    assert Outcome.CUT_IN is by(short).outcome
    assert 900 + LAG_MS == by(long).v2v_ms


def test_smart_turn_alone() -> None:
    """0.2 in the pause and 0.95 at the end: 0.5 tells them apart and answers at once, which is when it is voiced."""
    apart, wary, hasty = (variant.of(log().start.settings) for variant in smart_turn_alone((0.5, 0.99, 0.1), (1000,)))

    assert 500 + LAG_MS == by(apart).v2v_ms
    assert 1000 + LAG_MS == by(wary).v2v_ms
    assert Outcome.CUT_IN is by(hasty).outcome


def test_a_tone_of_voice_that_is_not_in_the_log_is_counted() -> None:
    """And the turn waits the longest."""
    whole = log()
    without = replace(whole, steps=tuple(step for step in whole.steps if step.line not in (7, 13)))
    policy = smart_turn_alone((0.5,), (1000,))[0].of(whole.start.settings)
    found = again(Joined(told=joined().told, logs=(without,), left_out={}), [policy], [ns(LAG_MS)])

    assert (2, 1000 + LAG_MS) == (found.without_voice, found.turns[0].v2v_ms)


def test_the_step_is_at_its_threshold() -> None:
    from antiphon.dialogue.turn_end import Evidence

    model = step_at(0.5)
    asked = [model.posterior(Evidence(text="Yes.", prosody=value)) for value in (0.49, 0.5, 0.51, None)]

    assert [0.0, 1.0, 1.0, 0.0] == [round(value) for value in asked]
    assert 0.5 < asked[1]
    assert model.fits.keys() == MODEL.fits.keys()
