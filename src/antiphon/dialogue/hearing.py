"""What happens while nobody speaks, or the caller does: turns begin, words grow, the caller falls silent."""

from __future__ import annotations

from dataclasses import replace

from antiphon.core.clock import MILLISECOND_NS
from antiphon.dialogue.commands import EndSession, Listen, Prefill, SetTimer, Transcribe
from antiphon.dialogue.floor import EVERYTHING, Outcome, caller_pauses, hear
from antiphon.dialogue.history import prompt, said
from antiphon.dialogue.state import Dialogue, Phase
from antiphon.dialogue.stimuli import (
    InputEnded,
    ReplyEnded,
    Timer,
    TimerFired,
    TranscriptGrew,
    VoiceStarted,
    VoiceStopped,
)


def turn_begins(state: Dialogue, happened: VoiceStarted) -> Outcome:
    turn = state.turn + 1
    after = replace(state, turn=turn, draft=None, voice_active=True)
    return hear(after, happened.at_ns, (Listen(turn=turn, from_samples=happened.start_samples),))


def words_grow(state: Dialogue, happened: TranscriptGrew) -> Outcome:
    if happened.turn != state.turn:
        return state, ()
    stable = happened.transcript.text[: happened.transcript.stable_chars]
    if not stable.strip() or not state.settings.read_ahead:
        return state, ()
    return state, (Prefill(messages=prompt(state.instructions, state.history, stable)),)


def timer_fires_in_speech(state: Dialogue, happened: TimerFired) -> Outcome:
    if happened.generation != state.turn:
        return state, ()
    if happened.timer is Timer.HOP:
        next_ns = happened.at_ns + state.settings.hop_ms * MILLISECOND_NS
        again = SetTimer(timer=Timer.HOP, at_ns=next_ns, generation=state.turn)
        return state, (Transcribe(turn=state.turn), again)
    if happened.timer is Timer.LONGEST_TURN:
        return turn_lasts_too_long(state, happened)
    return state, ()


def turn_lasts_too_long(state: Dialogue, happened: TimerFired) -> Outcome:
    """Answer what was said so far; what the caller says meanwhile belongs to their next turn."""
    after, commands = caller_pauses(
        replace(state, forced=True),
        VoiceStopped(at_ns=happened.at_ns, end_samples=EVERYTHING, ended_ns=happened.at_ns),
    )
    return replace(after, voice_active=True), commands


def input_ends_in_speech(state: Dialogue, happened: InputEnded) -> Outcome:
    return caller_pauses(replace(state, input_ended=True, forced=True), happened)


def input_ends_in_silence(state: Dialogue, _: InputEnded) -> Outcome:
    return replace(state, phase=Phase.ENDED, input_ended=True, voice_active=False), (EndSession(),)


def stopped_reply_ends(state: Dialogue, happened: ReplyEnded) -> Outcome:
    """The caller has the floor already; remember what they had heard before they took it."""
    if happened.draft != state.stopping:
        return state, ()
    return replace(state, history=said(state.history, "assistant", happened.heard), stopping=None), ()
