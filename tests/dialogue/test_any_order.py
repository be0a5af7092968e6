"""The dialogue under stimuli in any order: what must never happen does not."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.dialogue.conversation import Conversation, ns

from antiphon.core.flow import Transcript
from antiphon.dialogue.commands import ConfirmTurn, DropDraft, EndSession, PlayDraft, StartDraft, StopReply, WriteReply
from antiphon.dialogue.state import Phase
from antiphon.dialogue.stimuli import (
    DraftFailed,
    DraftTranscribed,
    DraftVoiced,
    EndMassMeasured,
    InputEnded,
    InputStalled,
    ProsodyJudged,
    ReplyEnded,
    Stimulus,
    Timer,
    TimerFired,
    TranscriptGrew,
    VoiceStarted,
    VoiceStopped,
)

pytestmark = pytest.mark.unit

NUMBERS = st.integers(0, 4)
TEXTS = st.sampled_from(["", "Yes.", "I would like a"])
UNIT = st.floats(0, 1)


def transcript(text: str) -> Transcript:
    return Transcript(text=text, heard_samples=0, stable_chars=len(text) // 2)


def stimuli() -> st.SearchStrategy[Stimulus]:
    zero = st.just(0)
    place = {"at_ns": zero, "end_samples": zero, "ended_ns": zero}
    words = TEXTS.map(transcript)
    return st.one_of(
        st.builds(VoiceStarted, at_ns=zero, start_samples=zero),
        st.builds(VoiceStopped, **place),
        st.builds(InputStalled, **place),
        st.builds(InputEnded, **place),
        st.builds(TranscriptGrew, at_ns=zero, turn=NUMBERS, transcript=words),
        st.builds(DraftTranscribed, at_ns=zero, draft=NUMBERS, transcript=words),
        st.builds(ProsodyJudged, at_ns=zero, draft=NUMBERS, probability=UNIT),
        st.builds(EndMassMeasured, at_ns=zero, draft=NUMBERS, mass=UNIT),
        st.builds(DraftVoiced, at_ns=zero, draft=NUMBERS),
        st.builds(DraftFailed, at_ns=zero, draft=NUMBERS),
        st.builds(ReplyEnded, at_ns=zero, draft=NUMBERS, heard=TEXTS),
        st.builds(TimerFired, at_ns=zero, timer=st.sampled_from(Timer), generation=NUMBERS),
    )


@settings(max_examples=400, deadline=None)
@given(st.lists(stimuli(), max_size=60), st.lists(st.integers(0, 2000), max_size=60))
def test_no_order_breaks_the_rules(happenings: list[Stimulus], steps_ms: list[int]) -> None:
    """Drafts end at most once and are heard only if confirmed; a session ends once; each rule keeps its promise."""
    talk = Conversation()
    fate: Counter[int] = Counter()
    now_ms = 0
    for place, happening in enumerate(happenings):
        now_ms += steps_ms[place % len(steps_ms)] if steps_ms else 10
        talk.happens(type(happening)(**{**_fields(happening), "at_ns": ns(now_ms)}))
    started = {command.draft for command in talk.ordered(StartDraft)}
    played = [command.draft for command in talk.ordered(PlayDraft)]
    dropped = [command.draft for command in talk.ordered(DropDraft)]
    stopped = [command.draft for command in talk.ordered(StopReply)]
    fate.update(played)
    fate.update(dropped)  # a draft that failed is dropped when its turn is confirmed without it
    assert all(count == 1 for count in fate.values())  # heard or dropped, never both, never twice
    assert set(played) | set(dropped) <= started
    assert set(stopped) <= set(played)
    assert len(stopped) == len(set(stopped))
    assert {command.draft for command in talk.ordered(WriteReply)} <= started
    assert len({command.draft for command in talk.ordered(ConfirmTurn)}) == len(talk.ordered(ConfirmTurn))
    assert len(talk.ordered(EndSession)) == (talk.state.phase is Phase.ENDED)
    assert (talk.state.draft is not None) == (talk.state.phase in {Phase.DRAFTING, Phase.SPEAKING})


def _fields(happening: Stimulus) -> dict[str, object]:
    return {name: getattr(happening, name) for name in happening.__slots__}


def test_the_end_is_final() -> None:
    """After the end nothing is ordered any more."""
    talk = Conversation()
    talk.hangs_up(0)
    assert talk.speaks(10) == ()
    assert talk.hangs_up(20) == ()
