"""What the conversation's owner does: a client may end turns, ask for replies, cancel them, and edit the history.

Requests that make no sense in the present phase change nothing; whoever speaks to clients tells them so before.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from antiphon.dialogue.commands import AbandonTurn, CancelTimer, Command, DropDraft, Idle, Listen, OpenTurn, StopReply
from antiphon.dialogue.drafting import judge
from antiphon.dialogue.floor import (
    OF_REPLY,
    Outcome,
    answer_now,
    caller_pauses,
    drafting,
    let_go,
    yield_floor,
)
from antiphon.dialogue.hearing import with_interruptible
from antiphon.dialogue.history import added, deleted, truncated
from antiphon.dialogue.speaking import forget_overlap
from antiphon.dialogue.state import Phase
from antiphon.dialogue.stimuli import Timer, TimerFired, VoiceStopped

if TYPE_CHECKING:
    from antiphon.dialogue.state import Dialogue
    from antiphon.dialogue.stimuli import (
        InputCleared,
        ItemAdded,
        ItemDeleted,
        ItemTruncated,
        Reconfigured,
        ReplyCancelled,
        ReplyRequested,
        TurnCommitted,
    )

OF_TURN = (CancelTimer(timer=Timer.HOP), CancelTimer(timer=Timer.CONFIRM), CancelTimer(timer=Timer.LONGEST_TURN))


def reconfigured(state: Dialogue, happened: Reconfigured) -> Outcome:
    """What is under way goes on as it was begun; turns that the owner ends begin where the sound stands now."""
    begins = happened.by_hand and not state.by_hand
    after = replace(
        state,
        settings=happened.settings,
        turn_end=happened.turn_end or state.turn_end,
        instructions=happened.instructions,
        tools=happened.tools,
        interruptible=happened.interruptible,
        by_hand=happened.by_hand,
        answers=happened.answers,
        usual=happened.usual,
    )
    if happened.interruptible != state.interruptible:  # what was said of one reply in particular stays
        after = with_interruptible(after, interruptible=happened.interruptible)
    commands: tuple[Command, ...] = () if happened.settings.idle_ms else (CancelTimer(timer=Timer.IDLE),)
    if not begins:
        return after, commands
    after = replace(after, voice_active=False)
    if state.phase is Phase.DRAFTING:
        return after, commands
    if state.phase is Phase.HEARING:  # what they are saying is the beginning of the turn that the owner will end
        if after.held:
            after, stop = let_go(after)
            commands = (*commands, *stop)
        return yield_floor(after, (*commands, *OF_TURN), happened.at_ns)
    after, more = forget_overlap(after)
    after = replace(after, turn=state.turn + 1)
    return after, (*commands, *more, Listen(turn=after.turn, from_samples=happened.end_samples))


def turn_committed(state: Dialogue, happened: TurnCommitted) -> Outcome:
    silence = VoiceStopped(at_ns=happened.at_ns, end_samples=happened.end_samples, ended_ns=happened.ended_ns)
    match state.phase:
        case Phase.LISTENING if state.by_hand:
            after, commands = caller_pauses(replace(state, forced=True), silence)
            return after, (CancelTimer(timer=Timer.IDLE), OpenTurn(turn=state.turn), *commands)
        case Phase.HEARING:  # whoever speaks on is in the next turn, as after one that lasted too long
            after, commands = caller_pauses(replace(state, forced=True), silence)
            return replace(after, voice_active=state.voice_active), commands
        case Phase.DRAFTING if state.by_hand:
            return replace(state, committed=silence), ()
        case Phase.DRAFTING:
            return judge(replace(state, forced=True), happened.at_ns)
        case Phase.SPEAKING if state.by_hand:
            return replace(state, committed=silence), ()
        case _:
            return state, ()


def input_cleared(state: Dialogue, happened: InputCleared) -> Outcome:
    """The turn in progress was never said; one that the owner has ended was."""
    if state.by_hand:
        state = replace(state, next_from=happened.end_samples)
        if state.phase is Phase.DRAFTING or state.committed:
            return state, ()
        return state, (Listen(turn=state.turn, from_samples=happened.end_samples),)
    state = replace(state, voice_active=False)
    match state.phase:
        case Phase.HEARING:
            commands: tuple[Command, ...] = (*OF_TURN, AbandonTurn(turn=state.turn))
        case Phase.DRAFTING:
            commands = (*OF_TURN, DropDraft(draft=drafting(state).number), AbandonTurn(turn=state.turn))
            state = replace(state, draft=None)
        case Phase.SPEAKING:
            return forget_overlap(state)
        case _:
            return state, ()
    if state.held:
        state, stop = let_go(state)
        commands = (*commands, *stop)
    return yield_floor(replace(state, forced=False), commands, happened.at_ns)


def reply_requested(state: Dialogue, happened: ReplyRequested) -> Outcome:
    if state.phase is Phase.SPEAKING:
        return state, ()
    state = replace(state, requested=happened.options)
    if state.phase is Phase.LISTENING:
        return answer_now(state, happened.at_ns, (CancelTimer(timer=Timer.IDLE),))
    return state, ()


def reply_cancelled(state: Dialogue, happened: ReplyCancelled) -> Outcome:
    state = replace(state, requested=None)
    if state.held:
        return let_go(state)
    if state.phase is not Phase.SPEAKING:
        return state, ()
    reply = drafting(state)
    state = replace(state, draft=None, overlap=None, stopping=reply)
    return yield_floor(state, (*OF_REPLY, StopReply(draft=reply.number)), happened.at_ns)


def item_added(state: Dialogue, happened: ItemAdded) -> Outcome:
    return replace(state, history=added(state.history, happened.message, happened.after)), ()


def item_deleted(state: Dialogue, happened: ItemDeleted) -> Outcome:
    return replace(state, history=deleted(state.history, happened.item)), ()


def item_truncated(state: Dialogue, happened: ItemTruncated) -> Outcome:
    return replace(state, history=truncated(state.history, happened.item, happened.text)), ()


def idles(state: Dialogue, happened: TimerFired) -> Outcome:
    if happened.timer is not Timer.IDLE:
        return state, ()
    return state, (Idle(),)
