"""Grids, trials and their check, and which points are measured live."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pytest
from tests.hindsight.test_again import joined
from tests.lab.runs import run
from tests.lab.test_trade import FAMILY, trial

from antiphon.cli.replay import changed
from antiphon.core.errors import CallerError
from antiphon.hindsight.policies import grid, swept
from antiphon.hindsight.sweep import Hindsight
from antiphon.hindsight.validate import Difference, chosen, plan_again
from antiphon.lab.plan import BenchPlan, SessionWishes, TurnDetection
from antiphon.lab.schedule import Habits
from antiphon.lab.trade import Family

pytestmark = pytest.mark.unit


def test_every_combination_is_tried() -> None:
    """A value that is named twice, once."""
    assert [("turn.a=1", "turn.b=3"), ("turn.a=2", "turn.b=3")] == grid(["turn.a=1, 2,1", "turn.b=3"])
    assert [()] == grid([])


@pytest.mark.parametrize(
    ("sweeps", "complaint"),
    [
        (["turn.a"], "lists no values"),
        (["turn.a=1", "turn.a=2"], "given twice"),
        ([f"turn.{name}=" + ",".join(map(str, range(20))) for name in "abc"], "8000 combinations"),
    ],
)
def test_a_grid_that_is_none_is_refused(sweeps: list[str], complaint: str) -> None:
    with pytest.raises(CallerError, match=complaint):
        grid(sweeps)


def test_a_sweep_makes_trials() -> None:
    """600 ms as recorded, 500 where the sound is not ready earlier, and no trial of what is no setting."""
    seen = Counter[str]()
    variants = swept(grid(["turn.shortest_wait_ms=100,600,1500"]), changed)
    found = Hindsight(joined()).sweep("ours", variants, on_trial=lambda: seen.update(["tried"]))

    assert [("shortest_wait_ms=100", 520.0), ("shortest_wait_ms=600", 620.0)] == [
        (each.name, each.summary.p95_ms) for each in found.family.trials
    ]
    assert {"turn.shortest_wait_ms": "100"} == found.family.trials[0].settings
    assert ([1], 3, 0) == (list(found.skipped.values()), seen["tried"], found.unknown)


def test_a_sweep_of_nothing_but_mistakes_is_refused() -> None:
    hindsight = Hindsight(joined())
    for wrong, complaint in (("turn.shortest_wiat_ms=1", "shortest_wiat_ms"), ("models.voice=x", "cannot be replayed")):
        with pytest.raises(CallerError, match=complaint):
            hindsight.sweep("ours", swept(grid([wrong]), changed))


def test_the_recorded_settings_are_checked() -> None:
    (as_recorded,) = swept(grid([]), changed)
    check = Hindsight(joined()).check(as_recorded)

    assert "as recorded" == as_recorded.name
    assert (1, 1, 0.0, 1) == (check.turns, check.same_outcome, check.worst_ms, check.own_lags)


def test_points_to_measure_come_from_the_frontier_first() -> None:
    assert ["slow"] == [each.name for each in chosen(Family(name="a", trials=FAMILY.trials[:1]), 2)]
    assert ["slow", "fast", "worse"] == [each.name for each in chosen(FAMILY, 3)]
    line = Family(name="line", trials=tuple(trial(str(at), 600 - 100 * at + at * at, 4 * at) for at in range(5)))
    assert 5 == len(line.best)
    assert ["0", "2", "4"] == [each.name for each in chosen(line, 3)]


@pytest.mark.parametrize(
    ("live", "is_near"), [((520, 1), True), ((521, 0), False), ((480, 0), True), ((500, 2), False), ((None, 0), False)]
)
def test_near_is_within_20_ms_and_a_cut_in(live: tuple[float | None, int], is_near: bool) -> None:
    difference = Difference(name="x", settings={}, replayed=trial("x", 500, 0).summary, live=trial("x", *live).summary)

    assert is_near is difference.is_near
    assert live[1] == difference.as_json()["cut_ins_apart"]


def test_a_live_run_is_the_recorded_one_with_other_settings(tmp_path: Path) -> None:
    """It records nothing, and its plan is otherwise the same."""
    plan = BenchPlan(
        own_server=("--set", "turn.pause_ms=100", "--record", "here/logs"),
        corpus=Path("speech"),
        kinds=("clean",),
        turns=5,
        seed=3,
        wishes=SessionWishes(turn_detection=TurnDetection.SERVER, silence_ms=300),
        out=Path("here"),
    )
    habits = Habits(warm_up=2)
    recorded = run(settings={**plan.settings(), "habits": asdict(habits)})
    again, same_habits = plan_again(recorded, {"turn.cut_in_risk": "0.1"}, tmp_path)

    assert habits == same_habits
    assert ("--set", "turn.pause_ms=100", "--set", "turn.cut_in_risk=0.1") == again.own_server
    assert {**plan.settings(), "own_server": [*again.own_server], "name": "antiphon", "out": str(tmp_path)} == (
        again.settings()
    )


def test_a_run_of_another_server_cannot_be_measured_again(tmp_path: Path) -> None:
    for settings, complaint in (({"url": "ws://x"}, "at an address"), ({"callers": 1}, "cannot be read")):
        with pytest.raises(CallerError, match=complaint):
            plan_again(run(settings=settings), {}, tmp_path)
