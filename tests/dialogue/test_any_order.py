"""The dialogue under stimuli in any order: what must never happen does not."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.dialogue.conversation import SETTINGS, Conversation, ns

from antiphon.core.flow import Message, ToolCall, Transcript
from antiphon.dialogue.commands import (
    CancelTimer,
    ConfirmTurn,
    CorrectTurn,
    DropDraft,
    DuckReply,
    EndSession,
    Listen,
    OpenTurn,
    PauseReply,
    PlayDraft,
    ResumeReply,
    RunTool,
    SayText,
    SetTimer,
    StartDraft,
    StopReply,
    WriteOn,
    WriteReply,
)
from antiphon.dialogue.history import turn_item
from antiphon.dialogue.options import ReplyOptions
from antiphon.dialogue.state import Draft, Phase, ToolRule
from antiphon.dialogue.stimuli import (
    DraftFailed,
    DraftTranscribed,
    DraftVoiced,
    EndMassMeasured,
    InputCleared,
    InputEnded,
    InputStalled,
    InterruptibleSet,
    ItemAdded,
    ItemDeleted,
    ItemTruncated,
    ProsodyJudged,
    Reconfigured,
    ReplyBegan,
    ReplyCancelled,
    ReplyEnded,
    ReplyRequested,
    SayRequested,
    Stimulus,
    Timer,
    TimerFired,
    ToolCalled,
    ToolReturned,
    ToolsWanted,
    TranscriptGrew,
    TurnCommitted,
    VoiceStarted,
    VoiceStopped,
    WordsCorrected,
)

pytestmark = pytest.mark.unit

NUMBERS = st.integers(0, 4)
TEXTS = st.sampled_from(["", "Yes.", "I would like a"])
UNIT = st.floats(0, 1)
TOOLS = (
    ToolRule(name="order", in_draft=False, preamble="One moment."),
    ToolRule(name="price", in_draft=True, preamble=""),
)
CALLS = st.builds(ToolCall, st.sampled_from("123"), st.sampled_from(["order", "price", "unknown"]), st.just("{}"))


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
        st.builds(DraftTranscribed, at_ns=zero, draft=NUMBERS, transcript=words, provisional=st.booleans()),
        st.builds(WordsCorrected, at_ns=zero, draft=NUMBERS, turn=NUMBERS, transcript=words),
        st.builds(ProsodyJudged, at_ns=zero, draft=NUMBERS, probability=UNIT),
        st.builds(EndMassMeasured, at_ns=zero, draft=NUMBERS, mass=UNIT),
        st.builds(DraftVoiced, at_ns=zero, draft=NUMBERS),
        st.builds(DraftFailed, at_ns=zero, draft=NUMBERS),
        st.builds(ReplyBegan, at_ns=zero, draft=NUMBERS),
        st.builds(ReplyEnded, at_ns=zero, draft=NUMBERS, heard=st.lists(TEXTS, max_size=2).map(tuple)),
        st.builds(ToolCalled, at_ns=zero, draft=NUMBERS, call=CALLS, said=TEXTS),
        st.builds(ToolsWanted, at_ns=zero, draft=NUMBERS),
        st.builds(ToolReturned, at_ns=zero, call=CALLS, text=TEXTS),
        st.builds(SayRequested, at_ns=zero, text=st.just("Hello."), interruptible=st.booleans()),
        st.builds(TurnCommitted, **place),
        st.builds(InputCleared, at_ns=zero, end_samples=zero),
        st.builds(ReplyRequested, at_ns=zero, options=st.builds(ReplyOptions, is_text=st.booleans())),
        st.builds(ReplyCancelled, at_ns=zero),
        st.builds(
            ItemAdded,
            at_ns=zero,
            message=st.just(Message("user", "Hi.", item="x")),
            after=st.sampled_from([None, "", "x"]),
        ),
        st.builds(ItemDeleted, at_ns=zero, item=st.sampled_from(["x", "turn-1", "reply-1-0", "call-1"])),
        st.builds(ItemTruncated, at_ns=zero, item=st.sampled_from(["x", "reply-1-0"]), text=TEXTS),
        st.builds(
            Reconfigured,
            at_ns=zero,
            settings=st.sampled_from([SETTINGS, replace(SETTINGS, idle_ms=1000)]),
            instructions=st.just("Be brief."),
            tools=st.just(TOOLS),
            interruptible=st.booleans(),
            by_hand=st.booleans(),
            answers=st.booleans(),
            usual=st.just(ReplyOptions()),
            end_samples=zero,
        ),
        st.builds(InterruptibleSet, at_ns=zero, interruptible=st.booleans()),
        st.builds(TimerFired, at_ns=zero, timer=st.sampled_from(Timer), generation=NUMBERS),
    )


@settings(max_examples=600, deadline=None)
@given(st.lists(stimuli(), max_size=80), st.lists(st.integers(0, 2000), max_size=80))
def test_no_order_breaks_the_rules(happenings: list[Stimulus], steps_ms: list[int]) -> None:
    """Drafts end at most once and are heard only if confirmed; no timer is left over; each rule keeps its promise."""
    talk = Conversation(tools=TOOLS)
    fate: Counter[int] = Counter()
    running: set[Timer] = set()
    now_ms = 0
    for place, happening in enumerate(happenings):
        now_ms += steps_ms[place % len(steps_ms)] if steps_ms else 10
        if isinstance(happening, TimerFired):
            running.discard(happening.timer)
        for command in talk.happens(replace(happening, at_ns=ns(now_ms))):
            if isinstance(command, SetTimer):
                running.add(command.timer)
            if isinstance(command, CancelTimer):
                running.discard(command.timer)
            if isinstance(command, WriteOn):
                assert talk.state.draft is not None
                assert command.draft == talk.state.draft.number
        assert talk.state.phase is not Phase.LISTENING or running <= {Timer.IDLE}
        assert (talk.state.draft is not None) == (talk.state.phase in {Phase.DRAFTING, Phase.SPEAKING})
        assert talk.state.held is None or talk.state.phase in {Phase.HEARING, Phase.DRAFTING}
        assert talk.state.overlap is None or talk.state.phase is Phase.SPEAKING
        assert not (talk.state.provisional and talk.state.phase is Phase.ENDED)
        assert not _waits_in_vain(talk.state.draft)
    started = {command.draft for command in talk.ordered(StartDraft)}
    given = {command.draft for command in talk.ordered(SayText) if command.is_whole}
    played = [command.draft for command in talk.ordered(PlayDraft)]
    dropped = [command.draft for command in talk.ordered(DropDraft)]
    stopped = [command.draft for command in talk.ordered(StopReply)]
    fate.update(played)
    fate.update(dropped)  # a draft that failed is dropped when its turn is confirmed without it
    assert all(count == 1 for count in fate.values())  # heard or dropped, never both, never twice
    assert set(dropped) <= started
    assert set(stopped) <= set(played)
    assert len(stopped) == len(set(stopped))
    written = {command.draft for command in talk.ordered(WriteReply)}
    assert written - started - given <= set(played)  # the owner asked for it
    assert len({command.draft for command in talk.ordered(ConfirmTurn)}) == len(talk.ordered(ConfirmTurn))
    assert len(talk.ordered(EndSession)) == (talk.state.phase is Phase.ENDED)
    assert {command.draft for kind in (DuckReply, PauseReply, ResumeReply) for command in talk.ordered(kind)} <= set(
        played
    )
    assert {command.turn for command in talk.ordered(OpenTurn)} <= {command.turn for command in talk.ordered(Listen)}
    _no_tool_runs_early(talk)
    _words_are_corrected_once(talk)


def _no_tool_runs_early(talk: Conversation) -> None:
    """One that has effects, or is unknown, runs only for a reply that is played."""
    played: set[int] = set()
    for _, commands in talk.log:
        for command in commands:
            if isinstance(command, PlayDraft):
                played.add(command.draft)
            if isinstance(command, RunTool):
                assert command.call.name == "price" or command.draft in played


def _waits_in_vain(draft: Draft | None) -> bool:
    """Half a reply waits for words, for a tool, or for nothing any more."""
    return draft is not None and draft.half_written and not (draft.is_provisional or draft.uses_tools or draft.failed)


def _words_are_corrected_once(talk: Conversation) -> None:
    """Each turn that was confirmed as provisional, or it waits for that; and the history has what was told last."""
    confirmed = [command.turn for command in talk.ordered(ConfirmTurn) if command.provisional]
    waiting = [one.turn for one in talk.state.provisional]
    assert sorted(confirmed) == sorted([*(command.turn for command in talk.ordered(CorrectTurn)), *waiting])
    told = {turn_item(one.turn): one.text for kind in (ConfirmTurn, CorrectTurn) for one in talk.ordered(kind)}
    for message in talk.state.history:
        assert message.text == told.get(message.item, message.text)
    written = {command.draft for command in talk.ordered(WriteReply)}
    again = [command.draft for command in talk.ordered(WriteOn)]
    assert set(again) <= written
    assert len(again) == len(set(again))


def hears_by_draft(happening: Stimulus) -> Stimulus:
    """The same with words that the draft's number tells, whichever ear hears them."""
    if isinstance(happening, DraftTranscribed | WordsCorrected):
        return replace(happening, transcript=transcript(("Yes.", "", "I would like a")[happening.draft % 3]))
    return happening


@settings(max_examples=300, deadline=None)
@given(st.lists(stimuli(), max_size=80), st.integers(1, 400))
def test_a_careful_ear_that_hears_the_same_changes_nothing(happenings: list[Stimulus], step_ms: int) -> None:
    """But that it is told so, and that half a reply is written on; the end alone may wait for it."""
    once, twice = Conversation(tools=TOOLS), Conversation(tools=TOOLS)
    for place, happening in enumerate(map(hears_by_draft, happenings)):
        if isinstance(happening, InputEnded):
            continue
        said_twice = replace(happening, at_ns=ns(place * step_ms))
        said_once = replace(said_twice, provisional=False) if isinstance(said_twice, DraftTranscribed) else said_twice
        commands = twice.happens(said_twice)
        assert once.happens(said_once) == tuple(
            replace(command, provisional=False) if isinstance(command, ConfirmTurn) else command
            for command in commands
            if not isinstance(command, WriteOn | CorrectTurn)
        )
        assert once.state.history == twice.state.history
    assert not once.ordered(WriteOn)
    assert not once.ordered(CorrectTurn)


def test_the_end_is_final() -> None:
    """After the end nothing is ordered any more."""
    talk = Conversation()
    talk.hangs_up(0)
    assert talk.speaks(10) == ()
    assert talk.hangs_up(20) == ()
