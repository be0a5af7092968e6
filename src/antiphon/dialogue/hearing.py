"""What happens while nobody speaks, or the caller does: turns begin, words grow, the caller falls silent."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from antiphon.core.clock import SECOND_NS
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
from antiphon.dialogue.state import Dialogue, Phase, Say
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
    from antiphon.core.flow import Message
    from antiphon.dialogue.commands import Command
    from antiphon.dialogue.history import History
    from antiphon.dialogue.state import Draft


RESTS_FOR = 2  # times as long as a look took, none is begun: they leave two thirds of the time to the rest
GIVEN_UP_NS = SECOND_NS  # a look that has not answered for so long has failed, or another may follow it at once


def turn_begins(state: Dialogue, happened: VoiceStarted) -> Outcome:
    turn = state.turn + 1
    after = replace(state, turn=turn, draft=None, voice_active=True)
    return hear(after, happened.at_ns, (Listen(turn=turn, from_samples=happened.start_samples),))


def words_grow(state: Dialogue, happened: TranscriptGrew) -> Outcome:
    if happened.turn != state.turn:
        return state, ()
    commands: tuple[Command, ...] = ()
    if state.phase is Phase.HEARING and state.looked_ns is not None:
        rest_ns = RESTS_FOR * (happened.at_ns - state.looked_ns)
        commands = (next_look(state, state.looked_ns, not_before_ns=happened.at_ns + rest_ns),)
        state = replace(state, looked_ns=None)
    if state.held and says_something(happened.transcript.text, state.settings.backchannels):
        state, stop = let_go(state)
        commands = (*commands, *stop)
    messages = read_ahead(state, happened.transcript.text[: happened.transcript.stable_chars])
    if not messages:
        return state, commands
    return state, (*commands, Prefill(messages=messages, opening=opening(state, happened.transcript.text)))


def read_ahead(state: Dialogue, words: str) -> tuple[Message, ...]:
    """What the language model may read before the caller has said all, if these are their words; mostly something."""
    if not words.strip() or not state.settings.read_ahead or state.held or not answer_expected(state):
        return ()
    return prompt(state.instructions, state.history, words)


def opening(state: Dialogue, text: str) -> tuple[Message, ...]:
    """What a reply can be begun from before the caller has said all; nothing where tools come first."""
    settings = state.settings
    if not (settings.open_ahead and settings.speculate) or state.tools or state.usual.is_text:
        return ()
    return prompt(state.instructions, state.history, text.strip())


def timer_fires_in_speech(state: Dialogue, happened: TimerFired) -> Outcome:
    if happened.generation != state.turn:
        return state, ()
    if happened.timer is Timer.HOP:
        again = next_look(state, happened.at_ns)
        if state.looked_ns is not None and happened.at_ns < state.looked_ns + GIVEN_UP_NS:
            return state, (again,)
        return replace(state, looked_ns=happened.at_ns), (Transcribe(turn=state.turn), again)
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
