"""Who may still come."""

from __future__ import annotations

import pytest

from antiphon.scheduling.admission import Pressure, foretold, refusal
from antiphon.scheduling.settings import SchedulingSettings

pytestmark = pytest.mark.unit
RULES = SchedulingSettings()


def test_one_more_caller_adds_their_part_of_the_load_and_waiting_grows_as_in_a_queue():
    # two callers keep 0.4 busy; three 0.6: waiting grows by (0.6 / 0.4) / (0.4 / 0.6) = 2.25
    then = foretold(Pressure(callers=2, busy=0.4, wait_p95_ms=40))
    assert then.callers == 3
    assert then.busy == pytest.approx(0.6)
    assert then.wait_p95_ms == pytest.approx(90)


def test_the_first_caller_is_always_admitted():
    assert refusal(Pressure(callers=0, busy=0.99, wait_p95_ms=9000), RULES) == ""


def test_a_caller_who_would_keep_the_cores_too_busy_is_refused_with_the_figures():
    assert refusal(Pressure(callers=4, busy=0.66, wait_p95_ms=0), RULES) == ""
    assert refusal(Pressure(callers=4, busy=0.70, wait_p95_ms=0), RULES) == (
        "4 conversations keep 70% of the cores busy; one more would make it 88%, and 85% is the limit"
    )


def test_a_caller_who_would_make_replies_wait_too_long_is_refused_with_the_figures():
    assert refusal(Pressure(callers=1, busy=0.2, wait_p95_ms=90), RULES) == ""
    assert refusal(Pressure(callers=1, busy=0.2, wait_p95_ms=100), RULES) == (
        "replies wait 100 ms for the cores; with one more conversation it would be 267 ms, and 250 ms is the limit"
    )
