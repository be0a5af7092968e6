"""Who says what when."""

from __future__ import annotations

from itertools import islice, pairwise
from typing import Any

import pytest
from tests.lab.fake_server import speech

from antiphon.core.errors import CallerError
from antiphon.lab.plan import BenchPlan
from antiphon.lab.schedule import Habits, lanes, levels

pytestmark = pytest.mark.unit

CLIPS = [speech(200, name=name).clip for name in "abcde"]


def names(callers: int = 1, habits: Habits | None = None, **plan: Any) -> list[list[str]]:
    made = BenchPlan(url="ws://nowhere", **plan)
    return [
        ["".join(one.clip.name for one in talk.utterances) for talk in lane]
        for lane in lanes(made, habits or Habits(), CLIPS, callers=callers)
    ]


def test_scenarios_make_talks() -> None:
    """A line for each clip, one for all, one for a few."""
    assert [["a", "b", "c", "d", "e"]] == names()
    assert [["abcde"]] == names(scenario="one-line")
    assert [["ab", "cd", "e"]] == names(scenario="multi-turn", habits=Habits(turns_per_line=2))
    assert [["ab", "cd", "e"]] == names(scenario="barge-in")
    assert [["a", "b", "c", "d", "e", "a", "b"]] == names(turns=7)


def test_callers_share_the_turns() -> None:
    """As evenly as they can."""
    assert [["a", "c", "e"], ["b", "d"]] == names(callers=2, scenario="callers")
    assert [7, 7, 6] == [len(lane) for lane in names(callers=3, scenario="ramp")]


def test_every_second_clip_is_said_over_a_reply() -> None:
    """The first never is."""
    (lane,) = lanes(BenchPlan(url="ws://nowhere", scenario="barge-in"), Habits(barge_in_ms=700), CLIPS, callers=1)
    assert [[None, 700], [None, 700], [None]] == [[one.over_ms for one in talk.utterances] for talk in lane]


def test_callers_begin_at_moments_of_their_own_and_then_by_the_period() -> None:
    """The same moments for the same seed; the period is the longest clip and what a reply takes."""

    def dues(seed: int) -> list[list[float]]:
        plan = BenchPlan(url="ws://nowhere", scenario="callers", seed=seed)
        return [[talk.due_s or 0.0 for talk in lane] for lane in lanes(plan, Habits(), CLIPS, callers=2)]

    assert dues(1) == dues(1) != dues(2)
    for lane in dues(1):
        assert 0 <= lane[0] <= 8.3
        assert [8.3] * (len(lane) - 1) == pytest.approx([after - due for due, after in pairwise(lane)])


def test_a_soak_never_ends_by_itself() -> None:
    """And its callers say different things at a time."""
    plan = BenchPlan(url="ws://nowhere", scenario="soak")
    first, second = lanes(plan, Habits(), CLIPS, callers=2)
    assert list("abcdea") == [talk.utterances[0].clip.name for talk in islice(first, 6)]
    assert list("bcdeab") == [talk.utterances[0].clip.name for talk in islice(second, 6)]


def test_a_ramp_tries_its_limit_too() -> None:
    """In growing steps."""
    assert ([1, 2, 3, 4, 5], [1]) == (levels(5), levels(1))


def test_what_cannot_be_is_refused() -> None:
    """By name."""
    with pytest.raises(CallerError, match="no scenario 'sprint'"):
        names(scenario="sprint")
    with pytest.raises(CallerError, match="barge_in_ms is 1"):
        Habits(barge_in_ms=1)
