"""What happens while our reply sounds, or is about to: it ends, or a voice comes over it.

Such a voice may be an interruption, or an "mhm", a cough, a door. The reply sounds softer for a moment, and the words
decide: if they say something it stops, else it goes on as if nothing had been. Two cases are surer and do not wait
for words. Before the reply has been heard to say anything the caller had simply not finished: it falls silent at once
and goes on only if the voice turns out to have said nothing. And who speaks on for long enough means it.
"""

from __future__ import annotations

from dataclasses import replace

from antiphon.core.clock import MILLISECOND_NS
from antiphon.dialogue.acting import tool_takes_long
from antiphon.dialogue.commands import (
    AbandonTurn,
    CancelTimer,
    Command,
    DuckReply,
    Listen,
    OpenTurn,
    SetTimer,
    Transcribe,
)
from antiphon.dialogue.floor import (
    OF_REPLY,
    Outcome,
    caller_pauses,
    drafting,
    hold_reply,
    longest,
    take_turn_back,
    yield_floor,
)
from antiphon.dialogue.hearing import stopped_reply_ends
from antiphon.dialogue.history import told
from antiphon.dialogue.interruption import says_something
from antiphon.dialogue.state import Dialogue, Overlap
from antiphon.dialogue.stimuli import (
    DraftFailed,
    InputEnded,
    InputStalled,
    ReplyBegan,
    ReplyEnded,
    Timer,
    TimerFired,
    TranscriptGrew,
    VoiceStarted,
    VoiceStopped,
)


def voice_over_reply(state: Dialogue, happened: VoiceStarted) -> Outcome:
    reply, settings = drafting(state), state.settings
    state = replace(state, voice_active=True, goes_on=False)
    commands: tuple[Command, ...] = ()
    if state.overlap is None or reply.interruptible:  # what is said over a reply that stays adds up to one turn
        state = replace(state, turn=state.turn + 1)
        commands = (Listen(turn=state.turn, from_samples=happened.start_samples),)
    state = replace(state, overlap=Overlap(began_ns=happened.at_ns))
    if not reply.interruptible:
        return state, commands
    heard_ns = 0 if reply.began_ns is None else happened.at_ns - reply.began_ns
    if reply.began_ns is None or heard_ns < settings.retract_ms * MILLISECOND_NS:
        return hold_reply(state, happened.at_ns, commands)
    look = SetTimer(timer=Timer.INTERRUPT, at_ns=_after(happened.at_ns, settings.interrupt_ms), generation=state.turn)
    if not settings.judge_overlap or not settings.duck_ms:
        return state, (*commands, look)
    duck = SetTimer(timer=Timer.DUCK, at_ns=_after(happened.at_ns, settings.duck_ms), generation=reply.number)
    state = replace(state, overlap=Overlap(began_ns=happened.at_ns, soft=True))
    return state, (*commands, DuckReply(draft=reply.number, soft=True), duck, look)


def voice_over_reply_stops(state: Dialogue, happened: VoiceStopped | InputStalled) -> Outcome:
    """They may have said something short; unless they speak since a turn that lasted too long: that is answered."""
    if not state.voice_active:
        return state, ()
    after = replace(state, voice_active=False)
    overlap = state.overlap
    if overlap is None and drafting(state).interruptible:
        return _answer_instead(after, happened, happened.at_ns)
    overlap = replace(
        overlap or Overlap(began_ns=happened.ended_ns),
        ended_ns=happened.ended_ns,
        end_samples=happened.end_samples,
        says_nothing=not state.settings.judge_overlap,
    )
    after, commands = _louder(replace(after, overlap=overlap))
    commands = (CancelTimer(timer=Timer.INTERRUPT), *commands)
    if state.settings.judge_overlap and drafting(state).interruptible:
        commands = (*commands, Transcribe(turn=state.turn))
    return after, commands


def words_over_reply(state: Dialogue, happened: TranscriptGrew) -> Outcome:
    overlap = state.overlap
    if overlap is None or happened.turn != state.turn or not drafting(state).interruptible:
        return state, ()
    if not state.settings.judge_overlap:
        return state, ()
    if not says_something(happened.transcript.text, state.settings.backchannels):
        is_all = overlap.ended_ns is not None and happened.transcript.heard_samples >= overlap.end_samples
        return replace(state, overlap=replace(overlap, says_nothing=is_all)), ()
    if overlap.ended_ns is None:
        return take_turn_back(state, happened.at_ns, ())
    stopped = VoiceStopped(at_ns=happened.at_ns, end_samples=overlap.end_samples, ended_ns=overlap.ended_ns)
    return _answer_instead(state, stopped, happened.at_ns)


def timer_fires_in_reply(state: Dialogue, happened: TimerFired) -> Outcome:
    match happened.timer:
        case Timer.INTERRUPT if happened.generation == state.turn:
            return _look_at_overlap(state, happened.at_ns)
        case Timer.DUCK if happened.generation == drafting(state).number:
            return _louder(state)
        case Timer.TOOL:
            return tool_takes_long(state, happened)
        case _:
            return state, ()


def reply_begins(state: Dialogue, happened: ReplyBegan) -> Outcome:
    reply = drafting(state)
    if happened.draft != reply.number or reply.began_ns is not None:
        return state, ()
    return replace(state, draft=replace(reply, began_ns=happened.at_ns)), ()


def reply_fails(state: Dialogue, happened: DraftFailed) -> Outcome:
    return reply_ends(state, ReplyEnded(at_ns=happened.at_ns, draft=happened.draft, heard=()))


def reply_ends(state: Dialogue, happened: ReplyEnded) -> Outcome:
    reply, overlap = drafting(state), state.overlap
    if happened.draft != reply.number:
        return stopped_reply_ends(state, happened)
    history = told(state.history, reply.uses, happened.heard, reply.number)
    state = replace(state, history=history, draft=None, overlap=None)
    if overlap is None or overlap.ended_ns is None:
        return yield_floor(state, OF_REPLY, happened.at_ns)
    # what was said over its last words answers it, be it a mere "yes"; over one that would not stop, all must count
    answers = happened.at_ns - overlap.ended_ns <= state.settings.answer_ms * MILLISECOND_NS
    if not answers and reply.interruptible and overlap.says_nothing:
        return yield_floor(state, (*OF_REPLY, AbandonTurn(turn=state.turn)), happened.at_ns)
    stopped = VoiceStopped(at_ns=happened.at_ns, end_samples=overlap.end_samples, ended_ns=overlap.ended_ns)
    after, commands = caller_pauses(replace(state, forced=state.input_ended), stopped)
    after = replace(after, draft=replace(drafting(after), wants_words=not answers))
    return after, (*OF_REPLY, OpenTurn(turn=state.turn), longest(state, happened.at_ns), *commands)


def forget_overlap(state: Dialogue) -> Outcome:
    """What was said over the reply is of no interest any more."""
    if state.overlap is None:
        return state, ()
    after, louder = _louder(state)
    commands = (CancelTimer(timer=Timer.INTERRUPT), *louder, AbandonTurn(turn=state.turn))
    return replace(after, overlap=None, voice_active=False), commands


def input_ends_in_reply(state: Dialogue, _: InputEnded) -> Outcome:
    after, commands = _louder(replace(state, input_ended=True))
    return after, (CancelTimer(timer=Timer.INTERRUPT), *commands)


def _look_at_overlap(state: Dialogue, at_ns: int) -> Outcome:
    overlap, settings = state.overlap, state.settings
    if overlap is None or not state.voice_active or not drafting(state).interruptible:
        return state, ()
    if not settings.judge_overlap:
        return take_turn_back(state, at_ns, ())
    surely_ns = _after(overlap.began_ns, settings.surely_ms)
    if at_ns >= surely_ns:
        return hold_reply(state, at_ns, ())
    next_ns = min(_after(at_ns, settings.interrupt_ms), surely_ns)
    again = SetTimer(timer=Timer.INTERRUPT, at_ns=next_ns, generation=state.turn)
    return state, (Transcribe(turn=state.turn), again)


def _answer_instead(state: Dialogue, stopped: VoiceStopped | InputStalled, at_ns: int) -> Outcome:
    """The caller has said something over our reply and paused: stop, and answer that."""
    after, stop = take_turn_back(state, at_ns, ())
    after, pause = caller_pauses(replace(after, forced=state.input_ended), stopped)
    return after, (*stop, *pause)


def _louder(state: Dialogue) -> Outcome:
    """The reply sounds as before, if it was softer."""
    if state.overlap is None or not state.overlap.soft:
        return state, ()
    number = drafting(state).number
    after = replace(state, overlap=replace(state.overlap, soft=False))
    return after, (CancelTimer(timer=Timer.DUCK), DuckReply(draft=number, soft=False))


def _after(at_ns: int, wait_ms: int) -> int:
    return at_ns + wait_ms * MILLISECOND_NS
