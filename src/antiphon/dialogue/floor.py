"""Who gets the floor: the few moves that rules of several phases share."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from antiphon.core.clock import MILLISECOND_NS, SECOND_NS
from antiphon.dialogue.commands import (
    CancelTimer,
    Command,
    EndSession,
    Listen,
    OpenTurn,
    PauseReply,
    PlayDraft,
    SayText,
    SetTimer,
    StartDraft,
    StopReply,
    WriteReply,
)
from antiphon.dialogue.history import answerable, prompt
from antiphon.dialogue.state import Dialogue, Draft, Phase
from antiphon.dialogue.stimuli import InputEnded, InputStalled, Timer, VoiceStopped

if TYPE_CHECKING:
    from antiphon.core.flow import Message

Outcome: TypeAlias = tuple[Dialogue, tuple[Command, ...]]
Silence: TypeAlias = VoiceStopped | InputStalled | InputEnded  # how a caller falls silent
MOST_PASSES = 5  # of one reply; in the last one the model must speak
EVERYTHING = 2**62  # a position no stream reaches: all that was heard so far
OF_REPLY = (  # what runs on while a reply sounds
    CancelTimer(timer=Timer.INTERRUPT),
    CancelTimer(timer=Timer.DUCK),
    CancelTimer(timer=Timer.TOOL),
)


def hear(state: Dialogue, at_ns: int, commands: tuple[Command, ...]) -> Outcome:
    """The caller has the floor, for a new turn."""
    if state.settings.idle_ms:
        commands = (*commands, CancelTimer(timer=Timer.IDLE))
    after = replace(state, phase=Phase.HEARING, pauses=0, forced=False, goes_on=False, overlap=None, looked_ns=None)
    return after, (
        *commands,
        OpenTurn(turn=state.turn),
        next_look(state, at_ns),
        longest(state, at_ns),
    )


def longest(state: Dialogue, at_ns: int) -> SetTimer:
    """When a turn that begins now has lasted too long."""
    longest_ns = state.settings.longest_turn_s * SECOND_NS
    return SetTimer(timer=Timer.LONGEST_TURN, at_ns=at_ns + longest_ns, generation=state.turn)


def next_look(state: Dialogue, at_ns: int, *, not_before_ns: int = 0) -> SetTimer:
    """When to look at the caller's words again: soon, if a paused reply waits for them."""
    wait_ms = state.settings.interrupt_ms if state.held else state.settings.hop_ms
    due_ns = max(at_ns + wait_ms * MILLISECOND_NS, not_before_ns)
    return SetTimer(timer=Timer.HOP, at_ns=due_ns, generation=state.turn)


def caller_pauses(state: Dialogue, happened: Silence) -> Outcome:
    number = state.drafts + 1
    draft = Draft(
        number=number,
        ended_ns=happened.ended_ns,
        end_samples=happened.end_samples,
        pauses=state.pauses,
        interruptible=state.interruptible,
        wants_words=state.held is not None,
        options=state.usual,
    )
    after = replace(state, phase=Phase.DRAFTING, draft=draft, drafts=number, voice_active=False, looked_ns=None)
    return after, (
        CancelTimer(timer=Timer.HOP),
        StartDraft(draft=number, turn=state.turn, until_samples=happened.end_samples if state.by_hand else None),
    )


def next_turn_if_speaking(
    state: Dialogue, draft: Draft, commands: tuple[Command, ...]
) -> tuple[Dialogue, tuple[Command, ...]]:
    """Who went on speaking through the end of a turn that lasted too long is in the next one already."""
    if not state.voice_active:
        return state, commands
    start = draft.transcript.heard_samples if draft.transcript else draft.end_samples
    turn = state.turn + 1
    return replace(state, turn=turn, goes_on=True), (*commands, Listen(turn=turn, from_samples=start))


def take_turn_back(state: Dialogue, at_ns: int, commands: tuple[Command, ...]) -> Outcome:
    """What was heard of the reply until now is told by ReplyEnded, whatever phase it arrives in."""
    reply = drafting(state)
    after = replace(state, draft=None, stopping=reply)
    return hear(after, at_ns, (*commands, *OF_REPLY, StopReply(draft=reply.number)))


def hold_reply(state: Dialogue, at_ns: int, commands: tuple[Command, ...]) -> Outcome:
    """The caller gets the floor, for good if they say something: until then the reply could still go on."""
    reply = drafting(state)
    after = replace(state, draft=None, held=reply)
    return hear(after, at_ns, (*commands, *OF_REPLY, PauseReply(draft=reply.number)))


def let_go(state: Dialogue) -> Outcome:
    """Give up the reply that was held."""
    assert state.held is not None, "no reply is held"
    return replace(state, held=None, stopping=state.held), (StopReply(draft=state.held.number),)


def yield_floor(state: Dialogue, commands: tuple[Command, ...], at_ns: int) -> Outcome:
    """We have nothing more to say: the caller has the floor if they speak; without input nobody ever will."""
    if state.voice_active and state.input_ended:  # they spoke over our reply until the sound ended: answer that
        after, more = caller_pauses(
            replace(state, forced=True), VoiceStopped(at_ns=at_ns, end_samples=EVERYTHING, ended_ns=at_ns)
        )
        return after, (*commands, OpenTurn(turn=state.turn), *more)
    if state.voice_active:
        return hear(state, at_ns, commands)
    return _take_floor(replace(state, forced=False, goes_on=False), commands, at_ns)


def _take_floor(state: Dialogue, commands: tuple[Command, ...], at_ns: int) -> Outcome:
    """Nobody speaks: what waits for that comes next."""
    if state.to_say:
        return say_next(state, at_ns, commands)
    if state.committed:
        silence, state = state.committed, replace(state, committed=None)
        after, more = caller_pauses(replace(state, forced=True), silence)
        return after, (*commands, OpenTurn(turn=state.turn), *more)
    if state.requested:
        return answer_now(state, at_ns, commands)
    if state.input_ended:
        return end(state, commands)
    if state.settings.idle_ms:
        idle_ns = at_ns + state.settings.idle_ms * MILLISECOND_NS
        commands = (*commands, SetTimer(timer=Timer.IDLE, at_ns=idle_ns, generation=state.turn))
    return replace(state, phase=Phase.LISTENING), commands


def end(state: Dialogue, commands: tuple[Command, ...]) -> Outcome:
    """Nobody will speak any more: the conversation is over once the words of its turns are known for good."""
    if state.provisional:
        return replace(state, phase=Phase.LISTENING), commands
    return replace(state, phase=Phase.ENDED), (*commands, EndSession())


def answer_expected(state: Dialogue) -> bool:
    """Whether the turn in progress is to be answered as soon as it is over."""
    return state.answers or state.requested is not None


def answer_now(state: Dialogue, at_ns: int, commands: tuple[Command, ...]) -> Outcome:
    """Answer the conversation as it stands, as the owner has asked."""
    assert state.requested is not None, "nobody asked for a reply"
    number = state.drafts + 1
    reply = Draft(
        number=number, ended_ns=at_ns, end_samples=0, interruptible=state.interruptible, options=state.requested
    )
    after = replace(state, phase=Phase.SPEAKING, draft=reply, drafts=number, requested=None)
    return after, (*commands, write_reply(after, reply), PlayDraft(draft=number, options=reply.options))


def write_reply(state: Dialogue, draft: Draft, words: str = "", *, measures_end: bool = False) -> WriteReply:
    """Have a draft written, as far as its tools have come."""
    return WriteReply(
        draft=draft.number,
        messages=to_answer(state, draft, words),
        may_use_tools=draft.place + 1 < MOST_PASSES,
        measures_end=measures_end,
        options=draft.options,
    )


def to_answer(state: Dialogue, draft: Draft, words: str = "") -> tuple[Message, ...]:
    """What a draft is written from: `words` are those of a turn that is not history yet."""
    instructions = state.instructions if draft.options.instructions is None else draft.options.instructions
    return answerable(prompt(instructions, state.history, words, draft.uses))


def next_turn_by_hand(
    state: Dialogue, commands: tuple[Command, ...], draft: Draft
) -> tuple[Dialogue, tuple[Command, ...]]:
    """What comes after a turn that the owner ended belongs to the next one, and so does one that they ended since."""
    if not state.by_hand and state.committed is None:
        return state, commands
    turn = state.turn + 1
    start = max(draft.end_samples, state.next_from)
    return replace(state, turn=turn), (*commands, Listen(turn=turn, from_samples=start))


def say_next(state: Dialogue, at_ns: int, commands: tuple[Command, ...]) -> Outcome:
    """Say what the owner wants said."""
    say, *rest = state.to_say
    number = state.drafts + 1
    reply = Draft(number=number, ended_ns=at_ns, end_samples=0, interruptible=say.interruptible)
    after = replace(state, phase=Phase.SPEAKING, draft=reply, drafts=number, to_say=tuple(rest), forced=False)
    return after, (
        *commands,
        SayText(draft=number, text=say.text, is_whole=True),
        PlayDraft(draft=number, options=reply.options),
    )


def with_draft(state: Dialogue, draft: Draft) -> Dialogue:
    """`state` with a newer version of one of its drafts."""
    if state.draft and state.draft.number == draft.number:
        return replace(state, draft=draft)
    if state.held and state.held.number == draft.number:
        return replace(state, held=draft)
    return replace(state, stopping=draft)


def drafting(state: Dialogue) -> Draft:
    assert state.draft is not None, f"no draft while {state.phase.value}"
    return state.draft
