"""What of a model's text reaches the voice, in whole conversations."""

from __future__ import annotations

from random import Random

import pytest
from tests.session.call import Call, of
from tests.session.doubles import ScriptedRecognizer, caller
from tests.session.mind import mind
from tests.speak.doubles import ToneVoice

from antiphon.session.events import ReplyFinished, ReplyText, StageFailed, TurnConfirmed, TurnStarted

pytestmark = pytest.mark.unit

SEEDS = range(50)


def cut(text: str, seed: int) -> list[str]:
    """`text` as a stream would bring it: in pieces of one to seven characters."""
    random, at, pieces = Random(seed), 0, []
    while at < len(text):
        size = random.randint(1, 7)
        pieces.append(text[at : at + size])
        at += size
    return pieces


def spoken(call: Call) -> str:
    return "".join(chunk.text for chunk in call.voice.asked)


@pytest.mark.parametrize("seed", SEEDS)
def test_thoughts_are_not_spoken_however_they_are_cut(seed: int) -> None:
    """Only what stands outside the tags reaches voice, owner and history."""
    call = Call(caller((500, 2000), until_ms=8000), mind=mind(cut("<think>It is a secret.</think>Hello there.", seed)))
    heard = call.hold()
    assert spoken(call) == "Hello there."
    assert of(ReplyFinished, heard)[-1].heard == "Hello there."
    assert call.history[-1] == ("assistant", "Hello there.")


def test_a_thought_that_never_ends_is_silence_and_the_conversation_goes_on() -> None:
    """Nothing is spoken; the next turn is answered."""
    ears = ScriptedRecognizer(((1500, "One."), (5500, "Two.")))
    call = Call(
        caller((500, 2000), (5000, 6000), until_ms=12_000),
        ears=ears,
        mind=mind(["<think>Let me", " see"], ["Two it is."]),
    )
    heard = call.hold()
    assert spoken(call) == "Two it is."
    assert len(of(TurnConfirmed, heard)) == 2


@pytest.mark.parametrize("seed", range(10))
def test_markup_and_figures_are_spoken_as_people_say_them(seed: int) -> None:
    """The voice gets words, the owner and the history what was written."""
    text = "**Sure:** it is $4.75, see [the menu](https://example.com/menu). 5 * 3 is 15."
    call = Call(caller((500, 2000), until_ms=20_000), mind=mind(cut(text, seed)))
    heard = call.hold()
    said = spoken(call)
    assert not set("*[]$()/") & set(said)
    assert "four dollars and seventy-five cents" in said
    assert "the menu" in said
    assert "example" not in said
    assert "five times three" in said
    assert "".join(event.text for event in of(ReplyText, heard)) == text
    assert call.history[-1] == ("assistant", text)


def test_what_cannot_be_said_never_reaches_the_voice() -> None:
    """A lone mark, an emoji, a dash: left out, and what is around them is said."""

    class Picky(ToneVoice):
        async def speak(self, chunk):
            assert any(map(str.isalnum, chunk.text)), f"nothing to say in {chunk.text!r}"
            async for piece in super().speak(chunk):
                yield piece

    call = Call(
        caller((500, 2000), until_ms=9000),
        mind=mind(["...", "\n", "\N{GRINNING FACE}", "\n", "Fine.", " ", "\N{EM DASH}", " ", "9"]),
        voice=Picky(),
    )
    heard = call.hold()
    assert of(StageFailed, heard) == []
    assert "Fine." in spoken(call)
    assert "nine" in spoken(call)
    assert "\N{GRINNING FACE}" not in spoken(call)


@pytest.mark.parametrize("seed", SEEDS)
def test_one_syllable_is_heard_and_answered_once(seed: int) -> None:
    """However late the recognizer is, and however short the word."""
    random = Random(seed)
    ends_ms = 1000 + random.randrange(200, 260)
    ears = ScriptedRecognizer(((ends_ms - 20, "Yes."),), delay_ms=random.uniform(20, 600))
    heard = Call(caller((1000, ends_ms), until_ms=8000), ears=ears).hold()
    assert [event.text for event in of(TurnConfirmed, heard)] == ["Yes."]
    assert [event.interrupted for event in of(ReplyFinished, heard)] == [False]


@pytest.mark.parametrize("seed", SEEDS)
def test_after_a_cough_the_next_sentence_is_answered(seed: int) -> None:
    """The cough has no words and no answer; nothing is stuck."""
    random = Random(seed)
    start_ms = random.randrange(2500, 4000)
    ears = ScriptedRecognizer(((start_ms + 900, "A latte, please."),), delay_ms=random.uniform(20, 500))
    call = Call(
        caller((1000, 1000 + random.randrange(120, 400)), (start_ms, start_ms + 1000), until_ms=11_000), ears=ears
    )
    heard = call.hold()
    assert [event.text for event in of(TurnConfirmed, heard)] == ["A latte, please."]
    assert [event.heard for event in of(ReplyFinished, heard)] == ["Coming right up. Anything else?"]
    assert call.left_over == (0, 0)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_second_half_over_a_reply_that_may_not_be_interrupted_keeps_its_place(seed: int) -> None:
    """Merged with the first, or a turn of its own after it; then the conversation waits for new speech."""
    random = Random(seed)
    start_ms = 1500 + random.randrange(350, 900)
    ears = ScriptedRecognizer(
        ((1400, "I want."), (start_ms + 500, "A latte, please.")), delay_ms=random.uniform(20, 400)
    )
    model = mind(["Certainly, coming right up."], ["A latte it is."])
    call = Call(
        caller((500, 1500), (start_ms, start_ms + 600), until_ms=14_000), ears=ears, mind=model, interruptible=False
    )
    heard = call.hold()
    users = [text for role, text in call.history if role == "user"]
    assert " ".join(users) == "I want. A latte, please."
    assert not any(event.interrupted for event in of(ReplyFinished, heard))
    assert len(of(TurnStarted, heard)) <= 2
    assert call.left_over == (0, 0)
