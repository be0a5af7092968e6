"""What Whisper's recognition has beyond what all share: text that the decoder reads first, and Chinese."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import pytest
from tests.hear.doubles import SECOND, CharacterTokens, PitchRecognizer, spoken, text_of
from tests.hear.sounds import frames

from antiphon.hear.whisper_recognition import CONTEXT_TOKENS, WINDOW_SAMPLES, WhisperRecognition

if TYPE_CHECKING:
    from antiphon.core.flow import Pcm
    from antiphon.hear.whisper import WhisperRecognizer

pytestmark = pytest.mark.unit

WORDS = (50, 60, 45, 70, 55, 65, 40)


def recognition(recognizer: PitchRecognizer, hints: tuple[int, ...] = ()) -> WhisperRecognition:
    return WhisperRecognition(cast("WhisperRecognizer", recognizer), hints)


def feed(heard: WhisperRecognition, pcm: Pcm, *, pos_samples: int = 0) -> int:
    for frame in frames(pcm, size_samples=1600, pos_samples=pos_samples):
        heard.feed(frame)
    return pos_samples + len(pcm)


def test_a_long_turn_loses_and_doubles_no_word() -> None:
    """Three minutes: heard in one go, or bit by bit, all 180 words are there once, and no window outgrows its bound."""
    said = [WORDS[index * 3 % 7] for index in range(180)]

    async def listen(step_s: int) -> None:
        recognizer = PitchRecognizer()
        heard = recognition(recognizer, (7,))
        heard.begin(0)
        pcm = spoken(*said)
        stable = ""
        for end_s in range(step_s, 181, step_s):
            feed(heard, pcm[(end_s - step_s) * SECOND : end_s * SECOND], pos_samples=(end_s - step_s) * SECOND)
            transcribed = await heard.transcribe(end_s * SECOND, final=end_s == 180)
            assert transcribed.text.startswith(stable)
            stable = transcribed.text[: transcribed.stable_chars]
        assert text_of(*said) == transcribed.text
        assert max(call.sound_s for call in recognizer.calls) <= WINDOW_SAMPLES / SECOND
        assert max(call.columns for call in recognizer.calls) <= 3000
        assert recognizer.calls[-1].before[0] == 7
        assert 10 < len(recognizer.calls[-1].before) < 80

    asyncio.run(listen(180))
    asyncio.run(listen(2))


def test_a_long_chinese_turn_loses_and_doubles_no_character() -> None:
    """Three minutes of them: parted between characters, joined without spaces, and the stable text stays."""
    said = [WORDS[index * 3 % 7] for index in range(180)]

    async def listen() -> None:
        recognizer = PitchRecognizer(CharacterTokens())
        heard = recognition(recognizer, (7,))
        heard.begin(0)
        pcm = spoken(*said)
        stable = ""
        for end_s in range(2, 181, 2):
            feed(heard, pcm[(end_s - 2) * SECOND : end_s * SECOND], pos_samples=(end_s - 2) * SECOND)
            transcribed = await heard.transcribe(end_s * SECOND, final=end_s == 180)
            assert transcribed.text.startswith(stable)
            stable = transcribed.text[: transcribed.stable_chars]
            assert len(stable) >= end_s - 4
        assert "".join(chr(0x4E00 + word) for word in said) == transcribed.text
        assert max(call.sound_s for call in recognizer.calls) <= WINDOW_SAMPLES / SECOND
        assert 40 < len(recognizer.calls[-1].before) <= 1 + CONTEXT_TOKENS

    asyncio.run(listen())
