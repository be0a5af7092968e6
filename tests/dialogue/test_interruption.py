"""A voice over our reply: who means it, who does not, and what becomes of the reply."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.dialogue.conversation import SETTINGS, SYSTEM, Conversation, answering, heard, ns

from antiphon.core.flow import Message
from antiphon.dialogue.commands import (
    AbandonTurn,
    CancelTimer,
    ConfirmTurn,
    DropDraft,
    DuckReply,
    EndSession,
    Listen,
    OpenTurn,
    PauseReply,
    PlayDraft,
    ResumeReply,
    SayText,
    SetTimer,
    StartDraft,
    StopReply,
    Transcribe,
    WriteReply,
)
from antiphon.dialogue.interruption import says_something
from antiphon.dialogue.settings import BACKCHANNELS
from antiphon.dialogue.state import Phase
from antiphon.dialogue.stimuli import DraftFailed, InterruptibleSet, SayRequested, Timer

pytestmark = pytest.mark.unit


def say(talk: Conversation, at_ms: float, text: str, *, interruptible: bool = True) -> tuple:
    return talk.happens(SayRequested(at_ns=ns(at_ms), text=text, interruptible=interruptible))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Mm-hmm.",
        "Uh-huh",
        "Yeah, okay.",
        "Right, right.",
        "I see.",
        "Oh, I see, thank you!",
        "(coughing)",
        "[BANG]",
        "...",
    ],
)
def test_backchannels_and_noise_say_nothing(text: str) -> None:
    """Words that mean "go on", in any order and case, and what recognizers write for noise."""
    assert not says_something(text, BACKCHANNELS)


@pytest.mark.parametrize(
    "text", ["No.", "Stop", "Wait a moment", "Yes but with milk", "I see a problem", "等一下", "42"]
)
def test_anything_else_says_something(text: str) -> None:
    """One word more is enough, in any script."""
    assert says_something(text, BACKCHANNELS)


def test_a_voice_over_the_reply_softens_it_and_is_listened_to() -> None:
    """Nobody is told of a turn; the reply is soft for `duck_ms`, the words are looked at after `interrupt_ms`."""
    talk = answering()
    assert talk.speaks(3000) == (
        Listen(turn=2, from_samples=48_000),
        DuckReply(draft=1, soft=True),
        SetTimer(timer=Timer.DUCK, at_ns=ns(3160), generation=1),
        SetTimer(timer=Timer.INTERRUPT, at_ns=ns(3200), generation=2),
    )
    assert talk.fires(3200, Timer.DUCK, 1) == (CancelTimer(timer=Timer.DUCK), DuckReply(draft=1, soft=False))
    assert talk.fires(3200, Timer.INTERRUPT, 2)[0] == Transcribe(turn=2)
    assert talk.state.phase is Phase.SPEAKING


@pytest.mark.parametrize("words", ["", "Mm-hmm.", "yeah okay"])
def test_a_backchannel_leaves_the_reply_alone(words: str) -> None:
    """It ends, its words say nothing, and the reply sounds on as before; nobody ever hears of a turn."""
    talk = answering()
    talk.speaks(3000)
    assert talk.pauses(3150, 3100) == (
        CancelTimer(timer=Timer.INTERRUPT),
        CancelTimer(timer=Timer.DUCK),
        DuckReply(draft=1, soft=False),
        Transcribe(turn=2),
    )
    assert talk.grows(3400, words, 0) == ()
    talk.reply_ends(5000, "Coming up.", draft=1)
    assert talk.log[-1][1][-1] == AbandonTurn(turn=2)
    assert (talk.state.phase, talk.ordered(StopReply), len(talk.ordered(OpenTurn))) == (Phase.LISTENING, [], 1)


def test_words_over_the_reply_stop_it_while_they_are_spoken() -> None:
    """Only what was heard of the reply is remembered, and the caller's words are the next turn."""
    talk = answering()
    talk.speaks(3000)
    talk.fires(3200, Timer.INTERRUPT, 2)
    commands = talk.grows(3300, "No, I", 0)
    assert StopReply(draft=1) in commands
    assert OpenTurn(turn=2) in commands
    talk.reply_ends(3301, "Coming", draft=1)
    talk.pauses(4096, 4000)
    talk.transcribed(4200, "No, a tea.")
    assert talk.ordered(WriteReply)[-1].messages == (
        SYSTEM,
        Message("user", "A latte, please."),
        Message("assistant", "Coming"),
        Message("user", "No, a tea."),
    )


def test_a_short_word_over_the_reply_stops_it_although_it_is_over() -> None:
    """ "Stop" is shorter than a look takes: the reply stops once it is understood, and it is answered at once."""
    talk = answering()
    talk.speaks(3000)
    talk.pauses(3300, 3250)
    commands = talk.grows(3450, "Stop.", 0)
    assert StopReply(draft=1) in commands
    assert StartDraft(draft=2, turn=2) in commands
    assert talk.state.draft is not None
    assert talk.state.draft.ended_ns == ns(3250)


def test_a_voice_that_goes_on_and_on_means_it() -> None:
    """After `surely_ms` the reply falls silent whatever is understood; if in the end nothing was said, it goes on."""
    talk = answering()
    talk.speaks(3000)
    for at_ms in range(3200, 4000, 200):
        assert Transcribe(turn=2) in talk.fires(at_ms, Timer.INTERRUPT, 2)
    assert PauseReply(draft=1) in talk.fires(4000, Timer.INTERRUPT, 2)
    talk.pauses(4600, 4500)
    commands = talk.transcribed(4800, "Mm-hmm.", draft=2)
    assert commands[-1] == ResumeReply(draft=1)
    assert (talk.state.phase, talk.ordered(StopReply)) == (Phase.SPEAKING, [])


def test_without_judging_the_time_alone_decides() -> None:
    """No ducking, no words: `interrupt_ms` of voice stop the reply."""
    talk = answering(Conversation(replace(SETTINGS, judge_overlap=False)))
    assert talk.ordered(DuckReply) == []
    talk.speaks(3000)
    assert StopReply(draft=1) in talk.fires(3200, Timer.INTERRUPT, 2)


def test_without_ducking_the_reply_stays_as_loud() -> None:
    """`duck_ms` 0 leaves the rest as it is."""
    talk = answering(Conversation(replace(SETTINGS, duck_ms=0)))
    assert [type(command) for command in talk.speaks(3000)] == [Listen, SetTimer]


@pytest.mark.parametrize("begun_ms", [None, 2420.0])
def test_going_on_before_anything_was_heard_silences_the_reply_at_once(begun_ms: float | None) -> None:
    """The turn had not ended. With more words the reply is given up, and both halves are answered together."""
    talk = heard("I would like a")
    talk.mass(2410, 0.99)
    if begun_ms:
        talk.begins(begun_ms)
    assert PauseReply(draft=1) in talk.speaks(2600)
    assert talk.state.phase is Phase.HEARING
    talk.pauses(3096, 3000)
    assert talk.transcribed(3200, "latte.", draft=2) == (StopReply(draft=1),)
    talk.reply_ends(3200, "", draft=1)
    assert talk.ordered(WriteReply)[-1].messages == (SYSTEM, Message("user", "I would like a latte."))
    assert PlayDraft(draft=2) in talk.mass(3400, 0.99)


def test_what_was_heard_of_a_retracted_reply_is_in_the_next_prompt() -> None:
    """A whole word that got out stays; the draft waits until it is told."""
    talk = heard("I would like a")
    talk.mass(2410, 0.99)
    talk.begins(2420)
    talk.speaks(2800)
    talk.pauses(3096, 3000)
    talk.transcribed(3200, "latte.", draft=2)
    assert talk.fires(3300, Timer.CONFIRM, 2) == ()
    talk.reply_ends(3301, "Sure,", draft=1)
    assert talk.ordered(WriteReply)[-1].messages == (
        SYSTEM,
        Message("user", "I would like a"),
        Message("assistant", "Sure,"),
        Message("user", "latte."),
    )


def test_words_while_the_caller_still_speaks_give_the_held_reply_up() -> None:
    """Its upstream work ends then, not only at the pause; the look comes after `interrupt_ms`, not after a hop."""
    talk = heard("I would like a")
    talk.mass(2410, 0.99)
    assert SetTimer(timer=Timer.HOP, at_ns=ns(2800), generation=2) in talk.speaks(2600)
    assert talk.fires(2800, Timer.HOP, 2)[0] == Transcribe(turn=2)
    _, stop = talk.grows(2900, "latte with", 0)
    assert stop == StopReply(draft=1)


def test_a_clap_before_the_first_sound_delays_the_answer_and_no_more() -> None:
    """The reply is held, nothing was said, and it goes on; nothing is written anew."""
    talk = heard()
    talk.mass(2310, 0.99)
    talk.speaks(2350)
    talk.pauses(2550, 2450)
    assert talk.transcribed(2700, "", draft=2)[-1] == ResumeReply(draft=1)
    assert (talk.state.phase, len(talk.ordered(WriteReply)), talk.ordered(DropDraft)) == (
        Phase.SPEAKING,
        1,
        [DropDraft(draft=2)],
    )


def test_a_recognizer_that_fails_over_a_held_reply_lets_it_go_on() -> None:
    """Nothing is known to have been said."""
    talk = heard()
    talk.mass(2310, 0.99)
    talk.speaks(2350)
    talk.pauses(2550, 2450)
    assert talk.happens(DraftFailed(at_ns=ns(2700), draft=2))[-1] == ResumeReply(draft=1)


def test_a_held_reply_that_fails_leaves_the_caller_the_floor() -> None:
    """Their first words wait for an answer, and get it with whatever comes."""
    talk = heard()
    talk.mass(2310, 0.99)
    talk.speaks(2350)
    talk.happens(DraftFailed(at_ns=ns(2400), draft=1))
    talk.pauses(2550, 2450)
    talk.transcribed(2700, "", draft=2)
    assert talk.ordered(WriteReply)[-1].messages == (SYSTEM, Message("user", "A latte, please."))
    assert PlayDraft(draft=2) in talk.fires(3450, Timer.CONFIRM, 2)
    assert talk.ordered(ConfirmTurn)[-1].turn == 1


def test_a_yes_over_the_last_words_answers_them() -> None:
    """Said so shortly before the end, even a backchannel is a turn."""
    talk = answering()
    talk.speaks(4600)
    talk.pauses(4950, 4900)
    talk.grows(5000, "Yes.", 0)
    commands = talk.reply_ends(5400, "Anything else?", draft=1)
    assert commands[-2:] == (CancelTimer(timer=Timer.HOP), StartDraft(draft=2, turn=2))
    assert OpenTurn(turn=2) in commands
    talk.transcribed(5600, "Yes.", draft=2)
    assert talk.ordered(WriteReply)[-1].messages[-1] == Message("user", "Yes.")


def test_who_still_speaks_when_the_reply_ends_has_the_floor() -> None:
    """Their turn began where their voice did."""
    talk = answering()
    talk.speaks(4900)
    talk.reply_ends(5000, "Coming up.", draft=1)
    assert (talk.state.phase, talk.state.turn, talk.ordered(Listen)[-1].turn) == (Phase.HEARING, 2, 2)
    assert talk.ordered(OpenTurn)[-1] == OpenTurn(turn=2)


def test_a_reply_that_may_not_be_interrupted_is_said_to_its_end() -> None:
    """What was said over it, all of it, is answered afterwards."""
    talk = Conversation()
    talk.happens(InterruptibleSet(at_ns=0, interruptible=False))
    answering(talk)
    assert talk.speaks(2500) == (Listen(turn=2, from_samples=40_000),)
    assert talk.pauses(3000, 2900) == (CancelTimer(timer=Timer.INTERRUPT),)
    assert talk.speaks(3100) == ()
    talk.pauses(3600, 3500)
    assert talk.grows(3700, "No, a tea.", 0) == ()
    commands = talk.reply_ends(6000, "Coming up.", draft=1)
    assert StartDraft(draft=2, turn=2) in commands
    talk.transcribed(6200, "No, a tea.", draft=2)
    assert talk.ordered(WriteReply)[-1].messages[-1] == Message("user", "No, a tea.")


def test_a_backchannel_over_such_a_reply_is_none_the_less_no_turn() -> None:
    """Long before its end "mhm" was no answer."""
    talk = Conversation()
    talk.happens(InterruptibleSet(at_ns=0, interruptible=False))
    answering(talk)
    talk.speaks(2500)
    talk.pauses(2800, 2700)
    talk.reply_ends(6000, "Coming up.", draft=1)
    talk.transcribed(6200, "Mm-hmm.", draft=2)
    assert (talk.state.phase, len(talk.ordered(PlayDraft))) == (Phase.LISTENING, 1)


def test_the_present_reply_can_be_made_interruptible_again() -> None:
    """The setting holds from the next stimulus on."""
    talk = Conversation()
    talk.happens(InterruptibleSet(at_ns=0, interruptible=False))
    answering(talk)
    talk.happens(InterruptibleSet(at_ns=ns(2500), interruptible=True))
    assert DuckReply(draft=1, soft=True) in talk.speaks(3000)


def test_a_greeting_is_said_at_once_and_remembered_as_heard() -> None:
    """It is a reply without a turn."""
    talk = Conversation()
    assert say(talk, 0, "Good morning.") == (
        SayText(draft=1, text="Good morning.", is_whole=True),
        PlayDraft(draft=1),
    )
    talk.begins(10)
    talk.reply_ends(900, "Good morning.")
    assert (talk.state.phase, talk.state.history) == (Phase.LISTENING, (Message("assistant", "Good morning."),))


def test_a_text_waits_until_nobody_speaks() -> None:
    """While the caller speaks, and while the answer sounds; then it is said, in order."""
    talk = Conversation()
    talk.speaks(0)
    assert say(talk, 100, "One.") == ()
    talk.pauses(2096, 2000)
    assert say(talk, 2100, "Two.") == ()
    talk.transcribed(2300, "A latte, please.")
    talk.mass(2400, 0.99)
    assert SayText(draft=2, text="One.", is_whole=True) in talk.reply_ends(5000, "Coming up.", draft=1)
    assert SayText(draft=3, text="Two.", is_whole=True) in talk.reply_ends(6000, "One.", draft=2)


def test_a_caller_who_hangs_up_over_the_reply_ends_the_session_after_it() -> None:
    """Nothing they said over it is left to answer."""
    talk = answering()
    talk.speaks(3000)
    talk.pauses(3100, 3050)
    talk.grows(3150, "", 0)
    talk.hangs_up(3200)
    assert talk.reply_ends(5000, "Coming up.", draft=1)[-1] == EndSession()


def test_words_that_are_understood_only_after_the_reply_are_answered_all_the_same() -> None:
    """The recognizer was slow, the reply is over: what was said over it long before its end may be a turn."""
    talk = answering()
    talk.speaks(3000)
    talk.pauses(3300, 3250)
    assert StartDraft(draft=2, turn=2) in talk.reply_ends(5000, "Coming up.", draft=1)
    talk.transcribed(5200, "Stop.", draft=2)
    assert talk.ordered(WriteReply)[-1].messages[-1] == Message("user", "Stop.")


def test_a_reply_whose_first_sound_left_as_it_was_held_is_no_beginner_afterwards() -> None:
    """When it goes on, an "mhm" softens it and does not silence it."""
    talk = heard()
    talk.mass(2310, 0.99)
    talk.speaks(2350)
    talk.begins(2351, draft=1)
    talk.pauses(2550, 2450)
    talk.transcribed(2700, "", draft=2)
    assert DuckReply(draft=1, soft=True) in talk.speaks(4000)


def test_who_talks_through_an_uninterruptible_reply_since_before_it_is_answered_after_it() -> None:
    """A turn that lasted too long was answered; the rest of it waits for the reply's end."""
    talk = Conversation()
    talk.happens(InterruptibleSet(at_ns=0, interruptible=False))
    talk.speaks(0)
    talk.fires(10_000, Timer.LONGEST_TURN, 1)
    talk.transcribed(10_100, "and then", draft=1)
    talk.begins(10_300, draft=1)
    talk.pauses(13_096, 13_000)
    assert talk.ordered(StopReply) == []
    assert StartDraft(draft=2, turn=2) in talk.reply_ends(15_000, "I see.", draft=1)


def test_a_turn_that_goes_on_after_it_lasted_too_long_can_last_too_long_again() -> None:
    """Its longest time begins anew."""
    talk = Conversation()
    talk.speaks(0)
    talk.pauses(9900, 9850)
    talk.fires(10_000, Timer.LONGEST_TURN, 1)
    assert SetTimer(timer=Timer.LONGEST_TURN, at_ns=ns(20_050), generation=1) in talk.speaks(10_050)
