"""Everything that moves a conversation, in one table: what is known and what happens decide what comes next.

`step` looks a stimulus up under the present phase. What has no entry changes nothing: it is either stale (a result
of a draft that was dropped) or says nothing new (a voice that stops while nobody listens). Each rule names the
phases it may lead to; the diagram in docs/architecture.md is drawn from this table, and a test holds the rules to it.

A turn goes LISTENING -> HEARING -> DRAFTING, back to HEARING as often as the caller goes on, then SPEAKING, and
LISTENING again. A draft may be begun in every pause; it is heard only if `confirm` is reached before the caller
speaks again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar, cast

from antiphon.dialogue import acting, correcting, drafting, floor, hearing, owning, speaking
from antiphon.dialogue.state import Dialogue, Phase
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

if TYPE_CHECKING:
    from collections.abc import Callable

    from antiphon.dialogue.floor import Outcome

Happening = TypeVar("Happening", bound=Stimulus)


def step(state: Dialogue, stimulus: Stimulus) -> Outcome:
    """The next state and what to do, given what happened."""
    rule = TRANSITIONS.get((state.phase, type(stimulus)))
    if rule is None or (state.by_hand and isinstance(stimulus, OF_VOICE)):
        return state, ()
    after, commands = rule.apply(state, stimulus)
    assert after.phase in rule.leads_to, f"{rule.apply.__name__} led to {after.phase}"
    return after, commands


@dataclass(frozen=True, slots=True)
class Rule:
    """What to do, and which phases it may lead to."""

    apply: Callable[[Dialogue, Stimulus], Outcome]
    leads_to: frozenset[Phase]


def rule(apply: Callable[[Dialogue, Happening], Outcome], *leads_to: Phase) -> Rule:
    # The table's key guarantees the stimulus type that `apply` takes.
    return Rule(cast("Callable[[Dialogue, Stimulus], Outcome]", apply), frozenset(leads_to))


LISTENING, HEARING, DRAFTING, SPEAKING, ENDED = Phase
OF_VOICE = (VoiceStarted, VoiceStopped, InputStalled)  # what ends no turn where the owner does

_AFTER_TURN = (DRAFTING, SPEAKING, LISTENING, HEARING, ENDED)  # where judging a turn can lead

TRANSITIONS: dict[tuple[Phase, type[Stimulus]], Rule] = {
    (LISTENING, VoiceStarted): rule(hearing.turn_begins, HEARING),
    (LISTENING, InputEnded): rule(hearing.input_ends_in_silence, LISTENING, ENDED),
    (LISTENING, WordsCorrected): rule(correcting.turn_corrected, LISTENING, ENDED),
    (LISTENING, ToolReturned): rule(acting.tool_returned, LISTENING),
    (LISTENING, SayRequested): rule(hearing.say_now, SPEAKING),
    (LISTENING, InterruptibleSet): rule(hearing.interruptible_set, LISTENING),
    (LISTENING, TimerFired): rule(owning.idles, LISTENING),
    (LISTENING, ReplyEnded): rule(hearing.stopped_reply_ends, LISTENING),
    (HEARING, VoiceStopped): rule(floor.caller_pauses, DRAFTING),
    (HEARING, InputStalled): rule(floor.caller_pauses, DRAFTING),
    (HEARING, InputEnded): rule(hearing.input_ends_in_speech, DRAFTING),
    (HEARING, TranscriptGrew): rule(hearing.words_grow, HEARING),
    (HEARING, WordsCorrected): rule(correcting.turn_corrected, HEARING),
    (HEARING, TimerFired): rule(hearing.timer_fires_in_speech, HEARING, DRAFTING),
    (HEARING, ReplyEnded): rule(hearing.stopped_reply_ends, HEARING),
    (HEARING, ReplyBegan): rule(hearing.held_reply_begins, HEARING),
    (HEARING, DraftFailed): rule(hearing.held_reply_fails, HEARING),
    (HEARING, ToolCalled): rule(acting.tool_called, HEARING),
    (HEARING, ToolsWanted): rule(acting.tools_wanted, HEARING),
    (HEARING, ToolReturned): rule(acting.tool_returned, HEARING),
    (HEARING, SayRequested): rule(hearing.say_later, HEARING),
    (HEARING, InterruptibleSet): rule(hearing.interruptible_set, HEARING),
    (DRAFTING, VoiceStarted): rule(drafting.turn_goes_on, HEARING),
    (DRAFTING, VoiceStopped): rule(drafting.voice_stops, DRAFTING),
    (DRAFTING, InputStalled): rule(drafting.voice_stops, DRAFTING),
    (DRAFTING, InputEnded): rule(drafting.input_ends_in_pause, *_AFTER_TURN),
    (DRAFTING, DraftTranscribed): rule(drafting.words_known, *_AFTER_TURN),
    (DRAFTING, WordsCorrected): rule(drafting.words_corrected, *_AFTER_TURN),
    (DRAFTING, ProsodyJudged): rule(drafting.voice_judged, *_AFTER_TURN),
    (DRAFTING, EndMassMeasured): rule(drafting.mass_measured, *_AFTER_TURN),
    (DRAFTING, DraftVoiced): rule(drafting.draft_voiced, DRAFTING),
    (DRAFTING, DraftFailed): rule(drafting.draft_fails, *_AFTER_TURN),
    (DRAFTING, TimerFired): rule(drafting.timer_fires_in_pause, *_AFTER_TURN),
    (DRAFTING, ReplyBegan): rule(hearing.held_reply_begins, DRAFTING),
    (DRAFTING, ReplyEnded): rule(drafting.stopped_reply_ends, *_AFTER_TURN),
    (DRAFTING, ToolCalled): rule(acting.tool_called, DRAFTING),
    (DRAFTING, ToolsWanted): rule(drafting.tools_wanted, DRAFTING),
    (DRAFTING, ToolReturned): rule(acting.tool_returned, DRAFTING),
    (DRAFTING, SayRequested): rule(hearing.say_later, DRAFTING),
    (DRAFTING, InterruptibleSet): rule(hearing.interruptible_set, DRAFTING),
    (ENDED, ReplyEnded): rule(hearing.stopped_reply_ends, ENDED),
    (SPEAKING, VoiceStarted): rule(speaking.voice_over_reply, SPEAKING, HEARING),
    (SPEAKING, VoiceStopped): rule(speaking.voice_over_reply_stops, SPEAKING, DRAFTING),
    (SPEAKING, InputStalled): rule(speaking.voice_over_reply_stops, SPEAKING, DRAFTING),
    (SPEAKING, InputEnded): rule(speaking.input_ends_in_reply, SPEAKING),
    (SPEAKING, TranscriptGrew): rule(speaking.words_over_reply, SPEAKING, HEARING, DRAFTING),
    (SPEAKING, WordsCorrected): rule(correcting.turn_corrected, SPEAKING),
    (SPEAKING, TimerFired): rule(speaking.timer_fires_in_reply, SPEAKING, HEARING),
    (SPEAKING, DraftVoiced): rule(drafting.draft_voiced, SPEAKING),
    (SPEAKING, DraftFailed): rule(speaking.reply_fails, SPEAKING, LISTENING, HEARING, DRAFTING, ENDED),
    (SPEAKING, ReplyBegan): rule(speaking.reply_begins, SPEAKING),
    (SPEAKING, ReplyEnded): rule(speaking.reply_ends, SPEAKING, LISTENING, HEARING, DRAFTING, ENDED),
    (SPEAKING, ToolCalled): rule(acting.tool_called, SPEAKING),
    (SPEAKING, ToolsWanted): rule(acting.tools_wanted, SPEAKING),
    (SPEAKING, ToolReturned): rule(acting.tool_returned, SPEAKING),
    (SPEAKING, SayRequested): rule(hearing.say_later, SPEAKING),
    (SPEAKING, InterruptibleSet): rule(hearing.interruptible_set, SPEAKING),
}

# What the owner may do, in any phase: the move, and where it leads besides where the conversation is.
BY_OWNER: dict[type[Stimulus], tuple[Callable[..., Outcome], dict[Phase, tuple[Phase, ...]]]] = {
    Reconfigured: (owning.reconfigured, {HEARING: (LISTENING, DRAFTING, SPEAKING, ENDED)}),
    TurnCommitted: (owning.turn_committed, {LISTENING: (DRAFTING,), HEARING: (DRAFTING,), DRAFTING: _AFTER_TURN}),
    InputCleared: (
        owning.input_cleared,
        {HEARING: (LISTENING, DRAFTING, SPEAKING, ENDED), DRAFTING: (LISTENING, SPEAKING, ENDED)},
    ),
    ReplyRequested: (owning.reply_requested, {LISTENING: (SPEAKING,)}),
    ReplyCancelled: (owning.reply_cancelled, {SPEAKING: (LISTENING, HEARING, DRAFTING, ENDED)}),
    ItemAdded: (owning.item_added, {}),
    ItemDeleted: (owning.item_deleted, {}),
    ItemTruncated: (owning.item_truncated, {}),
}
TRANSITIONS |= {
    (phase, kind): rule(move, phase, *leads_to.get(phase, ()))
    for phase in (LISTENING, HEARING, DRAFTING, SPEAKING)
    for kind, (move, leads_to) in BY_OWNER.items()
}
