"""Events and commands become figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from antiphon.core.stamps import Mark, Span, Stage, TurnTimeline
from antiphon.dialogue.commands import DropDraft, PlayDraft, StartDraft, StopReply
from antiphon.serve.log_lines import SessionLog
from antiphon.serve.metrics import Metrics
from antiphon.serve.observer import Observer
from antiphon.session.events import ReplyFinished, TurnAbandoned, TurnMeasured

if TYPE_CHECKING:
    from antiphon.dialogue.stimuli import Stimulus

pytestmark = pytest.mark.unit

NO_STIMULUS = cast("Stimulus", None)


def timeline(turn: int, *, sounds: bool = True) -> TurnTimeline:
    marks = {Mark.SPEECH_ENDED: 0} | ({Mark.FIRST_SOUND: 300_000_000} if sounds else {})
    return TurnTimeline(turn=turn, marks=marks, spans=(Span(Stage.THINK, 0, 50_000_000),))


def finished(turn: int, **how: bool) -> ReplyFinished:
    return ReplyFinished(turn=turn, reply=turn, at_ns=0, heard="", **({"interrupted": False} | how))


class Figures:
    def __init__(self) -> None:
        self.metrics = Metrics()
        self.observer = Observer(self.metrics, SessionLog())

    def of(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(name, labels) or 0.0


@pytest.mark.parametrize(
    ("how", "outcome"),
    [
        ({}, "heard"),
        ({"interrupted": True}, "interrupted"),
        ({"interrupted": True, "retracted": True}, "retracted"),
        ({"failed": True}, "failed"),
    ],
)
@pytest.mark.parametrize("measured_first", [True, False])
def test_a_turn_is_filed_under_its_outcome(how: dict[str, bool], outcome: str, measured_first: bool) -> None:
    """Latency and stages wait until it is known what became of the reply, in whichever order they are told."""
    figures = Figures()
    told = [TurnMeasured(timeline=timeline(1)), finished(1, **how)]
    for event in told if measured_first else reversed(told):
        figures.observer.event(event)

    assert 1 == figures.of("antiphon_turns_total", outcome=outcome)
    assert 0.3 == figures.of("antiphon_voice_to_voice_seconds_sum", outcome=outcome)
    assert 0.05 == figures.of("antiphon_stage_seconds_sum", outcome=outcome, stage="chat")


def test_a_latency_that_cannot_be_is_counted_and_not_filed() -> None:
    """A reply that is stamped as begun before the caller had ended has no latency, and that shows."""
    figures = Figures()
    marks = {Mark.SPEECH_ENDED: 300_000_000, Mark.FIRST_SOUND: 0}
    figures.observer.event(TurnMeasured(timeline=TurnTimeline(turn=1, marks=marks, spans=())))
    figures.observer.event(finished(1))

    assert 1 == figures.of("antiphon_turns_total", outcome="heard")
    assert 0 == figures.of("antiphon_voice_to_voice_seconds_count", outcome="heard")
    assert 1 == figures.of("antiphon_impossible_latencies_total")


def test_turns_without_an_end_are_filed_too() -> None:
    """One that got no reply, one that was overtaken by the next, one whose caller left, one that was a cough."""
    figures = Figures()
    figures.observer.event(TurnMeasured(timeline=timeline(1, sounds=False)))
    figures.observer.event(TurnMeasured(timeline=timeline(2)))
    figures.observer.event(TurnMeasured(timeline=timeline(3)))
    figures.observer.event(TurnAbandoned(turn=4, at_ns=0))
    figures.observer.end()

    outcomes = ("unanswered", "superseded", "left", "abandoned")
    assert [1, 1, 1, 1] == [figures.of("antiphon_turns_total", outcome=outcome) for outcome in outcomes]


def test_drafts_are_counted_from_commands() -> None:
    """Kept, dropped, dropped at the end; dropping one that already sounds is no dropped draft."""
    figures = Figures()
    watch = figures.observer.commands
    watch(NO_STIMULUS, (StartDraft(draft=1, turn=1),))
    watch(NO_STIMULUS, (DropDraft(draft=1), StartDraft(draft=2, turn=1)))
    watch(NO_STIMULUS, (PlayDraft(draft=2),))
    watch(NO_STIMULUS, (StopReply(draft=2), DropDraft(draft=2), StartDraft(draft=3, turn=2)))
    figures.observer.event(finished(2, interrupted=True, retracted=True))
    figures.observer.end()

    fates = {"kept": 1, "dropped": 2, "stopped": 1, "retracted": 1}
    assert fates == {fate: figures.of("antiphon_drafts_total", fate=fate) for fate in fates}


def test_each_server_counts_for_itself() -> None:
    """Two registries in one process."""
    one, other = Figures(), Figures()
    one.observer.event(TurnAbandoned(turn=1, at_ns=0))

    assert b'antiphon_turns_total{outcome="abandoned"} 1.0' in one.metrics.text()
    assert b"abandoned" not in other.metrics.text()
