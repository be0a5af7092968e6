"""Cut-offs and waits of turn-end detectors, computed by hand."""

from __future__ import annotations

import pytest
from tests.lab.pauses import end, hold

from antiphon.lab.turn_end import Policy, point, trade, waits_s

pytestmark = pytest.mark.unit

STEP_S = 0.1
SOON = Policy(threshold=0.5, delay_s=0.2, timeout_s=1.0)
JUDGED = [
    end(0.9, 0.9, 0.9, 0.9, clip="a"),  # above 0.5 from 0.1 s on, so the delay of 0.2 s decides
    end(0.2, 0.2, 0.2, 0.6, clip="b"),  # above from 0.4 s on
    hold(0.35, 0.1, 0.1, 0.1, clip="a"),  # never above, and shorter than the timeout
    hold(0.6, 0.1, 0.7, 0.7, 0.7, 0.7, 0.7, clip="b"),  # above from 0.2 s on
]


def test_a_policy_waits_and_cuts_off() -> None:
    """Waits of 0.2 and 0.4 s at the ends; of the two pauses the second one is cut off, and with it one turn."""
    found = point(JUDGED, SOON, step_s=STEP_S)
    assert ([0.2, 0.4], 1, 2, 1, 2, 0) == (
        waits_s(JUDGED, SOON, step_s=STEP_S),
        found.cut_offs,
        found.holds,
        found.turns_cut,
        found.ends,
        found.timed_out,
    )
    assert (pytest.approx(0.3), 0.4, 0.5) == (found.mean_s, found.p95_s, found.cut_off_share)


@pytest.mark.parametrize(
    ("pause", "cut"),
    [
        (hold(1.2, *[0.0] * 12), 1),  # longer than the timeout, whatever the detector says
        (hold(0.9, *[0.0] * 9), 0),
        (hold(0.3, 0.0, 0.0, 0.9), 0),  # the detector is wrong just when speech goes on
        (hold(0.31, 0.0, 0.0, 0.9), 1),
        (hold(0.4, 0.9, 0.1, 0.1, 0.1), 1),  # what was above the threshold once counts, as the delay ends
        (hold(0.4, 0.5, 0.5, 0.5, 0.5), 0),  # at the threshold is not above it
    ],
)
def test_when_a_pause_is_cut_off(pause: object, cut: int) -> None:
    """If it lasts longer than the policy waits."""
    assert cut == point([end(0.9), pause], SOON, step_s=STEP_S).cut_offs


def test_what_no_score_tells_the_timeout_ends() -> None:
    """An end below the threshold waits for the timeout."""
    found = point([end(0.1, 0.2), hold(0.3, 0.1)], SOON, step_s=STEP_S)
    assert (1.0, 1) == (found.mean_s, found.timed_out)


@pytest.mark.parametrize(("duration_s", "holds"), [(0.19, 0), (0.2, 1), (5.0, 1), (5.01, 0)])
def test_only_pauses_of_some_length_count(duration_s: float, holds: int) -> None:
    """From 0.2 to 5 s, as eot-bench has it."""
    assert holds == trade([end(0.9), hold(duration_s, 0.1)], step_s=STEP_S).holds


def test_silence_alone_trades_waiting_for_cut_offs() -> None:
    """Pauses of 0.25, 0.45 and 0.65 s: a wait of 0.3 s cuts off two thirds, of 0.5 s one third, of 0.7 s none."""
    scores = [0.1 * step for step in range(1, 11)]
    pauses = [hold(second, *scores[: int(second * 10)], clip=str(second)) for second in (0.25, 0.45, 0.65)]
    found = trade([end(*scores, clip="z"), *pauses], step_s=STEP_S)
    shares = {budget: each.cut_offs for budget, each in found.within_mean if each}
    assert {0.2: 3, 0.3: 2, 0.5: 1, 0.6: 1} == shares
    assert shares == {budget: each.cut_offs for budget, each in found.within_p95 if each}
    (budget, fastest), _ = found.fastest
    assert fastest is not None
    assert (0.05, pytest.approx(0.7), 0) == (budget, fastest.mean_s, fastest.cut_offs)
    expected = [(0.2, 3), (0.3, 2), (0.5, 1), (0.7, 0)]
    assert [(pytest.approx(wait), pytest.approx(cut / 3)) for wait, cut in expected] == list(found.frontier)


def test_a_perfect_detector_waits_for_the_shortest_delay_alone() -> None:
    """0.2 s, and nobody is cut off."""
    found = trade([end(1.0, 1.0, 1.0), hold(0.8, *[0.0] * 8)], step_s=STEP_S)
    assert ((0.2, 0.0),) == found.frontier
    best = dict(found.within_mean)[0.2]
    assert best is not None
    assert (0.2, 0.2, 0) == (best.mean_s, best.p95_s, best.cut_offs)


def test_a_budget_that_no_policy_keeps_has_no_point() -> None:
    """An end that is never told waits for the timeout of a second, unless every score will do."""
    found = trade([end(0.0, 0.0), hold(0.5, 0.0)], step_s=STEP_S)
    assert [None, None, None, None] == [each for _, each in found.within_mean]


def test_the_mean_and_the_slow_ends_have_budgets_of_their_own() -> None:
    """Of 20 ends one that only silence tells is borne by the mean and by P95, a nearest rank; two by the mean alone."""
    known, unknown = [end(1.0, clip=str(number)) for number in range(18)], end(0.0)
    pause = hold(0.9, *[0.0] * 9)
    one = trade([*known, end(1.0), unknown, pause], step_s=STEP_S)
    two = trade([*known, unknown, unknown, pause], step_s=STEP_S)
    assert (0, 0) == (_cut_offs(one.within_mean, 0.3), _cut_offs(one.within_p95, 0.3))
    assert (0, None) == (_cut_offs(two.within_mean, 0.3), _cut_offs(two.within_p95, 0.3))


def test_without_pauses_or_ends_there_is_nothing_to_trade() -> None:
    """The counts stand, the lists are empty."""
    found = trade([end(0.9), end(0.8)], step_s=STEP_S)
    assert (0, 2, (), (), ()) == (found.holds, found.ends, found.within_mean, found.fastest, found.frontier)


def _cut_offs(points: object, budget: float) -> int | None:
    best = dict(points)[budget]
    return best.cut_offs if best else None
