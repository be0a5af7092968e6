"""What every engine does on sound: noise is no words, a short answer is kept, and callers do not mix."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.hear.slots import MENU, loops, said, transcript, words
from tests.hear.sounds import frames, no_speech, silence, white

from antiphon.hear.recognizer import Foreseeing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from antiphon.core.flow import Pcm
    from antiphon.hear.recognizer import Recognizer

pytestmark = pytest.mark.model


@pytest.mark.parametrize("name", list(no_speech()))
def test_noise_is_never_words(recognizer: Recognizer, name: str) -> None:
    """Five seconds of each, with and without a vocabulary that the decoder could echo."""
    pcm = no_speech()[name]()
    assert ("", "") == (transcript(recognizer, pcm).text, transcript(recognizer, pcm, MENU).text)


@pytest.mark.parametrize("text", ["Thank you.", "Yes.", "No.", "Okay.", "Thanks for watching."])
def test_a_short_answer_is_kept(recognizer: Recognizer, say: Callable[[str], Pcm], text: str) -> None:
    """Also where it is what models invent in silence; there is no list of phrases."""
    pcm = np.concatenate((say(text), silence(0.7)))
    assert words(text) == said(recognizer, pcm) == said(recognizer, pcm, MENU)


@pytest.mark.parametrize("after", [silence(4), white(-60, 4.0)], ids=["zeros", "hiss"])
def test_silence_behind_a_sentence_adds_nothing(recognizer: Recognizer, say: Callable[[str], Pcm], after: Pcm) -> None:
    """Four seconds of it: just the sentence."""
    text = "Can I have a small latte with almond milk?"
    assert words(text) == said(recognizer, np.concatenate((say(text), after)))


@pytest.mark.parametrize(
    ("text", "word", "least"),
    [("I said no, no, no!", "no", 3), ("Two, two, two, two.", "2", 4), ("Very, very, very good!", "very", 3)],
)
def test_what_is_really_repeated_survives(
    recognizer: Recognizer, say: Callable[[str], Pcm], text: str, word: str, least: int
) -> None:
    """As often as it was said, give or take one."""
    count = said(recognizer, np.concatenate((say(text), silence(0.5)))).count(word)
    assert least <= count <= least + 1


def test_thanks_three_times_are_three(recognizer: Recognizer, say: Callable[[str], Pcm]) -> None:
    """A phrase of two words is no loop either."""
    heard = said(recognizer, np.concatenate((say("Thank you, thank you, thank you."), silence(0.5))))
    assert ["thank", "you"] * 3 == heard


def test_what_was_foreseen_is_what_is_heard(recognizer: Recognizer, say: Callable[[str], Pcm]) -> None:
    """By an engine that can: the turn's growing words are not touched, and a voice that goes on is heard on."""
    pcm = np.concatenate((say("Could I get a small latte, please?"), silence(0.1)))

    async def listen(places: Sequence[int], foreseen: Sequence[int]) -> list[str]:
        caller = recognizer.open(MENU)
        if not isinstance(caller, Foreseeing):
            pytest.skip(f"{recognizer.name} does not foresee")
        caller.begin(0)
        for frame in frames(pcm):
            caller.feed(frame)
        for place in foreseen:
            await caller.foresee(place)
        return [(await caller.transcribe(place, final=True)).text for place in places]

    whole = len(pcm)
    (plain,) = asyncio.run(listen([whole], []))
    assert [plain] == asyncio.run(listen([whole], [whole]))
    assert [plain] == asyncio.run(listen([whole], [whole // 2]))
    assert words("Could I get a small latte, please?") == words(plain)


def test_two_callers_do_not_mix(recognizer: Recognizer, say: Callable[[str], Pcm]) -> None:
    """Fed frame by frame in turns and transcribed at once, each hears its own sentence as if alone."""
    sounds = [say("Could I get a small latte, please?"), say("My number is four seven one nine.")]
    size = max(len(pcm) for pcm in sounds)
    sounds = [np.concatenate((pcm, np.zeros(size - len(pcm), np.float32))) for pcm in sounds]
    alone = [transcript(recognizer, pcm).text for pcm in sounds]

    async def listen() -> list[str]:
        callers = [recognizer.open(), recognizer.open()]
        for caller in callers:
            caller.begin(0)
        for number, pair in enumerate(zip(*(frames(pcm) for pcm in sounds), strict=True)):
            for caller, frame in zip(callers, pair, strict=True):
                caller.feed(frame)
            if number == 60:
                await asyncio.gather(*(caller.transcribe(size, final=False) for caller in callers))
        finals = await asyncio.gather(*(caller.transcribe(size, final=True) for caller in callers))
        return [final.text for final in finals]

    together = asyncio.run(listen())
    assert [words(text) for text in alone] == [words(text) for text in together]
    assert "latte" in words(together[0])
    assert "latte" not in words(together[1])


def test_a_long_turn_is_heard_to_its_end(recognizer: Recognizer, say: Callable[[str], Pcm]) -> None:
    """Forty seconds in one go and piece by piece: every sentence's own word once, and in order."""
    fruits = ["apples", "bananas", "cherries", "oranges", "lemons", "peaches", "grapes", "melons", "onions", "carrots"]
    places = ["london", "paris", "berlin", "madrid", "rome", "vienna", "boston", "chicago", "dallas", "denver"]
    texts = [
        f"Last week we sold many {fruit} to a very nice shop in {place}."
        for fruit, place in zip(fruits, places, strict=True)
    ]
    pcm = np.concatenate([say(text) for text in texts])
    own = set(fruits + places)
    expected = [word for pair in zip(fruits, places, strict=True) for word in pair]

    async def listen() -> str:
        heard = recognizer.open()
        heard.begin(0)
        for index, frame in enumerate(frames(pcm)):
            heard.feed(frame)
            if index % 200 == 199:
                await heard.transcribe(frame.end_samples, final=False)
        return (await heard.transcribe(len(pcm), final=True)).text

    assert len(pcm) > 30 * 16_000
    for text in (transcript(recognizer, pcm).text, asyncio.run(listen())):
        found = [word for word in words(text) if word in own]
        assert len(set(found)) >= 18, text
        assert [word for word in expected if word in set(found)] == found, text
        assert not loops(text)


def test_warm_up_runs(recognizer: Recognizer) -> None:
    """Without a caller."""
    asyncio.run(recognizer.warm_up())
