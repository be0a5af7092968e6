"""Words that a quick ear heard and a careful one heard again: whose count, from when on, and what is written on."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.dialogue.conversation import SETTINGS, SYSTEM, Conversation, heard, ns

from antiphon.core.flow import Message, ToolCall
from antiphon.dialogue.commands import (
    AbandonTurn,
    CancelTimer,
    ConfirmTurn,
    CorrectTurn,
    DropDraft,
    EndSession,
    FinishReply,
    PlayDraft,
    Prefill,
    ResumeReply,
    StopReply,
    WriteOn,
    WriteReply,
)
from antiphon.dialogue.correcting import MOST_PROVISIONAL
from antiphon.dialogue.options import ReplyOptions
from antiphon.dialogue.state import Phase, ToolRule
from antiphon.dialogue.stimuli import (
    DraftFailed,
    InputCleared,
    ItemAdded,
    ItemDeleted,
    Reconfigured,
    ReplyCancelled,
    ReplyEnded,
    ReplyRequested,
    Stimulus,
    Timer,
    ToolCalled,
    ToolReturned,
    ToolsWanted,
    TurnCommitted,
)
from antiphon.dialogue.turn_end import Evidence

pytestmark = pytest.mark.unit

QUICK, CAREFUL = "A lot of peas.", "A latte, please."
ASKED = Message("user", CAREFUL)
ORDER = ToolRule(name="order", in_draft=False, preamble="One moment.")
PRICE = ToolRule(name="price", in_draft=True, preamble="")
CALL = ToolCall("1", "order", "{}")
ASK = ToolCall("2", "price", "{}")


def quickly(text: str = QUICK, talk: Conversation | None = None) -> Conversation:
    """As `heard`, by the quick ear."""
    return heard(text, talk, provisional=True)


def answered(text: str = QUICK, talk: Conversation | None = None) -> Conversation:
    """Confirmed at 2410 by the quick ear's words alone; the reply has sounded since 2420."""
    talk = quickly(text, talk)
    talk.voiced(2400)
    talk.mass(2410, 0.99)
    talk.begins(2420)
    assert talk.state.phase is Phase.SPEAKING
    return talk


def by_owner(**changes: object) -> Conversation:
    """A conversation that its owner conducts."""
    talk = Conversation(tools=(ORDER, PRICE))
    told = Reconfigured(
        at_ns=0,
        settings=SETTINGS,
        instructions="Be brief.",
        tools=(ORDER, PRICE),
        interruptible=True,
        by_hand=False,
        answers=True,
        usual=ReplyOptions(),
        end_samples=0,
    )
    talk.happens(replace(told, **changes))
    return talk


def commit(at_ms: float) -> TurnCommitted:
    return TurnCommitted(at_ns=ns(at_ms), end_samples=round(at_ms * 16), ended_ns=ns(at_ms))


def calls(talk: Conversation, at_ms: float, call: ToolCall) -> None:
    talk.happens(ToolCalled(at_ns=ns(at_ms), draft=1, call=call, said=""))
    talk.happens(ToolsWanted(at_ns=ns(at_ms), draft=1))


def returns(talk: Conversation, at_ms: float, call: ToolCall) -> tuple:
    return talk.happens(ToolReturned(at_ns=ns(at_ms), call=call, text="done"))


# Before the turn is confirmed.


def test_a_correction_in_the_pause_has_the_reply_written_on() -> None:
    """From the careful words, once; the wait goes on as it was, for it was judged by the quick ear's."""
    talk = quickly()
    before = talk.state.draft
    assert before is not None
    assert talk.corrected(2350, CAREFUL) == (WriteOn(draft=1, messages=(SYSTEM, ASKED)),)
    assert talk.state.draft is not None
    assert talk.state.draft.evidence == before.evidence
    assert talk.corrected(2360, "A latte.") == ()


def test_a_turn_that_was_corrected_in_time_is_confirmed_with_the_careful_words() -> None:
    """Nothing is provisional about it; the evidence tells what it was judged by."""
    talk = quickly()
    talk.corrected(2350, CAREFUL)
    commands = talk.mass(2410, 0.99)
    assert commands == (
        CancelTimer(timer=Timer.CONFIRM),
        CancelTimer(timer=Timer.LONGEST_TURN),
        ConfirmTurn(
            turn=1,
            draft=1,
            text=CAREFUL,
            posterior=pytest.approx(0.99),
            evidence=Evidence(text=QUICK, end_mass=0.99),
            forced=False,
            provisional=False,
        ),
        PlayDraft(draft=1),
    )
    assert talk.state.history == (ASKED,)
    assert talk.corrected(2500, QUICK) == ()


def test_a_correction_that_nobody_announced_changes_nothing() -> None:
    """In the pause, while the reply sounds, and afterwards."""
    talk = heard()
    assert talk.corrected(2350, "Something else.") == ()
    talk.mass(2410, 0.99)
    assert talk.corrected(2420, "Something else.") == ()
    talk.reply_ends(5000, "Coming up.")
    before = talk.state
    assert talk.corrected(5100, "Something else.") == ()
    assert talk.state == before


def test_the_correction_of_a_draft_that_was_dropped_is_stale() -> None:
    """The caller went on: the next draft hears all of the turn anew, and its own correction counts."""
    talk = quickly("I would bike a")
    talk.speaks(2500)
    before = talk.state
    assert talk.corrected(2550, "I would like a") == ()
    assert talk.state == before
    talk.pauses(3096, 3000)
    talk.transcribed(3200, "I would bike a latte.", provisional=True)
    assert talk.corrected(3250, "I would like a") == ()
    (order,) = talk.corrected(3300, "I would like a latte.", draft=2)
    assert order == WriteOn(draft=2, messages=(SYSTEM, Message("user", "I would like a latte.")))


def test_words_that_the_quick_ear_made_up_are_no_turn() -> None:
    """The careful one hears nothing in the pause: it is as if it had not been."""
    talk = quickly()
    assert talk.corrected(2350, " ")[:2] == (DropDraft(draft=1), AbandonTurn(turn=1))
    assert (talk.state.phase, talk.state.history) == (Phase.LISTENING, ())


def test_made_up_words_after_a_turn_that_waits_for_its_answer_are_left_out_of_it() -> None:
    """The reply before was given up for them, so the turn before is answered again, without them."""
    talk = quickly()
    talk.corrected(2350, CAREFUL)
    talk.mass(2410, 0.99)
    talk.speaks(2450)
    talk.pauses(2650, 2550)
    assert talk.transcribed(2700, "Peas.", provisional=True) == (StopReply(draft=1),)
    talk.reply_ends(2701, "", draft=1)
    assert talk.ordered(WriteReply)[-1].messages == (SYSTEM, Message("user", f"{CAREFUL} Peas."))
    assert talk.corrected(2750, "", draft=2, turn=2) == (WriteOn(draft=2, messages=(SYSTEM, ASKED)),)
    commands = talk.fires(3550, Timer.CONFIRM, 2)
    assert AbandonTurn(turn=2) in commands
    assert PlayDraft(draft=2) in commands
    assert (talk.state.history, len(talk.ordered(ConfirmTurn))) == ((ASKED,), 1)


def test_a_backchannel_for_which_the_reply_was_given_up_is_answered_with_the_turn() -> None:
    """The quick ear heard words in it; the reply cannot be had back."""
    talk = quickly()
    talk.corrected(2350, CAREFUL)
    talk.mass(2410, 0.99)
    talk.speaks(2450)
    talk.pauses(2650, 2550)
    talk.transcribed(2700, "My mum.", provisional=True)
    talk.reply_ends(2701, "", draft=1)
    (order,) = talk.corrected(2750, "Mm-hmm.", draft=2, turn=2)
    assert order == WriteOn(draft=2, messages=(SYSTEM, Message("user", f"{CAREFUL} Mm-hmm.")))


def test_a_backchannel_that_was_long_over_when_the_reply_ended_is_no_turn() -> None:
    """The quick ear heard words in it, the careful one does not; the reply was heard to its end."""
    talk = answered()
    talk.corrected(2500, CAREFUL)
    talk.speaks(4000)
    talk.pauses(4350, 4300)
    talk.reply_ends(5000, "Coming up.", draft=1)
    talk.transcribed(5050, "My mum", draft=2, provisional=True)
    assert talk.corrected(5200, "Mm-hmm.", draft=2, turn=2)[0] == DropDraft(draft=2)
    assert talk.state.phase is Phase.LISTENING


def test_a_draft_that_failed_is_not_written_on() -> None:
    """There is nothing that could go on; the careful words are confirmed all the same."""
    talk = quickly()
    talk.happens(DraftFailed(at_ns=ns(2320), draft=1))
    assert talk.corrected(2350, CAREFUL) == ()
    commands = talk.fires(3000, Timer.CONFIRM, 1)
    assert [(one.text, one.provisional) for one in commands if isinstance(one, ConfirmTurn)] == [(CAREFUL, False)]
    assert commands[-1] == DropDraft(draft=1)


def test_without_speculation_a_reply_is_written_from_the_words_that_are_known_when_the_turn_is_over() -> None:
    """Careful ones: whole. Provisional ones: it is written on when they are corrected."""
    settings = replace(SETTINGS, speculate=False)
    late = quickly(talk=Conversation(settings))
    late.fires(3000, Timer.CONFIRM, 1)
    assert late.ordered(WriteReply)[-1].messages == (SYSTEM, Message("user", QUICK))
    assert late.corrected(3100, CAREFUL)[-1] == WriteOn(draft=1, messages=(SYSTEM, ASKED))
    early = quickly(talk=Conversation(settings))
    assert early.corrected(2350, CAREFUL) == ()
    early.fires(3000, Timer.CONFIRM, 1)
    assert early.ordered(WriteReply)[-1].messages == (SYSTEM, ASKED)
    assert early.ordered(WriteOn) == []


# Afterwards.


def test_a_correction_while_the_reply_sounds_is_told_and_written_on_from() -> None:
    """The turn was confirmed as provisional; history and owner get the careful words, the reply goes on from them."""
    talk = answered()
    (confirmed,) = talk.ordered(ConfirmTurn)
    assert (confirmed.text, confirmed.provisional) == (QUICK, True)
    assert talk.state.history == (Message("user", QUICK),)
    assert talk.corrected(2600, CAREFUL) == (
        CorrectTurn(turn=1, text=CAREFUL),
        WriteOn(draft=1, messages=(SYSTEM, ASKED)),
    )
    assert talk.state.history == (ASKED,)
    assert talk.corrected(2700, QUICK) == ()


def test_where_the_careful_ear_hears_nothing_a_confirmed_turn_keeps_its_words() -> None:
    """They are told again, for good, and the reply need not wait any longer."""
    talk = answered()
    assert talk.corrected(2600, "") == (
        CorrectTurn(turn=1, text=QUICK),
        WriteOn(draft=1, messages=(SYSTEM, Message("user", QUICK))),
    )
    assert talk.state.history == (Message("user", QUICK),)


def test_a_correction_after_the_reply_is_for_the_history_alone() -> None:
    """It failed, was stopped, or said all in its first chunk: nothing is written on."""
    talk = answered()
    talk.reply_ends(2500, "Sure.")
    assert talk.corrected(2600, CAREFUL) == (CorrectTurn(turn=1, text=CAREFUL),)
    assert talk.state.history == (ASKED, Message("assistant", "Sure."))


def test_a_reply_that_was_stopped_is_not_written_on() -> None:
    """Its turn is corrected while the caller speaks, and what is read ahead has the careful words."""
    talk = answered()
    talk.speaks(3000)
    talk.grows(3200, "No, a tea", 0)
    talk.reply_ends(3201, "Peas", draft=1)
    assert talk.state.phase is Phase.HEARING
    assert talk.corrected(3300, CAREFUL) == (CorrectTurn(turn=1, text=CAREFUL),)
    (ahead,) = talk.grows(3700, "No, a tea", 9)
    assert isinstance(ahead, Prefill)
    assert ahead.messages == (SYSTEM, ASKED, Message("assistant", "Peas"), Message("user", "No, a tea"))


def test_a_cancelled_reply_leaves_its_turn_to_be_corrected() -> None:
    """The owner wanted no more of the reply; the words are the caller's."""
    talk = answered()
    talk.happens(ReplyCancelled(at_ns=ns(2500)))
    talk.reply_ends(2500, "Peas")
    assert talk.corrected(2600, CAREFUL) == (CorrectTurn(turn=1, text=CAREFUL),)
    assert talk.state.history[0] == ASKED


def test_a_turn_without_a_reply_is_corrected_although_its_draft_is_dropped() -> None:
    """As where the owner answers on his own."""
    talk = quickly(talk=by_owner(answers=False))
    commands = talk.fires(3000, Timer.CONFIRM, 1)
    assert [type(one) for one in commands[-2:]] == [ConfirmTurn, DropDraft]
    assert talk.corrected(3100, CAREFUL) == (CorrectTurn(turn=1, text=CAREFUL),)
    assert (talk.state.phase, talk.state.history) == (Phase.LISTENING, (ASKED,))


def test_a_turn_that_the_owner_ends_is_corrected_under_its_own_number() -> None:
    """The next one is listened to from the moment of its confirmation."""
    talk = by_owner(by_hand=True)
    talk.happens(commit(2000))
    talk.transcribed(2300, QUICK, provisional=True)
    assert talk.state.phase is Phase.SPEAKING
    assert talk.corrected(2500, CAREFUL) == (
        CorrectTurn(turn=1, text=CAREFUL),
        WriteOn(draft=1, messages=(SYSTEM, ASKED)),
    )
    assert talk.state.turn == 2


def test_a_turn_that_was_cut_off_is_corrected_while_the_caller_speaks_on() -> None:
    """It was confirmed at once, unjudged; what they say now is the next one."""
    talk = Conversation()
    talk.speaks(0)
    talk.fires(10_000, Timer.LONGEST_TURN, 1)
    talk.transcribed(10_200, "And so long", provisional=True)
    assert talk.corrected(10_300, "And so on") == (
        CorrectTurn(turn=1, text="And so on"),
        WriteOn(draft=1, messages=(SYSTEM, Message("user", "And so on"))),
    )
    assert talk.state.turn == 2


@pytest.mark.parametrize("earlier_first", [True, False])
def test_an_earlier_turn_is_corrected_while_a_later_one_is_in_progress(earlier_first: bool) -> None:
    """In whichever order the corrections come, each is its own turn's; the later prompt has what is known by then."""
    talk = answered()
    talk.reply_ends(2900, "Sure.")
    talk.speaks(4000)
    talk.pauses(5096, 5000)
    talk.transcribed(5200, "And a muffler.", provisional=True)
    reply, first = Message("assistant", "Sure."), CorrectTurn(turn=1, text=CAREFUL)
    if earlier_first:
        assert talk.corrected(5210, CAREFUL) == (first,)
    (order,) = talk.corrected(5250, "And a muffin.", draft=2, turn=2)
    known = ASKED if earlier_first else Message("user", QUICK)
    assert order == WriteOn(draft=2, messages=(SYSTEM, known, reply, Message("user", "And a muffin.")))
    if not earlier_first:
        assert talk.corrected(5260, CAREFUL) == (first,)
    talk.mass(5300, 0.99)
    assert talk.state.history == (ASKED, reply, Message("user", "And a muffin."))


# A turn that is taken back.


def test_a_turn_that_went_on_has_both_halves_corrected() -> None:
    """The caller goes on before the reply was heard; each half is an item of its own and the prompt joins them."""
    talk = quickly("I would bike a")
    talk.mass(2410, 0.99)
    talk.speaks(2600)
    assert talk.corrected(2650, "I would like a") == (CorrectTurn(turn=1, text="I would like a"),)
    talk.pauses(3096, 3000)
    assert talk.transcribed(3200, "lathe.", draft=2, provisional=True) == (StopReply(draft=1),)
    talk.reply_ends(3200, "", draft=1)
    assert talk.ordered(WriteReply)[-1].messages == (SYSTEM, Message("user", "I would like a lathe."))
    (order,) = talk.corrected(3300, "latte.", draft=2, turn=2)
    assert order == WriteOn(draft=2, messages=(SYSTEM, Message("user", "I would like a latte.")))


def test_the_first_half_can_be_corrected_while_the_second_is_drafted() -> None:
    """The draft was written from the quick ear's first half; what it is written on from has the careful one's."""
    talk = quickly("I would bike a")
    talk.mass(2410, 0.99)
    talk.speaks(2600)
    talk.pauses(3096, 3000)
    talk.transcribed(3200, "latte.", draft=2, provisional=True)
    talk.reply_ends(3200, "", draft=1)
    assert talk.corrected(3250, "I would like a") == (CorrectTurn(turn=1, text="I would like a"),)
    (order,) = talk.corrected(3300, "latte.", draft=2, turn=2)
    assert order == WriteOn(draft=2, messages=(SYSTEM, Message("user", "I would like a latte.")))


def test_a_draft_that_waits_for_a_stopped_reply_is_written_whole_from_words_that_are_corrected_meanwhile() -> None:
    """There is nothing to write on yet."""
    talk = quickly("I would like a")
    talk.corrected(2350, "I would like a")
    talk.mass(2410, 0.99)
    talk.speaks(2600)
    talk.pauses(3096, 3000)
    talk.transcribed(3200, "lathe.", draft=2, provisional=True)
    assert talk.corrected(3250, "latte.", draft=2, turn=2) == ()
    talk.reply_ends(3260, "", draft=1)
    assert talk.ordered(WriteReply)[-1].messages == (SYSTEM, Message("user", "I would like a latte."))
    assert [order.draft for order in talk.ordered(WriteOn)] == [1]


@pytest.mark.parametrize("corrected_ms", [2460, 2680])
def test_a_held_reply_is_written_on_when_it_goes_on(corrected_ms: int) -> None:
    """Its turn was corrected while a cough was looked into; until then no work is done on it."""
    talk = quickly()
    talk.mass(2410, 0.99)
    talk.speaks(2450)
    if corrected_ms == 2460:
        assert talk.corrected(2460, CAREFUL) == (CorrectTurn(turn=1, text=CAREFUL),)
    talk.pauses(2650, 2550)
    if corrected_ms == 2680:
        assert talk.corrected(2680, CAREFUL) == (CorrectTurn(turn=1, text=CAREFUL),)
    commands = talk.transcribed(2700, "", draft=2, provisional=True)
    assert commands[-2:] == (ResumeReply(draft=1), WriteOn(draft=1, messages=(SYSTEM, ASKED)))


@pytest.mark.parametrize("corrected_before", [True, False])
def test_a_held_reply_is_written_on_once(corrected_before: bool) -> None:
    """Corrected before it was held, or after it went on."""
    talk = quickly()
    if corrected_before:
        talk.corrected(2350, CAREFUL)
    talk.mass(2410, 0.99)
    talk.speaks(2450)
    talk.pauses(2650, 2550)
    assert talk.transcribed(2700, "", draft=2)[-1] == ResumeReply(draft=1)
    if not corrected_before:
        talk.corrected(2800, CAREFUL)
    assert talk.ordered(WriteOn) == [WriteOn(draft=1, messages=(SYSTEM, ASKED))]


# Tools.


def test_while_tools_are_used_nothing_is_written_on() -> None:
    """What follows their results is written from the careful words anyway."""
    talk = answered(talk=Conversation(tools=(ORDER, PRICE)))
    talk.happens(ToolCalled(at_ns=ns(2500), draft=1, call=CALL, said=""))
    assert talk.corrected(2550, CAREFUL) == (CorrectTurn(turn=1, text=CAREFUL),)
    talk.happens(ToolsWanted(at_ns=ns(2560), draft=1))
    exchange = (Message("assistant", "", CALL), Message("tool", "done", CALL))
    assert returns(talk, 2600, CALL)[-1] == WriteReply(draft=1, messages=(SYSTEM, ASKED, *exchange), may_use_tools=True)
    assert talk.ordered(WriteOn) == []


def test_in_the_draft_it_is_the_same() -> None:
    """A tool without side effects is at work when the careful words come."""
    talk = quickly(talk=Conversation(tools=(ORDER, PRICE)))
    calls(talk, 2320, ASK)
    assert talk.corrected(2350, CAREFUL) == ()
    assert returns(talk, 2380, ASK)[-1].messages[:2] == (SYSTEM, ASKED)
    assert PlayDraft(draft=1) in talk.mass(2410, 0.99)
    assert talk.ordered(WriteOn) == []


def test_a_pass_that_was_written_from_provisional_words_is_written_on() -> None:
    """The tool was faster than the careful ear; what it found stays in the prompt."""
    talk = answered(talk=Conversation(tools=(ORDER, PRICE)))
    calls(talk, 2500, CALL)
    returns(talk, 2520, CALL)
    exchange = (Message("assistant", "", CALL), Message("tool", "done", CALL))
    assert talk.corrected(2550, CAREFUL)[-1] == WriteOn(draft=1, messages=(SYSTEM, ASKED, *exchange))


def test_a_reply_that_ended_with_an_owners_tool_is_not_written_on() -> None:
    """The owner asks for another when he has run it."""
    talk = answered(talk=Conversation(tools=(replace(ORDER, by_owner=True),)))
    calls(talk, 2500, CALL)
    assert FinishReply(draft=1) in talk.log[-1][1]
    assert talk.corrected(2550, CAREFUL) == (CorrectTurn(turn=1, text=CAREFUL),)


# What the owner does.


def test_a_reply_that_was_asked_for_is_written_from_what_is_known_by_then() -> None:
    """It answers the conversation as it stands, and is whole; the turn is corrected for what follows."""
    talk = quickly(talk=by_owner(answers=False))
    talk.fires(3000, Timer.CONFIRM, 1)
    talk.happens(ReplyRequested(at_ns=ns(3010), options=ReplyOptions()))
    assert talk.ordered(WriteReply)[-1] == WriteReply(
        draft=2, messages=(SYSTEM, Message("user", QUICK)), may_use_tools=True
    )
    assert talk.corrected(3100, CAREFUL) == (CorrectTurn(turn=1, text=CAREFUL),)
    assert talk.state.history == (ASKED,)


def test_a_reply_that_was_asked_for_in_the_turn_is_written_on_by_its_own_options() -> None:
    """The draft is that reply."""
    talk = by_owner(answers=False)
    talk.speaks(0)
    talk.happens(ReplyRequested(at_ns=ns(100), options=ReplyOptions(instructions="Sing.")))
    talk.pauses(2096, 2000)
    talk.transcribed(2300, QUICK, provisional=True)
    assert talk.corrected(2350, CAREFUL) == (WriteOn(draft=1, messages=(Message("system", "Sing."), ASKED)),)


def test_a_turn_whose_item_was_deleted_is_corrected_for_the_owner_alone() -> None:
    """It does not come back into the history; the reply need not wait any longer."""
    talk = answered()
    talk.happens(ItemAdded(at_ns=ns(2500), message=Message("user", "Hi."), after=""))
    talk.happens(ItemDeleted(at_ns=ns(2500), item="turn-1"))
    assert talk.corrected(2600, CAREFUL) == (
        CorrectTurn(turn=1, text=CAREFUL),
        WriteOn(draft=1, messages=(SYSTEM, Message("user", "Hi."))),
    )
    assert talk.state.history == (Message("user", "Hi."),)


def test_a_turn_that_the_owner_had_forgotten_is_not_corrected() -> None:
    """There was none."""
    talk = quickly()
    talk.happens(InputCleared(at_ns=ns(2320), end_samples=32_000))
    assert talk.corrected(2350, CAREFUL) == ()


def test_of_too_many_turns_that_wait_the_oldest_keeps_its_words() -> None:
    """The owner is told so, and a correction that comes after all is stale."""
    talk = by_owner(by_hand=True, answers=False)
    for turn in range(1, MOST_PROVISIONAL + 2):
        talk.happens(commit(turn * 1000))
        talk.transcribed(turn * 1000 + 300, f"Number {turn}.", provisional=True)
    assert talk.ordered(CorrectTurn) == [CorrectTurn(turn=1, text="Number 1.")]
    assert talk.corrected(20_000, "Lumber.", draft=1) == ()
    assert talk.corrected(20_000, "Two.", draft=2, turn=2) == (CorrectTurn(turn=2, text="Two."),)
    assert [message.text for message in talk.state.history[:3]] == ["Number 1.", "Two.", "Number 3."]


# The end.


def test_the_conversation_is_over_when_its_last_turn_is_corrected() -> None:
    """The caller has hung up and there is no reply, but the words are still to come; afterwards they change nothing."""
    talk = quickly(talk=by_owner(answers=False))
    commands = talk.hangs_up(2400)
    assert EndSession() not in commands
    assert talk.state.phase is Phase.LISTENING
    assert talk.corrected(2600, CAREFUL) == (CorrectTurn(turn=1, text=CAREFUL), EndSession())
    assert (talk.state.phase, talk.state.history) == (Phase.ENDED, (ASKED,))
    assert talk.corrected(2700, QUICK) == ()


def test_who_hangs_up_in_silence_waits_for_the_last_words_too() -> None:
    """And for those of each turn; a reply that is asked for meanwhile is given first."""
    talk = quickly(talk=by_owner(answers=False))
    talk.fires(3000, Timer.CONFIRM, 1)
    assert talk.hangs_up(3010) == ()
    talk.happens(ReplyRequested(at_ns=ns(3020), options=ReplyOptions()))
    assert talk.corrected(3100, CAREFUL) == (CorrectTurn(turn=1, text=CAREFUL),)
    assert talk.happens(ReplyEnded(at_ns=ns(4000), draft=2, heard=("Bye.",)))[-1] == EndSession()


@pytest.mark.parametrize("phase", [Phase.LISTENING, Phase.HEARING, Phase.DRAFTING, Phase.SPEAKING])
def test_whoever_has_the_floor_a_turn_is_corrected_and_nothing_else_changes(phase: Phase) -> None:
    """Phase, draft and turn stay what they are."""
    talk = answered()
    talk.reply_ends(2900, "Sure.")
    if phase is not Phase.LISTENING:
        talk.speaks(4000)
    if phase in {Phase.DRAFTING, Phase.SPEAKING}:
        talk.pauses(5096, 5000)
    if phase is Phase.SPEAKING:
        talk.transcribed(5200, "And a muffin.")
        talk.mass(5300, 0.99)
    before = talk.state
    assert before.phase is phase
    assert talk.corrected(5400, CAREFUL) == (CorrectTurn(turn=1, text=CAREFUL),)
    assert talk.state == replace(before, history=(ASKED, *before.history[1:]), provisional=())


def test_a_log_with_corrections_replays_to_the_same_commands() -> None:
    """They are stimuli like any other."""
    talk = answered()
    talk.corrected(2600, CAREFUL)
    again = Conversation()
    happened: list[Stimulus] = [stimulus for stimulus, _ in talk.log]
    assert [again.happens(stimulus) for stimulus in happened] == [commands for _, commands in talk.log]
