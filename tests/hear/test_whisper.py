from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.hear.slots import MENU, loops, words
from tests.hear.sounds import frames, no_speech, silence, white
from tests.hear.wide_model import write_wide_model

from antiphon.core.errors import CallerError, MachineError
from antiphon.hear.whisper import WhisperRecognizer
from antiphon.hear.whisper_settings import WhisperSettings, own_folder
from antiphon.scheduling.lanes import ThreadLane

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from antiphon.core.flow import Pcm, Transcript

pytestmark = pytest.mark.model


def transcript(recognizer: WhisperRecognizer, pcm: Pcm, vocabulary: Sequence[str] = ()) -> Transcript:
    """What a turn of just this sound says."""

    async def listen() -> Transcript:
        heard = recognizer.open(vocabulary)
        heard.begin(0)
        for frame in frames(pcm):
            heard.feed(frame)
        return await heard.transcribe(len(pcm), final=True)

    return asyncio.run(listen())


def said(recognizer: WhisperRecognizer, pcm: Pcm, vocabulary: Sequence[str] = ()) -> list[str]:
    return words(transcript(recognizer, pcm, vocabulary).text)


@pytest.mark.parametrize("name", list(no_speech()))
def test_noise_is_never_words(whisper: WhisperRecognizer, name: str) -> None:
    """Five seconds of each, with and without a vocabulary that the decoder could echo."""
    pcm = no_speech()[name]()
    assert ("", "") == (transcript(whisper, pcm).text, transcript(whisper, pcm, MENU).text)


@pytest.mark.parametrize("text", ["Thank you.", "Yes.", "No.", "Okay.", "Thanks for watching."])
def test_a_short_answer_is_kept(whisper: WhisperRecognizer, say: Callable[[str], Pcm], text: str) -> None:
    """Also where it is what models invent in silence; there is no list of phrases."""
    pcm = np.concatenate((say(text), silence(0.7)))
    assert words(text) == said(whisper, pcm) == said(whisper, pcm, MENU)


@pytest.mark.parametrize("after", [silence(4), white(-60, 4.0)], ids=["zeros", "hiss"])
def test_silence_behind_a_sentence_adds_nothing(
    whisper: WhisperRecognizer, say: Callable[[str], Pcm], after: Pcm
) -> None:
    """Four seconds of it: just the sentence."""
    text = "Can I have a small latte with almond milk?"
    assert words(text) == said(whisper, np.concatenate((say(text), after)))


@pytest.mark.parametrize(
    ("text", "word", "least"),
    [("I said no, no, no!", "no", 3), ("Two, two, two, two.", "2", 4), ("Very, very, very good!", "very", 3)],
)
def test_what_is_really_repeated_survives(
    whisper: WhisperRecognizer, say: Callable[[str], Pcm], text: str, word: str, least: int
) -> None:
    """As often as it was said, give or take one."""
    count = said(whisper, np.concatenate((say(text), silence(0.5)))).count(word)
    assert least <= count <= least + 1


def test_thanks_three_times_are_three(whisper: WhisperRecognizer, say: Callable[[str], Pcm]) -> None:
    """A phrase of two words is no loop either."""
    heard = said(whisper, np.concatenate((say("Thank you, thank you, thank you."), silence(0.5))))
    assert ["thank", "you"] * 3 == heard


def test_two_callers_do_not_mix(whisper: WhisperRecognizer, say: Callable[[str], Pcm]) -> None:
    """Fed frame by frame in turns and transcribed at once, each hears its own sentence as if alone."""
    sounds = [say("Could I get a small latte, please?"), say("My number is four seven one nine.")]
    size = max(len(pcm) for pcm in sounds)
    sounds = [np.concatenate((pcm, np.zeros(size - len(pcm), np.float32))) for pcm in sounds]
    alone = [transcript(whisper, pcm).text for pcm in sounds]

    async def listen() -> list[str]:
        callers = [whisper.open(), whisper.open()]
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


def test_a_long_turn_is_heard_to_its_end(whisper: WhisperRecognizer, say: Callable[[str], Pcm]) -> None:
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
        heard = whisper.open()
        heard.begin(0)
        for index, frame in enumerate(frames(pcm)):
            heard.feed(frame)
            if index % 200 == 199:
                await heard.transcribe(frame.end_samples, final=False)
        return (await heard.transcribe(len(pcm), final=True)).text

    assert len(pcm) > 30 * 16_000
    for text in (transcript(whisper, pcm).text, asyncio.run(listen())):
        found = [word for word in words(text) if word in own]
        assert len(set(found)) >= 18, text
        assert [word for word in expected if word in set(found)] == found, text
        assert not loops(text)


def test_float16_on_a_cpu_starts_and_says_what_it_does(whisper_folder: Path, say: Callable[[str], Pcm]) -> None:
    """With a type that the machine has."""
    lane = ThreadLane("recognise")
    asked = WhisperSettings(compute_type="float16")
    recognizer = WhisperRecognizer.load(whisper_folder, lane=lane, threads=2, settings=asked)
    assert recognizer.compute_type in {"int8", "int8_float32", "float32"}
    assert "float16" in recognizer.compute_type_reason
    assert ["thank", "you"] == said(recognizer, say("Thank you."))
    lane.close()
    recognizer.close()


def test_a_model_of_128_bins_runs(whisper_folder: Path, tmp_path: Path) -> None:
    """Its own number of bins is what it gets; from a folder of one's own, from sound to a transcript."""
    write_wide_model(tmp_path / "wide", whisper_folder / "tokenizer.json")
    folder = own_folder(f"{tmp_path}/wide")
    assert folder is not None
    lane = ThreadLane("recognise")
    recognizer = WhisperRecognizer.load(folder, lane=lane, threads=1)
    assert (recognizer.bins, recognizer.name) == (128, "wide")
    asyncio.run(recognizer.warm_up())
    assert transcript(recognizer, white(-20, 20.0)).heard_samples == 20 * 16_000
    lane.close()
    recognizer.close()


def test_vocabulary_is_bounded_and_the_first_named_stays(whisper: WhisperRecognizer) -> None:
    """A thousand phrases fit, since most are left out; an empty one does no harm."""
    hints = whisper.tokens.hints([f"phrase number {n}" for n in range(1000)], limit_tokens=100)
    assert len(hints) <= 100
    assert "phrase number 0" in whisper.tokens.decode(hints)
    assert [] == whisper.tokens.hints([], limit_tokens=100)
    assert [] == whisper.tokens.hints(["", "  "], limit_tokens=100)


def test_warm_up_runs(whisper: WhisperRecognizer) -> None:
    """Without a caller."""
    asyncio.run(whisper.warm_up())


def test_what_cannot_be_loaded_is_an_error_with_a_remedy(whisper_folder: Path, tmp_path: Path) -> None:
    """A folder without a model, a language that the model does not know."""
    lane = ThreadLane("none")
    with pytest.raises(MachineError, match="fetch"):
        WhisperRecognizer.load(tmp_path, lane=lane, threads=1)
    with pytest.raises(CallerError, match=r"whisper\.language is de, but this model knows English only"):
        WhisperRecognizer.load(whisper_folder, lane=lane, threads=1, settings=WhisperSettings(language="de"))
    with pytest.raises(CallerError, match="vocabulary_tokens"):
        WhisperSettings(vocabulary_tokens=1000)
    for wrong in ("Chinese", "", "zh-CN", "transcribe"):
        with pytest.raises(CallerError, match="language is") as caught:
            WhisperSettings(language=wrong)
        assert "en, zh, de" in str(caught.value.hint)
