"""What every voice owes its caller, asked of the double and of the real one alike."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.speak.doubles import ToneVoice
from tests.speak.piper_voice import piper_voice, reason_to_skip

from antiphon.audio.level import audible_span
from antiphon.core.errors import EngineError
from antiphon.core.flow import TextChunk
from antiphon.scheduling.lanes import ThreadLane
from antiphon.speak.hibari import HibariVoice
from antiphon.speak.piper import PiperVoice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from antiphon.core.flow import SpeechPiece
    from antiphon.speak.synthesizer import Synthesizer

UNSPEAKABLE = "9" * 400  # hibari has no name for a number this long, and espeak-ng would leave out its end
TEXTS = (
    "Sure.",
    " Okay, a small latte",
    "I can do that. What size would you like?\n\n",
    "\n \u201cFine!\u201d ... Dr. Smith owes $5.20 at 7:30pm \U0001f642 \u2014 ok? ",
    "a",
)


@pytest.fixture(scope="module")
def hibari() -> Iterator[HibariVoice]:
    lane = ThreadLane("test-voice")
    voice = HibariVoice.load(None, lane=lane)
    yield voice
    voice.close()
    lane.close()


@pytest.fixture(scope="module")
def piper() -> Iterator[PiperVoice]:
    path = piper_voice()
    if reason_to_skip() or path is None:
        pytest.skip(reason_to_skip())
    lane = ThreadLane("test-piper")
    voice = PiperVoice.load(path, lane=lane)
    yield voice
    voice.close()
    lane.close()


@pytest.fixture(
    params=[
        pytest.param("double", marks=pytest.mark.unit),
        pytest.param("hibari", marks=pytest.mark.model),
        pytest.param("piper", marks=pytest.mark.model),
    ]
)
def voice(request: pytest.FixtureRequest) -> Synthesizer:
    if request.param != "double":
        return request.getfixturevalue(request.param)
    return ToneVoice(fails=lambda chunk: UNSPEAKABLE in chunk.text)


def chunk_of(text: str, *, is_last: bool = False) -> TextChunk:
    return TextChunk(text=text, index=3, start_chars=100, is_last=is_last)


def spoken(voice: Synthesizer, chunk: TextChunk) -> list[SpeechPiece]:
    async def collect() -> list[SpeechPiece]:
        return [piece async for piece in voice.speak(chunk)]

    return asyncio.run(collect())


@pytest.mark.parametrize("text", TEXTS)
def test_pieces_lie_end_to_end_and_say_the_chunk(voice: Synthesizer, text: str) -> None:
    """The texts of the pieces make up the chunk, none of it twice or left out."""
    pieces = spoken(voice, chunk_of(text, is_last=True))

    assert text == "".join(piece.chunk.text for piece in pieces)
    ends = [piece.chunk.end_chars for piece in pieces]
    assert [100, *ends[:-1]] == [piece.chunk.start_chars for piece in pieces]
    assert 100 + len(text) == ends[-1]
    assert {3} == {piece.chunk.index for piece in pieces}
    assert [False] * (len(pieces) - 1) + [True] == [piece.chunk.is_last for piece in pieces]


@pytest.mark.parametrize("text", TEXTS)
def test_sound_is_mono_float32_in_range_at_the_rate_of_the_voice(voice: Synthesizer, text: str) -> None:
    for piece in spoken(voice, chunk_of(text)):
        assert voice.rate_hz == piece.rate_hz
        assert (np.float32, 1) == (piece.pcm.dtype, piece.pcm.ndim)
        assert np.isfinite(piece.pcm).all()
        assert np.abs(piece.pcm).max() <= 1.0


@pytest.mark.parametrize("text", TEXTS)
def test_a_piece_begins_to_sound_at_once(voice: Synthesizer, text: str) -> None:
    """The first audible sample lies in the first 5 ms: the silence that models begin with never reaches a listener."""
    for piece in spoken(voice, chunk_of(text)):
        first, end = audible_span(piece.pcm, piece.rate_hz)

        assert end > first
        assert first <= piece.rate_hz * 5 // 1000
        assert abs(piece.pcm[0]) < 0.02
        assert abs(piece.pcm[-1]) < 0.02


@pytest.mark.parametrize(
    ("text", "pause_ms"),
    [("Sure, one", 0), ("Sure,", 90), ("We have: ", 180), ("Okay. ", 240), ("Is it?\u201d", 240), ("Okay.\n", 450)],
)
def test_the_last_mark_is_followed_by_its_pause(voice: Synthesizer, text: str, pause_ms: int) -> None:
    """Silence after the last word is as long as the mark deserves, less what cannot be heard of the word itself."""
    (piece,) = spoken(voice, chunk_of(text))
    silence = len(piece.pcm) - audible_span(piece.pcm, piece.rate_hz)[1]

    assert abs(silence * 1000 / piece.rate_hz - pause_ms) <= 10


def test_the_end_of_a_reply_is_not_delayed(voice: Synthesizer) -> None:
    """After the last chunk there is no pause, only the last sound dying away."""
    (piece,) = spoken(voice, chunk_of("That is all.\n\n", is_last=True))

    silence = len(piece.pcm) - audible_span(piece.pcm, piece.rate_hz)[1]
    assert silence * 1000 / piece.rate_hz <= 70


@pytest.mark.parametrize("text", TEXTS)
def test_text_positions_rise_and_are_exact_at_the_borders(voice: Synthesizer, text: str) -> None:
    """Nothing is heard before a piece, all of it after; in between, what was heard only grows."""
    for piece in spoken(voice, chunk_of(text)):
        start, end = piece.chunk.start_chars, piece.chunk.end_chars
        samples, chars = zip(*piece.marks, strict=True)
        heard = [piece.chars_heard(position) for position in range(len(piece.pcm) + 1)]

        assert list(samples) == sorted(set(samples))
        assert list(chars) == sorted(set(chars))
        assert samples[0] > 0
        assert samples[-1] <= len(piece.pcm)
        assert start < chars[0]
        assert chars[-1] <= end
        assert (start, end) == (heard[0], heard[-1])
        assert heard == sorted(heard)


def test_every_word_is_heard_before_the_pause(voice: Synthesizer) -> None:
    """A listener who cuts in during the pause has heard the sentence."""
    text = "Okay, a small latte. "
    (piece,) = spoken(voice, chunk_of(text))
    voiced = audible_span(piece.pcm, piece.rate_hz)[1]

    assert 100 + len("Okay, a small latte") <= piece.chars_heard(voiced + 1)


@pytest.mark.parametrize("text", ["", " ", "\n\n", "...", "\u2014", "\U0001f642", "*", " \u201c!?\u201d \U0001f44b\n"])
def test_nothing_to_say_yields_nothing(voice: Synthesizer, text: str) -> None:
    """White space, marks and pictures are no error and no sound."""
    assert [] == spoken(voice, chunk_of(text, is_last=True))


def test_the_same_chunk_sounds_the_same(voice: Synthesizer) -> None:
    """What was said in between does not matter."""
    first = spoken(voice, chunk_of("A large mocha, please."))
    spoken(voice, chunk_of("Something else."))
    second = spoken(voice, chunk_of("A large mocha, please."))

    assert [piece.pcm.tobytes() for piece in first] == [piece.pcm.tobytes() for piece in second]
    assert [piece.marks for piece in first] == [piece.marks for piece in second]


def test_a_failure_costs_one_chunk(voice: Synthesizer) -> None:
    """The chunk that cannot be spoken raises without quoting it; the next one is spoken."""
    with pytest.raises(EngineError) as caught:
        spoken(voice, chunk_of(f"It is {UNSPEAKABLE}."))

    assert "99" not in str(caught.value)
    assert len(spoken(voice, chunk_of("It is nine."))) == 1


def test_closing_early_leaves_the_voice_usable(voice: Synthesizer) -> None:
    """A reply that is interrupted in mid-chunk disturbs nobody."""

    async def hear_one_piece() -> SpeechPiece:
        pieces = voice.speak(chunk_of("One is here. Two is here. Three is here."))
        first = await anext(pieces)
        await pieces.aclose()
        return first

    assert asyncio.run(hear_one_piece()).chunk.text.startswith("One is here.")
    assert len(spoken(voice, chunk_of("Okay."))) == 1


def test_conversations_may_speak_at_once(voice: Synthesizer) -> None:
    """Two chunks in turns sound as each of them alone."""

    async def both() -> list[list[bytes]]:
        async def one(text: str) -> list[bytes]:
            return [piece.pcm.tobytes() async for piece in voice.speak(chunk_of(text))]

        return await asyncio.gather(one("A large mocha. And a tea."), one("See you soon. Bye."))

    alone = [
        [piece.pcm.tobytes() for piece in spoken(voice, chunk_of(text))]
        for text in ("A large mocha. And a tea.", "See you soon. Bye.")
    ]
    assert alone == asyncio.run(both())


def test_warming_up_may_be_repeated(voice: Synthesizer) -> None:
    asyncio.run(voice.warm_up())
    asyncio.run(voice.warm_up())
