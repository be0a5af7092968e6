"""Voices over the reply, in whole conversations: interruptions, backchannels, noise, and who has not finished.

Where the order of things matters every case is held fifty times, the engines and the caller differently slow.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.session.call import ORDER, TURN, Call, of
from tests.session.doubles import ScriptedRecognizer, caller
from tests.session.mind import asked, mind

from antiphon.core.clock import MILLISECOND_NS
from antiphon.core.flow import Message
from antiphon.session.events import (
    ReplyAudio,
    ReplyDucked,
    ReplyFinished,
    ReplyPaused,
    ReplyStarted,
    TurnAbandoned,
    TurnConfirmed,
    TurnStarted,
)

if TYPE_CHECKING:
    from antiphon.session import Session

pytestmark = pytest.mark.unit

LONG = "One two three four five six seven eight nine ten eleven twelve thirteen."
SEEDS = range(50)


def over_the_reply(word: str, *, start_ms: int = 4500, end_ms: int = 4800, seed: int = 0, **more: object) -> Call:
    """A latte is ordered, a long reply sounds from about 2300 ms on, and somebody says `word` over it."""
    random = Random(seed)
    shift_ms = random.randrange(300) if seed else 0
    script = (*ORDER, (end_ms + shift_ms - 50, word)) if word else ORDER
    ears = ScriptedRecognizer(script, delay_ms=random.uniform(40, 400) if seed else 150)
    model = mind([LONG], ["Tea it is."], first_s=random.uniform(0.01, 0.5) if seed else 0.03)
    frames = caller((500, 2000), (start_ms + shift_ms, end_ms + shift_ms), until_ms=14_000)
    return Call(frames, ears=ears, mind=model, **more)


def loudest(heard: list, start_ns: int, end_ns: int) -> float:
    """The reply's peak in the frames that begin between two moments."""
    frames = [event.frame for event in of(ReplyAudio, heard) if start_ns <= event.frame.captured_ns < end_ns]
    return max((float(np.abs(frame.pcm).max()) for frame in frames), default=0.0)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("word", ["", "Mm-hmm."])
def test_a_backchannel_or_a_cough_softens_the_reply_and_leaves_it_whole(word: str, seed: int) -> None:
    """Soft for at most 200 ms, then as before; all of it is heard, and nobody is told of a turn."""
    call = over_the_reply(word, seed=seed + 1)
    heard = call.hold()
    (finished,) = of(ReplyFinished, heard)
    assert (finished.heard, finished.interrupted) == (LONG, False)
    soft, loud = of(ReplyDucked, heard)
    assert (soft.soft, loud.soft) == (True, False)
    assert 0 < loud.at_ns - soft.at_ns <= 200 * MILLISECOND_NS
    frame_ns = 20 * MILLISECOND_NS
    assert loudest(heard, soft.at_ns + frame_ns, loud.at_ns - frame_ns) <= 0.3 * 0.25 + 0.01
    assert loudest(heard, loud.at_ns + 2 * frame_ns, loud.at_ns + 500 * MILLISECOND_NS) > 0.25
    assert [event.turn for event in of(TurnStarted, heard)] == [1]
    assert of(TurnAbandoned, heard) == []
    assert call.history[-1] == ("assistant", LONG)


@pytest.mark.parametrize("seed", SEEDS)
def test_words_stop_the_reply_and_everything_upstream(seed: int) -> None:
    """No sound later than 60 ms after the decision, no chunk voiced after it, the model's reply closed, one answer."""
    call = over_the_reply("No, tea.", end_ms=5600, seed=seed + 1)
    heard = call.hold()
    first, second = of(ReplyFinished, heard)
    assert (first.interrupted, first.retracted, second.heard) == (True, False, "Tea it is.")
    assert LONG.startswith(first.heard)
    assert 0 < len(first.heard) < len(LONG)
    own = [event.frame for event in of(ReplyAudio, heard) if event.reply == first.reply]
    assert own[-1].end_ns <= first.at_ns + 60 * MILLISECOND_NS
    assert call.mind.writes_ended == len(asked(call.mind, "write"))
    assert call.history == (
        ("user", "A latte, please."),
        ("assistant", first.heard),
        ("user", "No, tea."),
        ("assistant", "Tea it is."),
    )
    assert call.left_over == (0, 0)


def test_a_model_that_writes_on_is_closed_when_the_reply_stops() -> None:
    """A hundred sentences at ten a second: of those after the interruption none is written or voiced."""
    sentences = [f"Sentence number {place} is here. " for place in range(100)]
    ears = ScriptedRecognizer((*ORDER, (5400, "No, tea.")), delay_ms=150)
    model = mind(sentences, ["Tea it is."])
    call = Call(caller((500, 2000), (4500, 5500), until_ms=20_000), ears=ears, mind=model)
    heard = call.hold()
    first, _ = of(ReplyFinished, heard)
    assert first.interrupted
    voiced = [chunk.text for chunk in call.voice.asked]
    assert voiced[-1] == "Tea it is."
    assert len(voiced) < 15
    assert model.writes_ended == len(asked(model, "write"))


def test_a_short_stop_is_understood_and_answered() -> None:
    """A word that is over before it is looked at still stops the reply."""
    call = over_the_reply("Stop.", end_ms=4750)
    first, second = of(ReplyFinished, call.hold())
    assert (first.interrupted, second.interrupted) == (True, False)
    assert call.history[2] == ("user", "Stop.")


@pytest.mark.parametrize("seed", SEEDS)
def test_half_a_sentence_that_goes_on_is_answered_once(seed: int) -> None:
    """The second half comes around the reply's first sound: that reply is taken back, one answer covers both halves."""
    random = Random(seed)
    gap_ms = random.randrange(350, 900)
    start_ms = 1500 + gap_ms
    ears = ScriptedRecognizer(
        ((1500, "I want."), (start_ms + 300, "a"), (start_ms + 600, "latte.")), delay_ms=random.uniform(40, 300)
    )
    model = mind(
        ["Certainly, coming right up, and anything else for you?"], ["Sure."], first_s=random.uniform(0.01, 0.6)
    )
    call = Call(caller((500, 1500), (start_ms, start_ms + 700), until_ms=9000), ears=ears, mind=model)
    heard = call.hold()
    whole = [event for event in of(ReplyFinished, heard) if not event.interrupted]
    assert len(whole) == 1
    users = " ".join(text for role, text in call.history if role == "user")
    assert users in {"I want. a latte.", "I want a latte."}
    assert [text for role, text in call.history if role == "assistant"][-1] == whole[0].heard
    assert len(of(TurnConfirmed, heard)) <= 2
    retracted = [event for event in of(ReplyFinished, heard) if event.retracted]
    assert all(event.heard == "" for event in retracted)
    prompt = [message for message in asked(model, "write")[-1] if message.role == "user"]
    assert " ".join(message.text for message in prompt) == users
    if not any(event.heard for event in of(ReplyFinished, heard) if event.interrupted):
        assert prompt == [Message("user", users)]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_clap_between_question_and_answer_never_leaves_dead_air(seed: int) -> None:
    """Whenever it comes and however slow the engines are, the question is answered, within 3 s."""
    random = Random(seed)
    clap_ms = 2000 + random.randrange(150, 900)
    call = Call(
        caller((500, 2000), (clap_ms, clap_ms + 150), until_ms=9000),
        ears=ScriptedRecognizer(ORDER, delay_ms=random.uniform(40, 400)),
        mind=mind(["Here it is."], first_s=0.5),
    )
    heard = call.hold()
    assert [event.heard for event in of(ReplyFinished, heard) if not event.interrupted] == ["Here it is."]
    first_ns = of(ReplyStarted, heard)[-1].at_ns
    assert first_ns - of(TurnStarted, heard)[0].at_ns < (1500 + 3000) * MILLISECOND_NS
    assert call.history == (("user", "A latte, please."), ("assistant", "Here it is."))


def test_a_reply_held_for_noise_goes_on_where_it_was() -> None:
    """A cough 100 ms into the reply silences it; the rest follows, and no sample is lost or said twice."""
    quiet = Call(caller((500, 2000), until_ms=12_000), mind=mind([LONG]))
    whole = np.concatenate([event.frame.pcm for event in of(ReplyAudio, quiet.hold())])
    begins_ms = 2300
    call = Call(caller((500, 2000), (begins_ms + 120, begins_ms + 300), until_ms=12_000), mind=mind([LONG]))
    heard = call.hold()
    paused, resumed = of(ReplyPaused, heard)
    assert (paused.resumed, resumed.resumed) == (False, True)
    frames = [event.frame for event in of(ReplyAudio, heard)]
    silent = [frame for frame in frames if paused.at_ns + 60 * MILLISECOND_NS < frame.captured_ns < resumed.at_ns]
    assert silent == []
    pcm = np.concatenate([frame.pcm for frame in frames])
    assert len(pcm) == len(whole)
    assert np.sum(np.abs(pcm - whole) > 1e-6) <= 2 * len(frames[0].pcm)  # the fades, down and up
    assert of(ReplyFinished, heard)[-1].heard == LONG


def test_a_reply_that_may_not_be_interrupted_is_said_whole_and_what_was_said_over_it_answered_after() -> None:
    """Both turns are answered, in order; then the conversation waits for new speech."""
    call = over_the_reply("No, tea.", end_ms=5600, interruptible=False)
    heard = call.hold()
    assert [(event.heard, event.interrupted) for event in of(ReplyFinished, heard)] == [
        (LONG, False),
        ("Tea it is.", False),
    ]
    assert [event.text for event in of(TurnConfirmed, heard)] == ["A latte, please.", "No, tea."]
    assert of(ReplyDucked, heard) == []


def test_speech_after_the_reply_is_no_interruption() -> None:
    """Two seconds after the last sound: nothing is truncated, the history is complete."""
    ears = ScriptedRecognizer((*ORDER, (6500, "Thanks.")))
    call = Call(caller((500, 2000), (6000, 6600), until_ms=12_000), ears=ears, mind=mind(["Sure."], ["Bye."]))
    heard = call.hold()
    assert [event.interrupted for event in of(ReplyFinished, heard)] == [False, False]
    assert call.history[1] == ("assistant", "Sure.")


def test_a_yes_over_the_last_words_is_answered() -> None:
    """A backchannel in the middle is none of the caller's turns, at the end it is."""
    ears = ScriptedRecognizer((*ORDER, (4250, "Yes.")))
    model = mind(["Would you like some milk with that?"], ["With milk."])
    call = Call(caller((500, 2000), (4000, 4300), until_ms=12_000), ears=ears, mind=model)
    heard = call.hold()
    assert [event.heard for event in of(ReplyFinished, heard)] == ["Would you like some milk with that?", "With milk."]


def test_judging_off_the_time_alone_decides() -> None:
    """300 ms of "mhm" stop the reply, as they do in most servers."""
    turn = replace(TURN, judge_overlap=False)
    call = over_the_reply("Mm-hmm.", end_ms=4900, turn=turn)
    first, *_ = of(ReplyFinished, call.hold())
    assert first.interrupted


def test_a_greeting_is_said_first_and_can_be_talked_over() -> None:
    """It begins at once; who speaks over it is answered, and what was heard of it is remembered."""
    text = "Good morning and welcome to our little coffee shop, what can I get you?"
    call = Call(
        caller((1500, 2900), until_ms=9000), ears=ScriptedRecognizer(((2000, "A"), (2700, "latte."))), greeting=text
    )
    heard = call.hold()
    first, second = of(ReplyFinished, heard)
    assert of(ReplyStarted, heard)[0].turn == 0
    assert (first.interrupted, second.heard) == (True, "Coming right up. Anything else?")
    assert text.startswith(first.heard)
    assert call.history[0] == ("assistant", first.heard)


def test_a_text_of_the_owners_is_said_between_turns() -> None:
    """It waits for the reply to end."""

    async def act(session: Session) -> None:
        await asyncio.sleep(3.0)
        session.say("We close in ten minutes.", interruptible=False)

    call = Call(caller((500, 2000), until_ms=9000), act=act)
    heard = call.hold()
    assert [event.heard for event in of(ReplyFinished, heard)] == [
        "Coming right up. Anything else?",
        "We close in ten minutes.",
    ]
