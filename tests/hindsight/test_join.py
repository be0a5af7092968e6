"""Turns find their conversation, and their true end a place on its clock."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.dialogue.conversation import ns
from tests.hindsight.recorded import log, turn, write_log
from tests.lab.runs import run

from antiphon.core.errors import CallerError
from antiphon.hindsight.join import Span, join, moment
from antiphon.lab.result import Outcome

if TYPE_CHECKING:
    from pathlib import Path

    from antiphon.dialogue.log import Log

pytestmark = pytest.mark.unit


def later(recorded: Log, ms: float) -> Log:
    """The same on a clock that has run for longer; positions in the stream stay."""
    steps = []
    for step in recorded.steps:
        changes = {
            name: getattr(step.stimulus, name) + ns(ms)
            for name in ("at_ns", "ended_ns")
            if hasattr(step.stimulus, name)
        }
        steps.append(replace(step, stimulus=replace(step.stimulus, **changes)))
    return replace(recorded, steps=tuple(steps))


def test_a_place_in_the_stream_is_a_moment_of_the_log() -> None:
    """By the nearest silence, whatever the clock; without one nobody knows."""
    assert [ns(2500), ns(2510), ns(0)] == [moment(log(), place_s) for place_s in (2.5, 2.51, 0.0)]
    assert ns(7500) == moment(later(log(), 5000), 2.5)
    assert None is moment(replace(log(), steps=log().steps[:1]), 2.5)


def test_turns_are_joined_by_the_sessions_name(tmp_path: Path) -> None:
    """What has no log, was refused or never said is counted by why."""
    write_log(tmp_path)
    turns = (
        turn(),
        turn(session="sess_2"),
        turn(outcome=Outcome.REFUSED, v2v_ms=None),
        turn(stream_start_s=None, stream_end_s=None),
    )
    joined = join(run(turns), tmp_path)

    assert [turns[0]] == [told.turn for told in joined.told]
    assert Span(began_ns=0, spoken_ns=ns(2500), until_ns=ns(0)) == joined.told[0].span
    assert {"no log": 1, "never said": 1, "refused": 1} == joined.left_out


def test_a_turn_lasts_until_the_next_one_on_its_line(tmp_path: Path) -> None:
    write_log(tmp_path)
    joined = join(run((turn(stream_start_s=6.0, stream_end_s=8.0, number=1), turn())), tmp_path)

    assert [ns(6000), None] == [told.span.until_ns for told in joined.told]


def test_a_run_without_logs_is_refused(tmp_path: Path) -> None:
    """It says how to make some."""
    with pytest.raises(CallerError, match="there is no folder"):
        join(run((turn(),)), tmp_path / "logs")
    with pytest.raises(CallerError, match="none of the 1 turns has a conversation"):
        join(run((turn(),)), tmp_path)
