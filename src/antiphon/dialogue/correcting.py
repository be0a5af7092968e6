"""What happens when a careful ear has heard again what a quick one heard: its words count from then on.

A draft may be begun with provisional words, so that the first words of a reply are there soon. Those that correct them
come once. Before the turn is confirmed they become the draft's (drafting.py); afterwards they become the history's,
whoever has the floor, and the owner is told. Either way a reply that was written from the provisional ones goes on
from what is said now, with what it says already as its beginning. Whether the turn was over is not judged again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from antiphon.dialogue.commands import Command, CorrectTurn, WriteOn
from antiphon.dialogue.floor import Outcome, end, to_answer, with_draft
from antiphon.dialogue.history import reworded, turn_item
from antiphon.dialogue.state import Dialogue, Draft, Phase, Provisional

if TYPE_CHECKING:
    from antiphon.dialogue.stimuli import WordsCorrected

MOST_PROVISIONAL = 8  # turns that wait for their words; of more than that the oldest keeps those it has


def turn_corrected(state: Dialogue, happened: WordsCorrected) -> Outcome:
    """The words of a turn that is over; where the careful ear heard none, the quick one's stay."""
    commands: tuple[Command, ...] = ()
    turn = next((one for one in state.provisional if one.draft == happened.draft), None)
    if turn is not None:
        text = happened.transcript.text.strip() or turn.text
        state = replace(
            state,
            history=reworded(state.history, turn_item(turn.turn), text),
            provisional=tuple(one for one in state.provisional if one is not turn),
        )
        commands = (CorrectTurn(turn=turn.turn, text=text),)
    for reply in (state.draft, state.held):
        if reply and reply.number == happened.draft and reply.is_provisional:
            state = with_draft(state, replace(reply, corrected=happened.transcript))
    if state.phase is Phase.LISTENING and state.input_ended:
        return end(state, commands)
    return write_on(state, commands)


def write_on(state: Dialogue, commands: tuple[Command, ...]) -> Outcome:
    """Have the rest of the present reply written, if it waits for words that are known by now.

    Not while tools are used: once they have returned it is written from the corrected words anyway.
    """
    draft = state.draft
    if draft is None or not draft.half_written or draft.is_provisional or draft.failed or draft.uses_tools:
        return state, commands
    words = "" if state.phase is Phase.SPEAKING else draft.words
    order = WriteOn(draft=draft.number, messages=to_answer(state, draft, words))
    return replace(state, draft=replace(draft, half_written=False)), (*commands, order)


def expect_words(state: Dialogue, draft: Draft) -> Outcome:
    """The draft's turn is confirmed; if its words are provisional, what corrects them will be its own."""
    if not draft.is_provisional:
        return state, ()
    turns = (*state.provisional, Provisional(draft=draft.number, turn=state.turn, text=draft.words))
    given_up = tuple(CorrectTurn(turn=one.turn, text=one.text) for one in turns[:-MOST_PROVISIONAL])
    return replace(state, provisional=turns[-MOST_PROVISIONAL:]), given_up
