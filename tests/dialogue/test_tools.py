"""What the model wants done: when it runs, what it is told, and what is remembered."""

from __future__ import annotations

import pytest
from tests.dialogue.conversation import SYSTEM, Conversation, answering, heard, ns

from antiphon.core.flow import Message, ToolCall
from antiphon.dialogue.commands import (
    CancelTimer,
    DropDraft,
    FinishReply,
    PlayDraft,
    ResumeReply,
    RunTool,
    SayText,
    SetTimer,
    StopReply,
    WriteReply,
)
from antiphon.dialogue.floor import MOST_PASSES
from antiphon.dialogue.history import LONGEST, NO_RESULT_YET, prompt, said
from antiphon.dialogue.options import ReplyOptions
from antiphon.dialogue.state import Phase, ToolRule
from antiphon.dialogue.stimuli import ReplyEnded, ReplyRequested, Timer, ToolCalled, ToolReturned, ToolsWanted

pytestmark = pytest.mark.unit

ORDER = ToolRule(name="order", in_draft=False, preamble="One moment.")
PRICE = ToolRule(name="price", in_draft=True, preamble="")
LATTE = Message("user", "A latte, please.")
CALL = ToolCall("1", "order", "{}")
ASK = ToolCall("2", "price", "{}")


def talking() -> Conversation:
    return Conversation(tools=(ORDER, PRICE))


def calls(talk: Conversation, at_ms: float, call: ToolCall, said_before: str = "", draft: int = 1) -> tuple:
    first = talk.happens(ToolCalled(at_ns=ns(at_ms), draft=draft, call=call, said=said_before))
    return (*first, *talk.happens(ToolsWanted(at_ns=ns(at_ms), draft=draft)))


def returns(talk: Conversation, at_ms: float, call: ToolCall, text: str = "done") -> tuple:
    return talk.happens(ToolReturned(at_ns=ns(at_ms), call=call, text=text))


def ends(talk: Conversation, at_ms: float, *heard_of: str, draft: int = 1) -> tuple:
    return talk.happens(ReplyEnded(at_ns=ns(at_ms), draft=draft, heard=heard_of))


def test_a_tool_with_effects_waits_for_the_turn_to_be_confirmed() -> None:
    """In the draft nothing runs; confirmation starts it, and its result lets the model go on."""
    talk = heard(talk=talking())
    assert calls(talk, 2350, CALL) == ()
    commands = talk.mass(2410, 0.99)
    assert commands[-3:] == (
        PlayDraft(draft=1),
        RunTool(draft=1, call=CALL),
        SetTimer(timer=Timer.TOOL, at_ns=ns(2810), generation=1),
    )
    assert returns(talk, 2600, CALL) == (
        CancelTimer(timer=Timer.TOOL),
        WriteReply(
            draft=1,
            messages=(SYSTEM, LATTE, Message("assistant", "", CALL), Message("tool", "done", CALL)),
            may_use_tools=True,
        ),
    )


def test_a_tool_without_effects_runs_in_the_draft() -> None:
    """The reply is written before the turn is confirmed; the prompt holds the words that are not history yet."""
    talk = heard(talk=talking())
    assert calls(talk, 2350, ASK) == (RunTool(draft=1, call=ASK),)
    commands = returns(talk, 2380, ASK, "$4")
    assert commands[-1] == WriteReply(
        draft=1,
        messages=(SYSTEM, LATTE, Message("assistant", "", ASK), Message("tool", "$4", ASK)),
        may_use_tools=True,
    )
    assert talk.mass(2410, 0.99)[-1] == PlayDraft(draft=1)


def test_of_a_dropped_draft_nothing_is_left() -> None:
    """The caller goes on: what the tool found out is in no prompt."""
    talk = heard(talk=talking())
    calls(talk, 2350, ASK)
    assert talk.speaks(2400)[0] == DropDraft(draft=1)
    assert returns(talk, 2420, ASK, "$4") == ()
    talk.pauses(3096, 3000)
    talk.transcribed(3200, "A latte, please, and a tea.", draft=2)
    assert talk.ordered(WriteReply)[-1].messages == (SYSTEM, Message("user", "A latte, please, and a tea."))


def test_what_was_said_before_the_call_comes_before_it_in_the_history() -> None:
    """User, preamble, call, output, answer, in that order; the preamble once."""
    talk = answering(talking())
    calls(talk, 2500, CALL, "Let me see. ")
    commands = returns(talk, 2505, CALL, "ready at ten")
    exchange = (Message("assistant", "", CALL), Message("tool", "ready at ten", CALL))
    assert commands[-1].messages == (SYSTEM, LATTE, Message("assistant", "Let me see."), *exchange)
    ends(talk, 5000, "Let me see. ", "It is ready at ten.")
    assert talk.state.history == (
        LATTE,
        Message("assistant", "Let me see."),
        *exchange,
        Message("assistant", "It is ready at ten."),
    )


def test_several_calls_run_at_once_and_the_model_gets_all_results() -> None:
    """It goes on when the last has returned, in whichever order."""
    talk = answering(talking())
    talk.happens(ToolCalled(at_ns=ns(2500), draft=1, call=CALL, said=""))
    talk.happens(ToolCalled(at_ns=ns(2501), draft=1, call=ASK, said=""))
    assert talk.ordered(RunTool) == [RunTool(draft=1, call=CALL), RunTool(draft=1, call=ASK)]
    assert returns(talk, 2550, ASK, "$4") == ()
    talk.happens(ToolsWanted(at_ns=ns(2560), draft=1))
    messages = returns(talk, 2600, CALL)[-1].messages
    assert messages[2:] == (
        Message("assistant", "", CALL),
        Message("tool", "done", CALL),
        Message("assistant", "", ASK),
        Message("tool", "$4", ASK),
    )


def test_a_slow_tool_gets_a_preamble_once() -> None:
    """Said after `tool_patience_ms`, and the model knows that it was; a reply that has said something needs none."""
    talk = answering(talking())
    calls(talk, 2500, CALL)
    assert talk.fires(2900, Timer.TOOL, 1) == (SayText(draft=1, text="One moment.", is_whole=False),)
    assert talk.fires(3000, Timer.TOOL, 1) == ()
    messages = returns(talk, 3500, CALL)[-1].messages
    assert messages[2:] == (
        Message("assistant", "One moment."),
        Message("assistant", "", CALL),
        Message("tool", "done", CALL),
    )
    silent = answering(talking())
    calls(silent, 2500, CALL, "Let me see.")
    assert silent.fires(2900, Timer.TOOL, 1) == ()


@pytest.mark.parametrize("returned_before", [True, False])
def test_a_barge_in_loses_no_result(returned_before: bool) -> None:
    """Whether it had returned or returns later: call and output are in the history, next to each other, once."""
    talk = answering(talking())
    calls(talk, 2500, CALL)
    if returned_before:
        returns(talk, 2600, CALL)
    talk.speaks(3000)
    assert StopReply(draft=1) in talk.grows(3200, "No, wait", 0)
    ends(talk, 3201, "It")
    if not returned_before:
        assert returns(talk, 3300, CALL) == ()
        assert returns(talk, 3301, CALL) == ()
    talk.pauses(4096, 4000)
    talk.transcribed(4200, "No, wait.", draft=2)
    exchange = (Message("assistant", "", CALL), Message("tool", "done", CALL))
    told = (Message("assistant", "It"), *exchange)
    assert talk.ordered(WriteReply)[-1].messages == (SYSTEM, LATTE, *told, Message("user", "No, wait."))
    assert len(talk.ordered(RunTool)) == 1


def test_a_call_that_has_not_returned_is_said_to_have_no_result_yet() -> None:
    """Models want an output to every call."""
    talk = answering(talking())
    calls(talk, 2500, CALL)
    talk.speaks(3000)
    talk.grows(3200, "No, wait", 0)
    ends(talk, 3201, "")
    talk.pauses(4096, 4000)
    talk.transcribed(4200, "No, wait.", draft=2)
    assert talk.ordered(WriteReply)[-1].messages[2:4] == (
        Message("assistant", "", CALL),
        Message("tool", NO_RESULT_YET, CALL),
    )


def test_a_held_reply_goes_on_with_its_tool_when_it_is_resumed() -> None:
    """The result came while a cough was looked into."""
    talk = heard(talk=talking())
    calls(talk, 2350, CALL)
    talk.mass(2410, 0.99)
    talk.speaks(2450)
    assert returns(talk, 2500, CALL) == ()
    talk.pauses(2650, 2550)
    commands = talk.transcribed(2800, "", draft=2)
    assert ResumeReply(draft=1) in commands
    assert commands[-1].draft == 1
    assert isinstance(commands[-1], WriteReply)
    assert len(talk.ordered(RunTool)) == 1


def test_a_model_that_only_ever_calls_must_speak_in_the_end() -> None:
    """The last pass is offered no tools."""
    talk = answering(talking())
    offered = []
    for place in range(MOST_PASSES - 1):
        call = ToolCall(str(place), "order", "{}")
        calls(talk, 2500 + place, call)
        offered.append(returns(talk, 2500.5 + place, call)[-1].may_use_tools)
    assert offered == [True] * (MOST_PASSES - 2) + [False]


def test_a_reply_that_fails_after_its_tool_ran_is_remembered_to_have_run_it() -> None:
    """Nothing was heard, but something was done, and the caller has not heard of it."""
    talk = answering(talking())
    calls(talk, 2500, CALL)
    returns(talk, 2600, CALL)
    ends(talk, 2700)
    assert talk.state.phase is Phase.LISTENING
    assert talk.state.history == (LATTE, Message("assistant", "", CALL), Message("tool", "done", CALL))


def test_a_long_history_keeps_outputs_with_their_calls() -> None:
    """What is cut off at the front never leaves an output alone."""
    history = (Message("assistant", "", CALL), Message("tool", "done", CALL))
    for place in range(LONGEST - 1):
        history = said(history, "user", str(place))
    assert len(history) == LONGEST - 1
    assert prompt("", history)[0].role == "user"


def test_a_call_repeated_while_the_first_still_runs_gets_its_result() -> None:
    """Both are answered by it, and the model goes on."""
    talk = answering(talking())
    calls(talk, 2500, CALL)
    talk.speaks(3000)
    talk.grows(3200, "No, wait", 0)
    ends(talk, 3201)
    talk.pauses(4096, 4000)
    talk.transcribed(4200, "No, wait.", draft=2)
    talk.mass(4300, 0.99)
    again = ToolCall("9", "order", "{}")
    assert calls(talk, 4400, again, draft=2)[-1] == SetTimer(timer=Timer.TOOL, at_ns=ns(4800), generation=2)
    assert isinstance(returns(talk, 4500, CALL)[-1], WriteReply)
    assert len(talk.ordered(RunTool)) == 1


def test_an_owners_tool_ends_the_reply_and_its_result_serves_a_repeated_call() -> None:
    """The owner runs it once; when the model calls for the same again it is told what came of it."""
    theirs = ToolRule(name="order", in_draft=False, preamble="", by_owner=True)
    talk = answering(Conversation(tools=(theirs,)))
    assert calls(talk, 2500, CALL)[-1] == FinishReply(draft=1)
    ends(talk, 2600, "")
    returns(talk, 2700, CALL, "number 17")
    talk.happens(ReplyRequested(at_ns=ns(2800), options=ReplyOptions()))
    assert isinstance(calls(talk, 2900, ToolCall("9", "order", "{}"), draft=2)[-1], WriteReply)
    assert len(talk.ordered(RunTool)) == 1
