"""What happens when the model wants something done: tools are called, run, and return, whoever has the floor.

A tool without side effects may run while the reply is still a draft; any other waits until the turn is confirmed.
What has run is never undone and never run again: its call and its output stay in the history, heard or not, and when
a turn that was answered too early makes the model call for the same once more, the first call's output serves.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from antiphon.core.clock import MILLISECOND_NS
from antiphon.dialogue.commands import CancelTimer, Command, FinishReply, RunTool, SayText, SetTimer
from antiphon.dialogue.floor import Outcome, drafting, with_draft, write_reply
from antiphon.dialogue.history import output_of, returned, untold_calls
from antiphon.dialogue.state import Dialogue, Draft, Phase, Use
from antiphon.dialogue.stimuli import Timer, TimerFired, ToolCalled, ToolReturned, ToolsWanted

if TYPE_CHECKING:
    from antiphon.core.flow import ToolCall
    from antiphon.dialogue.history import History


def tool_called(state: Dialogue, happened: ToolCalled) -> Outcome:
    draft = _draft(state, happened.draft)
    if draft is None:
        return state, ()
    use = Use(call=happened.call, place=draft.place, said=happened.said)
    return _go_on_unless_held(with_draft(state, replace(draft, uses=(*draft.uses, use))), draft, happened.at_ns)


def tools_wanted(state: Dialogue, happened: ToolsWanted) -> Outcome:
    draft = _draft(state, happened.draft)
    if draft is None:
        return state, ()
    return _go_on_unless_held(with_draft(state, replace(draft, waits=True)), draft, happened.at_ns)


def tool_returned(state: Dialogue, happened: ToolReturned) -> Outcome:
    state = replace(state, history=returned(state.history, happened.call, happened.text))
    commands: tuple[Command, ...] = ()
    for draft in (state.held, state.stopping, state.draft):
        if draft and any(_waits_for(use, happened.call) for use in draft.uses):
            uses = tuple(
                replace(use, output=happened.text) if _waits_for(use, happened.call) else use for use in draft.uses
            )
            state, commands = _go_on_unless_held(with_draft(state, replace(draft, uses=uses)), draft, happened.at_ns)
    return state, commands


def go_on(state: Dialogue, commands: tuple[Command, ...], at_ns: int, *, afresh: bool = True) -> Outcome:
    """Start what may run of the present reply's tools; once all have returned, let the model go on.

    `afresh`: the reply has just been confirmed or resumed, and patience begins now.
    """
    draft = drafting(state)
    is_ours = state.phase is Phase.SPEAKING
    free = {rule.name for rule in state.tools if rule.in_draft}
    uses = tuple(
        _begun(use, state.history) if not use.started and (is_ours or use.call.name in free) else use
        for use in draft.uses
    )
    starting = [use for use, before in zip(uses, draft.uses, strict=True) if use.started > before.started]
    draft = replace(draft, uses=uses)
    commands = (*commands, *(RunTool(draft=draft.number, call=use.call) for use in starting if not use.repeats))
    theirs = {rule.name for rule in state.tools if rule.by_owner}
    here = [use for use in uses if use.place == draft.place and not use.repeats]
    if draft.waits and is_ours and any(use.call.name in theirs for use in here):
        draft = replace(draft, waits=False)
        return replace(state, draft=draft), (*commands, CancelTimer(timer=Timer.TOOL), FinishReply(draft=draft.number))
    if draft.waits and all(use.output is not None for use in uses):
        draft = replace(draft, waits=False, place=draft.place + 1, half_written=draft.is_provisional)
        more = write_reply(state, draft, "" if is_ours else draft.words)
        return replace(state, draft=draft), (*commands, CancelTimer(timer=Timer.TOOL), more)
    if is_ours and any(use.output is None for use in uses) and (starting or afresh):
        patience_ns = state.settings.tool_patience_ms * MILLISECOND_NS
        commands = (*commands, SetTimer(timer=Timer.TOOL, at_ns=at_ns + patience_ns, generation=draft.number))
    return replace(state, draft=draft), commands


def tool_takes_long(state: Dialogue, happened: TimerFired) -> Outcome:
    """Say what the tool's author wants said, unless the reply has said something already."""
    draft = drafting(state)
    waiting = [use for use in draft.uses if use.output is None]
    if happened.generation != draft.number or not waiting or any(use.said.strip() for use in draft.uses):
        return state, ()
    preambles = {rule.name: rule.preamble for rule in state.tools}
    text = next((preambles[use.call.name] for use in waiting if preambles.get(use.call.name)), "")
    if not text:
        return state, ()
    first = next(at for at, use in enumerate(draft.uses) if use.place == draft.place)
    uses = (*draft.uses[:first], replace(draft.uses[first], said=text), *draft.uses[first + 1 :])
    return replace(state, draft=replace(draft, uses=uses)), (SayText(draft=draft.number, text=text, is_whole=False),)


def _begun(use: Use, history: History) -> Use:
    for message in untold_calls(history):
        if message.call and (message.call.name, message.call.arguments) == (use.call.name, use.call.arguments):
            return replace(use, started=True, repeats=True, output=output_of(history, message.call))
    return replace(use, started=True)


def _waits_for(use: Use, call: ToolCall) -> bool:
    is_it = use.call == call
    if use.repeats:
        is_it = (use.call.name, use.call.arguments) == (call.name, call.arguments)
    return is_it and use.output is None


def _go_on_unless_held(state: Dialogue, draft: Draft, at_ns: int) -> Outcome:
    """A reply that is held goes on when it is resumed, one that is stopped never."""
    if state.draft is None or state.draft.number != draft.number:
        return state, ()
    return go_on(state, (), at_ns, afresh=False)


def _draft(state: Dialogue, number: int) -> Draft | None:
    return next((one for one in (state.draft, state.held) if one and one.number == number), None)
