"""Who has the floor: every rule of the dialogue, by the commands it gives."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from tests.dialogue.conversation import SETTINGS, SYSTEM, Conversation, answering, heard, ns

from antiphon.core.flow import Message, ToolCall
from antiphon.dialogue.commands import (
    AbandonTurn,
    CancelTimer,
    ConfirmTurn,
    DropDraft,
    EndSession,
    JudgeVoice,
    Listen,
    OpenTurn,
    PlayDraft,
    Prefill,
    SetTimer,
    StartDraft,
    StopReply,
    Transcribe,
    WriteReply,
)
from antiphon.dialogue.floor import OF_REPLY
from antiphon.dialogue.options import ReplyOptions
from antiphon.dialogue.state import Phase, ToolRule
from antiphon.dialogue.stimuli import (
    DraftFailed,
    InputStalled,
    Reconfigured,
    Timer,
    ToolCalled,
    ToolsWanted,
    TurnCommitted,
)
from antiphon.dialogue.turn_end import Evidence

pytestmark = pytest.mark.unit

TEXT_ONLY = ReplyOptions(is_text=True)


def test_a_turn_begins_where_speech_began() -> None:
    """The first voice opens turn 1 at its own position and starts the two clocks of a turn."""
    talk = Conversation()
    assert talk.speaks(100) == (
        Listen(turn=1, from_samples=1600),
        OpenTurn(turn=1),
        SetTimer(timer=Timer.HOP, at_ns=ns(600), generation=1),
        SetTimer(timer=Timer.LONGEST_TURN, at_ns=ns(10_100), generation=1),
    )
    assert talk.state.phase is Phase.HEARING


def test_a_breath_costs_one_draft_and_no_sound() -> None:
    """A pause that turns out to be a breath starts a draft and drops it unheard; nothing is remembered."""
    talk = heard("I would like a")
    dropped = talk.speaks(2500)
    assert dropped == (
        DropDraft(draft=1),
        CancelTimer(timer=Timer.CONFIRM),
        SetTimer(timer=Timer.HOP, at_ns=ns(3000), generation=1),
    )
    assert (talk.state.phase, talk.state.history, talk.state.turn) == (Phase.HEARING, (), 1)
    assert talk.ordered(PlayDraft) == []


def test_every_pause_of_a_turn_starts_a_draft_of_its_own() -> None:
    """The second pause of a turn drafts afresh over all that was said, under a new number."""
    talk = heard("I would like a")
    talk.speaks(2500)
    talk.pauses(3096, 3000)
    assert talk.ordered(StartDraft) == [
        StartDraft(draft=1, turn=1),
        StartDraft(draft=2, turn=1),
    ]


def test_words_start_the_reply_before_the_turn_is_over() -> None:
    """As soon as the words are known the reply is written, unheard, while the silence is still too short."""
    talk = heard("I would like a")
    assert talk.log[-1][1] == (
        WriteReply(
            draft=1, messages=(SYSTEM, Message("user", "I would like a")), may_use_tools=True, measures_end=True
        ),
        # posterior sigmoid(-3): 350 ms * ln(0.9526 / 0.05) = 1031.5 ms, cut to the longest wait of 1000
        SetTimer(timer=Timer.CONFIRM, at_ns=ns(3000), generation=1),
    )


def test_better_evidence_shortens_the_wait() -> None:
    """The end mass arrives, the posterior rises to 0.8, and the turn is to be confirmed at the earlier time."""
    talk = heard("I would like a")
    wait_ms = 350 * math.log(0.2 / 0.05)
    assert talk.mass(2310, 0.8) == (SetTimer(timer=Timer.CONFIRM, at_ns=ns(2000 + wait_ms), generation=1),)


def test_the_voice_is_judged_only_if_the_words_leave_doubt() -> None:
    """The prosody judge is asked once, after the end mass, and only if the turn is not confirmed by then."""
    talk = heard("I would like a")
    talk.mass(2310, 0.8)
    talk.voiced(2350)
    talk.fires(2400, Timer.CONFIRM, 1)
    assert talk.ordered(JudgeVoice) == [JudgeVoice(draft=1)]
    sure = heard("I would like a")
    sure.mass(2310, 0.99)
    sure.voiced(2350)
    assert sure.ordered(JudgeVoice) == []


def test_the_voice_is_judged_once_the_first_sound_waits() -> None:
    """What computes beside the reply delays it: the judge is asked when there is a sound that could be played."""
    talk = heard("I would like a")
    talk.voiced(2305)
    assert talk.ordered(JudgeVoice) == []  # the end mass is still to come, and costs less
    talk.mass(2310, 0.8)
    assert talk.ordered(JudgeVoice) == [JudgeVoice(draft=1)]
    slow = heard("I would like a")
    slow.mass(2310, 0.8)
    assert slow.ordered(JudgeVoice) == []
    assert slow.voiced(2400) == (JudgeVoice(draft=1),)
    assert slow.voiced(2410) == ()


def test_a_draft_that_will_not_sound_soon_keeps_no_opinion_waiting() -> None:
    """It has failed, or waits for its tools."""
    failed = heard("I would like a")
    failed.happens(DraftFailed(at_ns=ns(2305), draft=1))
    assert failed.ordered(JudgeVoice) == [JudgeVoice(draft=1)]
    waits = heard("I would like a")
    waits.mass(2310, 0.8)
    waits.happens(ToolCalled(at_ns=ns(2320), draft=1, call=ToolCall(id="1", name="menu", arguments="{}"), said=""))
    assert waits.ordered(JudgeVoice) == []
    waits.happens(ToolsWanted(at_ns=ns(2330), draft=1))
    assert waits.ordered(JudgeVoice) == [JudgeVoice(draft=1)]


def test_words_without_doubt_are_answered_without_another_opinion() -> None:
    """What would be waited for is too short for an opinion to save any of it: the reply is written at once."""
    talk = heard("I would like a latte.", Conversation(replace(SETTINGS, doubt_ms=1000)))
    (write,) = talk.ordered(WriteReply)
    assert not write.measures_end
    assert talk.ordered(JudgeVoice) == []
    always = heard("I would like a latte.", Conversation(replace(SETTINGS, doubt_ms=0)))
    (write,) = always.ordered(WriteReply)
    assert write.measures_end


def test_words_that_suffice_are_answered_without_another_opinion() -> None:
    """Where the turn is over by the words alone, the model is not asked first whether it is."""
    enough = SETTINGS.cut_in_risk * 6  # posterior sigmoid(1) = 0.73: 350 ms * ln(0.27 / 0.3) < 100 ms, which are past
    talk = heard("A latte, please.", Conversation(replace(SETTINGS, cut_in_risk=enough)))
    (write,) = talk.ordered(WriteReply)
    assert not write.measures_end
    assert talk.state.phase is Phase.SPEAKING


def test_a_sure_end_is_confirmed_at_once() -> None:
    """Evidence that makes the wait shorter than the silence so far confirms without a timer."""
    talk = heard("I would like a")
    commands = talk.mass(2310, 0.99)
    assert commands == (
        CancelTimer(timer=Timer.CONFIRM),
        CancelTimer(timer=Timer.LONGEST_TURN),
        ConfirmTurn(
            turn=1,
            draft=1,
            text="I would like a",
            posterior=pytest.approx(0.99),
            evidence=Evidence(text="I would like a", end_mass=0.99),
            forced=False,
        ),
        PlayDraft(draft=1),
    )
    assert talk.state.history == (Message("user", "I would like a"),)


def test_an_unfinished_turn_is_answered_after_the_longest_wait() -> None:
    """However unfinished it sounds, the timer confirms in the end."""
    talk = heard("I would like a")
    talk.mass(2310, 0.0)
    commands = talk.fires(3000, Timer.CONFIRM, 1)
    assert PlayDraft(draft=1) in commands


def test_a_timer_that_fires_early_waits_on() -> None:
    """A timer is a reason to look, not a decision: too early, it is set again."""
    talk = heard("I would like a")
    assert talk.fires(2900, Timer.CONFIRM, 1) == (SetTimer(timer=Timer.CONFIRM, at_ns=ns(3000), generation=1),)


def test_results_of_a_dropped_draft_are_stale() -> None:
    """Words, mass, prosody, sound and failure of an old draft change nothing."""
    talk = heard("I would like a")
    talk.speaks(2500)
    talk.pauses(3096, 3000)
    before = talk.state
    for commands in (
        talk.transcribed(3100, "Old.", draft=1),
        talk.mass(3100, 1.0, draft=1),
        talk.happens(DraftFailed(at_ns=ns(3100), draft=1)),
        talk.fires(3100, Timer.CONFIRM, 1),
        talk.reply_ends(3100, "Old.", draft=1),
    ):
        assert commands == ()
    assert talk.state == before


def test_without_speculation_the_reply_is_written_once_the_turn_is_over() -> None:
    """Words start no reply; the voice is judged at once, and confirmation orders the reply."""
    talk = Conversation(replace(SETTINGS, speculate=False))
    talk.speaks(0)
    talk.pauses(2096, 2000)
    (wait, judge) = talk.transcribed(2300, "I would like a")
    assert (type(wait), judge) == (SetTimer, JudgeVoice(draft=1))
    commands = talk.fires(3000, Timer.CONFIRM, 1)
    assert commands[-2:] == (
        WriteReply(draft=1, messages=(SYSTEM, Message("user", "I would like a")), may_use_tools=True),
        PlayDraft(draft=1),
    )


def test_without_reading_ahead_stable_words_cost_nothing() -> None:
    """They are still told, but the language model is left alone."""
    talk = Conversation(replace(SETTINGS, read_ahead=False))
    talk.speaks(0)
    assert talk.grows(700, "I would like a", 12) == ()


def test_nothing_said_is_no_turn() -> None:
    """A cough gives an empty transcript: no reply is written, and the next sentence is heard."""
    talk = heard("")
    assert (talk.state.phase, talk.ordered(WriteReply), talk.state.history) == (Phase.LISTENING, [], ())
    assert talk.ordered(AbandonTurn) == [AbandonTurn(turn=1)]
    talk.speaks(4000)
    assert talk.state.phase is Phase.HEARING


def test_a_failing_recognizer_leaves_the_conversation_alive() -> None:
    """When the words cannot be had there is nothing to answer; the caller may try again."""
    talk = Conversation()
    talk.speaks(0)
    talk.pauses(2096, 2000)
    talk.happens(DraftFailed(at_ns=ns(2200), draft=1))
    assert talk.state.phase is Phase.LISTENING


def test_a_failing_reply_is_silence_and_the_turn_is_remembered() -> None:
    """The turn is confirmed when it is over, without a reply, and its words stay in the history."""
    talk = heard("I would like a")
    talk.happens(DraftFailed(at_ns=ns(2350), draft=1))
    commands = talk.fires(3000, Timer.CONFIRM, 1)
    assert [type(command) for command in commands] == [CancelTimer, CancelTimer, ConfirmTurn, DropDraft]
    assert (talk.state.phase, talk.state.history) == (Phase.LISTENING, (Message("user", "I would like a"),))


def test_history_holds_what_was_heard() -> None:
    """After the reply both sides are remembered, ours as far as it was heard."""
    talk = answering()
    assert talk.reply_ends(5000, " Coming up. ") == OF_REPLY
    assert talk.state.phase is Phase.LISTENING
    assert talk.state.history == (Message("user", "A latte, please."), Message("assistant", "Coming up."))


def test_the_next_turn_sees_the_one_before() -> None:
    """A second turn's prompt holds instructions, first turn, reply and the new words."""
    talk = answering()
    talk.reply_ends(5000, "Coming up.")
    talk.speaks(6000)
    talk.pauses(7096, 7000)
    talk.transcribed(7200, "And a muffin.")
    assert talk.ordered(WriteReply)[-1].messages == (
        SYSTEM,
        Message("user", "A latte, please."),
        Message("assistant", "Coming up."),
        Message("user", "And a muffin."),
    )


def test_hops_look_at_the_words_while_the_caller_speaks() -> None:
    """The hop timer asks for a transcript; its stable words are read ahead, all of them begin a reply."""
    talk = Conversation()
    talk.speaks(0)
    assert talk.fires(500, Timer.HOP, 1) == (
        Transcribe(turn=1),
        SetTimer(timer=Timer.HOP, at_ns=ns(1000), generation=1),
    )
    look, ahead = talk.grows(700, "I would like a ", 12)
    assert look == SetTimer(timer=Timer.HOP, at_ns=ns(1100), generation=1)  # twice the 200 ms that it took
    assert ahead == Prefill(
        messages=(SYSTEM, Message("user", "I would like")), opening=(SYSTEM, Message("user", "I would like a"))
    )


def test_looks_leave_two_thirds_of_the_time_to_the_rest() -> None:
    """A quick one is followed after a hop; a slow one by nothing while it lasts, and then not at once."""
    quick = Conversation()
    quick.speaks(0)
    quick.fires(500, Timer.HOP, 1)
    assert quick.grows(560, "I", 0) == (SetTimer(timer=Timer.HOP, at_ns=ns(1000), generation=1),)
    slow = Conversation()
    slow.speaks(0)
    slow.fires(500, Timer.HOP, 1)
    assert slow.fires(1000, Timer.HOP, 1) == (SetTimer(timer=Timer.HOP, at_ns=ns(1500), generation=1),)
    assert slow.grows(1100, "I", 0) == (SetTimer(timer=Timer.HOP, at_ns=ns(2300), generation=1),)


def test_a_look_that_never_answers_is_not_the_last() -> None:
    talk = Conversation()
    talk.speaks(0)
    for at_ms in (500, 1500, 2500):
        assert talk.fires(at_ms, Timer.HOP, 1)[0] == Transcribe(turn=1)


@pytest.mark.parametrize("off", [{"open_ahead": False}, {"speculate": False}])
def test_no_reply_is_begun_before_its_time_where_that_is_off(off: dict[str, bool]) -> None:
    """Without it, or without speculation of which it is a part, words are only read."""
    talk = Conversation(replace(SETTINGS, **off))
    talk.speaks(0)
    (ahead,) = talk.grows(700, "I would like a", 12)
    assert isinstance(ahead, Prefill)
    assert ahead.opening == ()


@pytest.mark.parametrize(
    "usual", [{"tools": (ToolRule(name="menu", in_draft=True, preamble=""),)}, {"usual": TEXT_ONLY}]
)
def test_no_reply_is_begun_before_its_time_that_would_not_sound_first(usual: dict[str, Any]) -> None:
    """A tool may have to be chosen first, or the reply is only written."""
    talk = Conversation()
    talk.state = replace(talk.state, **usual)
    talk.speaks(0)
    (ahead,) = talk.grows(700, "I would like a", 12)
    assert isinstance(ahead, Prefill)
    assert ahead.opening == ()
    assert talk.grows(1300, "I", 0) == ()


def test_a_caller_who_hangs_up_in_speech_is_answered() -> None:
    """The end of the sound is the end of the turn: no wait, and the session ends after the reply."""
    talk = Conversation()
    talk.speaks(0)
    talk.hangs_up(2000)
    commands = talk.transcribed(2200, "I would like a")
    assert PlayDraft(draft=1) in commands
    assert EndSession() in talk.reply_ends(4000, "Yes?")
    assert talk.state.phase is Phase.ENDED


def test_a_caller_who_hangs_up_in_silence_ends_the_session() -> None:
    """Nothing is owed."""
    assert Conversation().hangs_up(1000) == (EndSession(),)


def test_a_caller_who_hangs_up_in_the_pause_is_answered_at_once() -> None:
    """Nobody can go on any more, so there is nothing to wait for."""
    talk = heard("I would like a")
    assert PlayDraft(draft=1) in talk.hangs_up(2400)


def test_sound_that_stops_coming_is_a_pause() -> None:
    """A microphone muted in mid-word closes the turn like silence does."""
    talk = Conversation()
    talk.speaks(0)
    commands = talk.happens(InputStalled(at_ns=ns(1500), end_samples=16_000, ended_ns=ns(1000)))
    assert StartDraft(draft=1, turn=1) in commands


def test_a_turn_that_lasts_too_long_is_answered() -> None:
    """After the longest turn what was said is answered; what follows is the next turn, from where we stopped."""
    talk = Conversation()
    talk.speaks(0)
    commands = talk.fires(10_000, Timer.LONGEST_TURN, 1)
    assert StartDraft(draft=1, turn=1) in commands
    assert Listen(turn=2, from_samples=0) in talk.transcribed(10_200, "And so on and so on")
    talk.voiced(10_300)
    talk.reply_ends(12_000, "I see.")
    assert (talk.state.phase, talk.state.turn) == (Phase.HEARING, 2)


def test_who_talks_on_past_the_longest_turn_is_not_thrown_away() -> None:
    """Speech that went on through the end of a turn and stops while we answer is a turn, not a cough."""
    talk = Conversation()
    talk.speaks(0)
    talk.fires(10_000, Timer.LONGEST_TURN, 1)
    talk.transcribed(10_200, "And so on")
    talk.voiced(10_300)
    commands = talk.pauses(13_096, 13_000)
    assert StopReply(draft=1) in commands
    assert StartDraft(draft=2, turn=2) in commands
    assert talk.ordered(AbandonTurn) == []


def test_a_pause_while_the_longest_turn_is_transcribed_answers_all_of_it() -> None:
    """Who stops just after being cut off is answered to their last word."""
    talk = Conversation()
    talk.speaks(0)
    talk.fires(10_000, Timer.LONGEST_TURN, 1)
    commands = talk.pauses(10_150, 10_050)
    assert commands[0] == DropDraft(draft=1)
    assert StartDraft(draft=2, turn=1) in commands


def test_a_reply_that_fails_after_confirmation_gives_the_floor_back() -> None:
    """Nothing was heard, nothing is remembered of it, and the conversation goes on."""
    talk = heard()
    talk.mass(2310, 0.99)
    talk.happens(DraftFailed(at_ns=ns(2500), draft=1))
    assert talk.state.phase is Phase.LISTENING
    assert talk.state.history == (Message("user", "A latte, please."),)


def test_a_turn_that_the_owner_ended_meanwhile_has_a_number_of_its_own() -> None:
    """Also if from then on voices end turns."""
    talk = Conversation()
    told = Reconfigured(
        at_ns=0,
        settings=SETTINGS,
        instructions="Be brief.",
        tools=(),
        interruptible=True,
        by_hand=True,
        answers=True,
        usual=ReplyOptions(),
        end_samples=0,
    )
    talk.happens(told)
    talk.happens(TurnCommitted(at_ns=ns(1000), end_samples=16_000, ended_ns=ns(1000)))
    talk.happens(TurnCommitted(at_ns=ns(1100), end_samples=17_600, ended_ns=ns(1100)))
    talk.happens(replace(told, at_ns=ns(1150), by_hand=False))
    talk.transcribed(1200, "One.")
    assert StartDraft(draft=2, turn=2) in talk.reply_ends(2000, "Yes.")
    talk.transcribed(2100, "Two.")
    assert [confirmed.turn for confirmed in talk.ordered(ConfirmTurn)] == [1, 2]


def test_a_log_replays_to_the_same_commands() -> None:
    """The machine has no other input than its stimuli."""
    talk = answering()
    talk.speaks(3000)
    talk.fires(3200, Timer.INTERRUPT, 2)
    again = Conversation()
    assert [again.happens(stimulus) for stimulus, _ in talk.log] == [commands for _, commands in talk.log]
    assert again.state == talk.state
