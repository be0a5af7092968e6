"""What happens while nobody speaks, or the caller does: turns begin, words grow, the caller falls silent."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from antiphon.dialogue.commands import Listen, Prefill, Transcribe
from antiphon.dialogue.floor import (
    EVERYTHING,
    Outcome,
    answer_expected,
    caller_pauses,
    end,
    hear,
    let_go,
    next_look,
    say_next,
)
from antiphon.dialogue.history import prompt, told
from antiphon.dialogue.interruption import says_something
from antiphon.dialogue.state import Dialogue, Say
from antiphon.dialogue.stimuli import (
    DraftFailed,
    InputEnded,
    InterruptibleSet,
    ReplyBegan,
    ReplyEnded,
    SayRequested,
    Timer,
    TimerFired,
    TranscriptGrew,
    VoiceStarted,
    VoiceStopped,
)

if TYPE_CHECKING:
    from antiphon.dialogue.commands import Command
    from antiphon.dialogue.history import History
    from antiphon.dialogue.state import Draft


def turn_begins(state: Dialogue, happened: VoiceStarted) -> Outcome:
    turn = state.turn + 1
    after = replace(state, turn=turn, draft=None, voice_active=True)
    return hear(after, happened.at_ns, (Listen(turn=turn, from_samples=happened.start_samples),))


def words_grow(state: Dialogue, happened: TranscriptGrew) -> Outcome:
    if happened.turn != state.turn:
        return state, ()
    commands: tuple[Command, ...] = ()
    if state.held and says_something(happened.transcript.text, state.settings.backchannels):
        state, commands = let_go(state)
    stable = happened.transcript.text[: happened.transcript.stable_chars]
    if not stable.strip() or not state.settings.read_ahead or state.held or not answer_expected(state):
        return state, commands
    return state, (*commands, Prefill(messages=prompt(state.instructions, state.history, stable)))


def timer_fires_in_speech(state: Dialogue, happened: TimerFired) -> Outcome:
    if happened.generation != state.turn:
        return state, ()
    if happened.timer is Timer.HOP:
        return state, (Transcribe(turn=state.turn), next_look(state, happened.at_ns))
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
    return end(replace(state, input_ended=True, voice_active=False), ())


def stopped_reply_ends(state: Dialogue, happened: ReplyEnded) -> Outcome:
    """The caller has the floor already; remember what they had heard before they took it."""
    if state.stopping and happened.draft == state.stopping.number:
        return replace(state, history=_with(state.history, state.stopping, happened), stopping=None), ()
    if state.held and happened.draft == state.held.number:
        return replace(state, history=_with(state.history, state.held, happened), held=None), ()
    return state, ()


def _with(history: History, reply: Draft, happened: ReplyEnded) -> History:
    return told(history, reply.uses, happened.heard, reply.number)


def held_reply_fails(state: Dialogue, happened: DraftFailed) -> Outcome:
    return stopped_reply_ends(state, ReplyEnded(at_ns=happened.at_ns, draft=happened.draft, heard=()))


def say_now(state: Dialogue, happened: SayRequested) -> Outcome:
    return say_next(say_later(state, happened)[0], happened.at_ns, ())


def say_later(state: Dialogue, happened: SayRequested) -> Outcome:
    say = Say(text=happened.text, interruptible=happened.interruptible)
    return replace(state, to_say=(*state.to_say, say)), ()


def interruptible_set(state: Dialogue, happened: InterruptibleSet) -> Outcome:
    state = replace(state, interruptible=happened.interruptible)
    return with_interruptible(state, interruptible=happened.interruptible), ()


def with_interruptible(state: Dialogue, *, interruptible: bool) -> Dialogue:
    """The present reply, sounding or held, may be interrupted, or may not."""
    draft = replace(state.draft, interruptible=interruptible) if state.draft else None
    held = replace(state.held, interruptible=interruptible) if state.held else None
    return replace(state, draft=draft, held=held)


def held_reply_begins(state: Dialogue, happened: ReplyBegan) -> Outcome:
    """Its first sample left just as it was held."""
    if state.held is None or happened.draft != state.held.number:
        return state, ()
    return replace(state, held=replace(state.held, began_ns=happened.at_ns)), ()
