"""Turns become the figures that people quote: what counts, what is infinite, and what is left out."""

from __future__ import annotations

from math import inf

import pytest
from tests.lab.runs import large, ramp, run, turn

from antiphon.core.errors import CallerError
from antiphon.lab.frontier import Point, area_under, frontier, height, lower_left_hull
from antiphon.lab.result import Outcome
from antiphon.lab.summary import CapacityLimits, by_callers, by_kind, by_scenario, capacity, latency_ms, summarise

pytestmark = pytest.mark.unit


def test_what_counts() -> None:
    """Answered turns have their latency, silent and failed ones are infinite, cut-ins and refusals have no part."""
    turns = [
        turn(100.0),
        turn(300.0),
        turn(None),
        turn(None, outcome=Outcome.FAILED),
        turn(None, outcome=Outcome.CUT_IN, cut_in_ms=200.0),
        turn(None, outcome=Outcome.REFUSED),
    ]
    summary = summarise(turns)

    assert [100.0, 300.0, inf, inf, None, None] == [latency_ms(one) for one in turns]
    assert (5, 4, 2, 1, 1, 1, 1) == (
        summary.turns,
        summary.measured,
        summary.answered,
        summary.cut_ins,
        summary.silent,
        summary.failed,
        summary.refused,
    )
    assert {50: 300.0, 90: inf, 95: inf, 99: inf, 100: inf} == summary.percentiles_ms
    assert summary.cut_in_share == 0.2
    assert summary.lost == 3


def test_a_cut_in_with_a_latency_is_left_out() -> None:
    """Whatever the caller took down of it: a reply that cut in has no latency."""
    assert latency_ms(turn(5.0, outcome=Outcome.CUT_IN)) is None


def test_nothing() -> None:
    """No turns: no figures, and no error."""
    summary = summarise([])

    assert (0, None, None, 0.0, None) == (
        summary.turns,
        summary.p95_ms,
        summary.p95_interval,
        summary.cut_in_share,
        summary.slot_share,
    )


def test_what_else_is_counted() -> None:
    """Slots, words, gaps by length, splits, interruptions."""
    summary = summarise(
        [
            turn(slots={"size": "large", "drink": "latte"}, slots_heard=1, words=4, word_errors=1, splits=1),
            turn(gaps_ms=(40.0, 90.0), reply_ms=30_000.0, words=6, word_errors=1),
            turn(words=100, stop_ms=300.0, truncation_error_ms=-20.0, late_ms=3.0, reply_ms=30_000.0),
        ]
    )

    assert (0.5, 0.2, (90.0, 40.0), 2.0, 1) == (
        summary.slot_share,
        summary.word_error_rate,
        summary.gaps_ms,
        summary.gaps_a_minute,
        summary.splits,
    )
    assert ((300.0,), (20.0,), 3.0) == (summary.stops_ms, summary.truncation_errors_ms, summary.late_p95_ms)


def test_by_kind_with_complete_turns_together() -> None:
    """Hesitations have pauses inside; the others are also summed up without them."""
    found = by_kind(run((turn(1.0), turn(2.0, kind="noisy"), turn(3.0, kind="hesitation"), turn(4.0))))

    assert [("clean", 2), ("hesitation", 1), ("noisy", 1), ("complete turns (clean + noisy)", 3)] == [
        (summary.label, summary.turns) for summary in found
    ]


def test_one_kind_has_one_line() -> None:
    assert ["clean"] == [summary.label for summary in by_kind(run((turn(), turn())))]


def test_by_scenario_keeps_their_order() -> None:
    found = by_scenario(run((turn(scenario="single"), turn(scenario="barge-in"), turn(scenario="single"))))

    assert [("single", 2), ("barge-in", 1)] == [(summary.label, summary.turns) for summary in found]


def test_by_callers_sorts_by_number() -> None:
    found = by_callers(run((turn(callers=16), turn(callers=2), turn(callers=2))))

    assert [(2, "2 callers", 2), (16, "16 callers", 1)] == [
        (callers, summary.label, summary.turns) for callers, summary in found.items()
    ]


def test_capacity_is_the_last_level_before_the_first_that_breaks() -> None:
    """Eight callers are too slow; that sixteen would be fast again does not help."""
    levels = by_callers(
        run(
            (*(turn(400.0, callers=callers) for callers in (1, 2, 4)), turn(1200.0, callers=8), turn(300.0, callers=16))
        )
    )
    found = capacity(levels)

    assert (4, (1, 2, 4, 8, 16), "P95 of 1200 ms at 8 callers") == (found.callers, found.tried, found.ended_by)


def test_capacity_of_a_server_that_bears_all() -> None:
    found = capacity(by_callers(run((turn(400.0, callers=1), turn(400.0, callers=2)))))

    assert (2, "") == (found.callers, found.ended_by)


@pytest.mark.parametrize(
    ("turns", "ended_by"),
    [
        ((turn(None),), "1 turns without an answer at 1 caller"),
        ((turn(None, outcome=Outcome.REFUSED),), "1 turns without an answer at 1 caller"),
        ((), ""),
        ((turn(), *[turn(None, outcome=Outcome.CUT_IN)] * 5), "5 cut-ins in 6 turns at 1 caller"),
        ((*[turn()] * 7, turn(None, outcome=Outcome.CUT_IN)), ""),  # one of eight proves nothing
        ((turn(None, outcome=Outcome.CUT_IN),), "no turn was measured at 1 caller"),
    ],
)
def test_what_breaks_a_level(turns: tuple, ended_by: str) -> None:
    assert ended_by == capacity(by_callers(run(turns))).ended_by


def test_capacity_limits_are_checked() -> None:
    with pytest.raises(CallerError, match="p95"):
        CapacityLimits(p95_ms=0)


def test_the_made_up_ramp_breaks_above_four() -> None:
    assert capacity(by_callers(ramp()), CapacityLimits(p95_ms=1500)).callers == 4


def test_the_made_up_run_has_what_the_report_needs() -> None:
    summary = summarise(large().turns)

    assert summary.turns == 320
    assert summary.silent == 1
    assert 3 <= summary.cut_ins <= 20
    assert summary.gaps_ms


# The frontier.

A, B, C, D = Point(0.01, 1000.0, "a"), Point(0.05, 600.0, "b"), Point(0.2, 500.0, "c"), Point(0.1, 900.0, "d")


def test_the_hull_keeps_what_nothing_beats() -> None:
    """D is beaten by B in both; a point above the line from A to B is beaten by mixing them."""
    above = Point(0.03, 850.0, "above")

    assert (A, B, C) == lower_left_hull([C, above, D, B, A])


def test_a_point_below_the_line_bends_the_hull() -> None:
    below = Point(0.03, 700.0, "below")

    assert (A, below, B, C) == lower_left_hull([A, B, C, below])


def test_equal_shares_keep_the_faster() -> None:
    assert (Point(0.1, 1.0),) == lower_left_hull([Point(0.1, 2.0), Point(0.1, 1.0)])


def test_runs_that_never_answer_take_no_part() -> None:
    assert () == lower_left_hull([Point(0.0, inf)])


def test_the_area() -> None:
    """Trapezes by hand: 4 % * (1000 + 600) / 2 + 15 % * (600 + 500) / 2 = 3200 + 8250."""
    found = frontier([A, B, C, D])

    assert found.area == pytest.approx(11_450)
    assert found.mean_p95_ms == pytest.approx(11_450 / 19)


def test_the_area_goes_on_level_to_the_right() -> None:
    """One run without cut-ins: its latency all the way, 19 % * 700."""
    assert area_under([Point(0.0, 700.0)]) == pytest.approx(13_300)


def test_the_area_begins_inside_a_slope() -> None:
    """From 0 % at 1000 to 2 % at 600, the hull stands at 800 where the area begins: 1 * 700 + 18 * 600."""
    hull = [Point(0.0, 1000.0), Point(0.02, 600.0)]

    assert height(hull, 0.01) == pytest.approx(800)
    assert area_under(hull) == pytest.approx(11_500)


def test_no_area_where_no_run_reaches_down() -> None:
    """Nobody knows how slow a server would be at 1 % if it was only tried at 5."""
    found = frontier([B, C])

    assert ((B, C), None, None) == (found.hull, found.area, found.mean_p95_ms)
