"""What every engine's recognition does, on engines that hear pitches instead of words."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np
import pytest
from tests.hear.doubles import SECOND, PitchMoonshine, PitchRecognizer, spoken, text_of
from tests.hear.sounds import frames, silence

from antiphon.core.errors import CallerError
from antiphon.core.flow import AudioFrame
from antiphon.hear.moonshine_recognition import WINDOW_SAMPLES as MOONSHINE_WINDOW_SAMPLES
from antiphon.hear.moonshine_recognition import MoonshineRecognition
from antiphon.hear.turn_recognition import LONGEST_UNHEARD_SAMPLES, RUN_UP_SAMPLES
from antiphon.hear.whisper_recognition import WINDOW_SAMPLES, WhisperRecognition

if TYPE_CHECKING:
    from antiphon.core.flow import Pcm, Transcript
    from antiphon.hear.moonshine import MoonshineRecognizer
    from antiphon.hear.whisper import WhisperRecognizer
    from antiphon.hear.word_bias import WordBias

pytestmark = pytest.mark.unit

WORDS = (50, 60, 45, 70, 55, 65, 40)
LONGEST_S = {PitchRecognizer: WINDOW_SAMPLES / SECOND, PitchMoonshine: MOONSHINE_WINDOW_SAMPLES / SECOND}

Double: TypeAlias = PitchRecognizer | PitchMoonshine


@pytest.fixture(params=[PitchRecognizer, PitchMoonshine], ids=["whisper", "moonshine"])
def recognizer(request: pytest.FixtureRequest) -> Double:
    double: Double = request.param()
    return double


def recognition(recognizer: Double) -> WhisperRecognition | MoonshineRecognition:
    if isinstance(recognizer, PitchRecognizer):
        return WhisperRecognition(cast("WhisperRecognizer", recognizer), ())
    return MoonshineRecognition(cast("MoonshineRecognizer", recognizer), cast("WordBias", None))


def feed(heard: WhisperRecognition | MoonshineRecognition, pcm: Pcm, *, pos_samples: int = 0) -> int:
    for frame in frames(pcm, size_samples=1600, pos_samples=pos_samples):
        heard.feed(frame)
    return pos_samples + len(pcm)


def transcript(recognizer: Double, pcm: Pcm, *steps_s: float) -> list[Transcript]:
    """What is heard of the sound at each moment, the last time for good."""

    async def listen() -> list[Transcript]:
        heard = recognition(recognizer)
        heard.begin(0)
        feed(heard, pcm)
        return [await heard.transcribe(round(step_s * SECOND), final=step_s == steps_s[-1]) for step_s in steps_s]

    return asyncio.run(listen())


def test_without_a_turn_there_is_no_text(recognizer: Double) -> None:
    """Sound alone is no turn."""

    async def listen() -> None:
        heard = recognition(recognizer)
        feed(heard, spoken(1))
        assert (await heard.transcribe(SECOND, final=True)).text == ""

    asyncio.run(listen())


def test_a_turn_begins_in_the_past_but_not_before_the_run_up(recognizer: Double) -> None:
    """Of three words the last second is there when the turn begins; the two before it are gone."""

    async def listen() -> None:
        heard = recognition(recognizer)
        end = feed(heard, spoken(*WORDS[:3]))
        heard.begin(0)
        transcribed = await heard.transcribe(end, final=True)
        assert text_of(WORDS[2]) == transcribed.text
        assert RUN_UP_SAMPLES / SECOND == recognizer.calls[0].sound_s
        heard.begin(end - SECOND // 2)
        await heard.transcribe(end, final=True)
        assert recognizer.calls[1].sound_s == 0.5

    asyncio.run(listen())


@pytest.mark.parametrize("ends", [True, False])
def test_a_turn_may_begin_anywhere_in_the_turn_before(recognizer: Double, ends: bool) -> None:
    """However long its transcription took: of five words the last three are the next turn's."""

    async def listen() -> None:
        heard = recognition(recognizer)
        heard.begin(0)
        end = feed(heard, spoken(*WORDS[:5]))
        assert (await heard.transcribe(2 * SECOND, final=True)).text == text_of(*WORDS[:2])
        if ends:
            heard.end()
        heard.begin(2 * SECOND)
        assert (await heard.transcribe(end, final=True)).text == text_of(*WORDS[2:5])

    asyncio.run(listen())


def test_a_turn_may_begin_before_its_sound_comes(recognizer: Double) -> None:
    """What is fed before its beginning is not part of it."""

    async def listen() -> None:
        heard = recognition(recognizer)
        heard.begin(SECOND)
        end = feed(heard, spoken(*WORDS[:2]))
        transcribed = await heard.transcribe(end, final=True)
        assert text_of(WORDS[1]) == transcribed.text
        assert recognizer.calls[0].sound_s == 1.0

    asyncio.run(listen())


def test_only_what_was_fed_is_heard_and_only_up_to_there(recognizer: Double) -> None:
    """A position in the future is cut to the sound, one in the past cuts the sound."""
    early, late = transcript(recognizer, spoken(*WORDS[:3]), 2.0, 99.0)
    assert (2 * SECOND, 3 * SECOND) == (early.heard_samples, late.heard_samples)
    assert (2, 3) == (len(early.text.split()), len(late.text.split()))
    assert (False, True) == (early.is_final, late.is_final)


def test_stable_text_grows_and_stays(recognizer: Double) -> None:
    """Each transcript begins with the stable text of the one before."""
    stable = ""
    for heard in transcript(recognizer, spoken(*WORDS), 2.0, 3.0, 4.0, 5.0, 6.0, 7.0):
        assert heard.text.startswith(stable)
        assert heard.stable_chars >= len(stable)
        stable = heard.text[: heard.stable_chars]
    assert len(stable.split()) >= 5


@pytest.mark.parametrize("step_s", [180, 2])
def test_a_long_turn_loses_and_doubles_no_word(recognizer: Double, step_s: int) -> None:
    """Three minutes: heard in one go, or bit by bit, all 180 words are there once, and no window outgrows its bound."""
    said = [WORDS[index * 3 % 7] for index in range(180)]

    async def listen() -> None:
        heard = recognition(recognizer)
        heard.begin(0)
        pcm = spoken(*said)
        stable = ""
        for end_s in range(step_s, 181, step_s):
            feed(heard, pcm[(end_s - step_s) * SECOND : end_s * SECOND], pos_samples=(end_s - step_s) * SECOND)
            transcribed = await heard.transcribe(end_s * SECOND, final=end_s == 180)
            assert transcribed.text.startswith(stable)
            stable = transcribed.text[: transcribed.stable_chars]
        assert text_of(*said) == transcribed.text
        assert max(call.sound_s for call in recognizer.calls) <= LONGEST_S[type(recognizer)]

    asyncio.run(listen())


def test_cancelled_between_encoding_and_decoding_leaves_the_turn_as_it_was(recognizer: Double) -> None:
    """The next call hears the same as if the first had never been made."""

    async def listen() -> None:
        heard = recognition(recognizer)
        heard.begin(0)
        end = feed(heard, spoken(*WORDS[:3]))
        recognizer.hold = asyncio.Event()
        task = asyncio.create_task(heard.transcribe(end, final=False))
        await recognizer.encoding.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        recognizer.hold = None
        assert [] == recognizer.calls
        transcribed = await heard.transcribe(end, final=True)
        assert text_of(*WORDS[:3]) == transcribed.text
        assert transcribed.stable_chars == 0

    asyncio.run(listen())


def test_a_turn_that_begins_meanwhile_is_untouched(recognizer: Double) -> None:
    """The late result belongs to the turn that asked for it."""

    async def listen() -> None:
        heard = recognition(recognizer)
        heard.begin(0)
        end = feed(heard, spoken(*WORDS[:2]))
        recognizer.hold = asyncio.Event()
        first = asyncio.create_task(heard.transcribe(end, final=True))
        await recognizer.encoding.wait()
        heard.begin(end)
        end = feed(heard, spoken(WORDS[3]), pos_samples=end)
        recognizer.hold.set()
        assert text_of(*WORDS[:2]) == (await first).text
        assert text_of(WORDS[3]) == (await heard.transcribe(end, final=True)).text

    asyncio.run(listen())


def test_digital_silence_costs_no_model(recognizer: Double) -> None:
    """Five seconds of zeros, and a minute of them, are no text and no call."""

    async def listen() -> None:
        heard = recognition(recognizer)
        heard.begin(0)
        end = feed(heard, silence(60))
        assert (await heard.transcribe(end, final=True)).text == ""
        assert recognizer.encoded == 0

    asyncio.run(listen())


def test_sound_kept_is_bounded(recognizer: Double) -> None:
    """Outside a turn a second; after a final transcript that nobody follows up half a minute; never more than that."""

    async def listen() -> None:
        heard = recognition(recognizer)
        pos = feed(heard, silence(5))
        assert RUN_UP_SAMPLES == len(heard._run_up)
        heard.begin(pos)
        pos = feed(heard, silence(LONGEST_UNHEARD_SAMPLES / SECOND + 30), pos_samples=pos)
        assert heard._turn is not None
        assert len(heard._turn.sound) <= LONGEST_UNHEARD_SAMPLES
        assert pos == heard._turn.end_samples
        heard.begin(pos)
        await heard.transcribe(pos, final=True)
        heard.end()
        feed(heard, silence(40), pos_samples=pos)
        assert heard._turn is None
        assert len(heard._run_up) == RUN_UP_SAMPLES

    asyncio.run(listen())


def test_long_loss_keeps_the_words_before_it(recognizer: Double) -> None:
    """A minute missing inside a turn: text goes on behind it, positions stay right."""

    async def listen() -> None:
        heard = recognition(recognizer)
        heard.begin(0)
        end = feed(heard, spoken(*WORDS[:2]))
        await heard.transcribe(end, final=False)
        end = feed(heard, spoken(WORDS[2]), pos_samples=end + 60 * SECOND)
        transcribed = await heard.transcribe(end, final=True)
        assert text_of(*WORDS[:3]) == transcribed.text
        assert end == transcribed.heard_samples

    asyncio.run(listen())


def test_another_rate_is_refused(recognizer: Double) -> None:
    """Sound is resampled at the door, not here."""
    with pytest.raises(CallerError, match="8000"):
        recognition(recognizer).feed(
            AudioFrame(pcm=np.zeros(80, np.float32), rate_hz=8000, pos_samples=0, captured_ns=0)
        )
