"""What happens while our reply sounds, or is about to: it ends, or the caller speaks over it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from antiphon.core.clock import MILLISECOND_NS
from antiphon.dialogue.commands import AbandonTurn, CancelTimer, Listen, SetTimer
from antiphon.dialogue.floor import Outcome, caller_pauses, drafting, take_turn_back, yield_floor
from antiphon.dialogue.history import said
from antiphon.dialogue.stimuli import (
    DraftFailed,
    InputEnded,
    InputStalled,
    ReplyEnded,
    Timer,
    TimerFired,
    VoiceStarted,
    VoiceStopped,
)

if TYPE_CHECKING:
    from antiphon.dialogue.state import Dialogue


def voice_over_reply(state: Dialogue, happened: VoiceStarted) -> Outcome:
    """It may be a cough or an "mhm": listen, and take it for an interruption only if it lasts.

    Before the reply's first sound there is nothing to talk over: the turn was not over, or goes on.
    """
    turn = state.turn + 1
    state = replace(state, turn=turn, voice_active=True, goes_on=False)
    listen = Listen(turn=turn, from_samples=happened.start_samples)
    if not drafting(state).voiced:
        return take_turn_back(state, happened.at_ns, (listen,))
    at_ns = happened.at_ns + state.settings.interrupt_ms * MILLISECOND_NS
    return state, (listen, SetTimer(timer=Timer.INTERRUPT, at_ns=at_ns, generation=turn))


def voice_over_reply_stops(state: Dialogue, happened: VoiceStopped | InputStalled) -> Outcome:
    """Too short to mean it; unless they never stopped speaking since a turn that lasted too long: that is answered."""
    after = replace(state, voice_active=False)
    if not state.voice_active:
        return after, ()
    if state.goes_on:
        after, stop = take_turn_back(after, happened.at_ns, ())
        after, pause = caller_pauses(after, happened)
        return after, (*stop, *pause)
    return after, (CancelTimer(timer=Timer.INTERRUPT), AbandonTurn(turn=state.turn))


def timer_fires_in_reply(state: Dialogue, happened: TimerFired) -> Outcome:
    if happened.timer is not Timer.INTERRUPT or happened.generation != state.turn or not state.voice_active:
        return state, ()
    return take_turn_back(state, happened.at_ns, ())


def reply_fails(state: Dialogue, happened: DraftFailed) -> Outcome:
    return reply_ends(state, ReplyEnded(at_ns=happened.at_ns, draft=happened.draft, heard=""))


def reply_ends(state: Dialogue, happened: ReplyEnded) -> Outcome:
    if happened.draft != drafting(state).number:
        return state, ()
    history = said(state.history, "assistant", happened.heard)
    state = replace(state, history=history, draft=None)
    return yield_floor(state, (CancelTimer(timer=Timer.INTERRUPT),), happened.at_ns)


def input_ends_in_reply(state: Dialogue, _: InputEnded) -> Outcome:
    return replace(state, input_ended=True), (CancelTimer(timer=Timer.INTERRUPT),)
