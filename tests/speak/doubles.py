"""A voice without a model: every letter and digit is a tone, everything takes as long as the test says."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import numpy as np

from antiphon.core.clock import SECOND_NS, samples_to_ns
from antiphon.core.errors import EngineError
from antiphon.core.flow import SpeechPiece
from antiphon.speak.pauses import pause_after_ms

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from antiphon.core.flow import Pcm, TextChunk


class ToneVoice:
    """A tone of `char_ms` per letter or digit, silence of the same length for other characters inside the text.

    `work_ns` says how long a chunk takes, given the length of its sound; `fails` for which chunks the voice breaks.
    """

    name = "tones"
    longest_slice_ns = 0

    def __init__(
        self,
        *,
        rate_hz: int = 24_000,
        char_ms: int = 60,
        work_ns: Callable[[TextChunk, int], int] = lambda _chunk, _sound_ns: 0,
        fails: Callable[[TextChunk], bool] = lambda _chunk: False,
    ) -> None:
        self.rate_hz = rate_hz
        self.asked: list[TextChunk] = []  # every chunk that was to be spoken, in order
        self.warmed_up = False
        self._char_samples = rate_hz * char_ms // 1000
        self._work_ns = work_ns
        self._fails = fails

    async def speak(self, chunk: TextChunk) -> AsyncGenerator[SpeechPiece, None]:
        self.asked.append(chunk)
        if not any(map(str.isalnum, chunk.text)):
            return
        first = next(place for place, character in enumerate(chunk.text) if character.isalnum())
        voiced = [self._sound(character) for character in chunk.text.rstrip()[first:]]
        while not voiced[-1].any():
            voiced.pop()
        sound = np.concatenate(voiced)
        work_ns = self._work_ns(chunk, samples_to_ns(len(sound), self.rate_hz))
        if work_ns:
            await asyncio.sleep(work_ns / SECOND_NS)
        if self._fails(chunk):
            raise EngineError("the tones broke", hint="they do so when a test wants it")
        pause_ms = 0 if chunk.is_last else pause_after_ms(chunk.text)
        marks = [
            ((place + 1) * self._char_samples, chunk.start_chars + first + place + 1)
            for place in range(len(voiced))
            if chunk.text[first + place].isalnum()
        ]
        silence = np.zeros(self.rate_hz * pause_ms // 1000, np.float32)
        yield SpeechPiece(pcm=np.concatenate([sound, silence]), rate_hz=self.rate_hz, chunk=chunk, marks=tuple(marks))

    async def warm_up(self) -> None:
        self.warmed_up = True

    def close(self) -> None:
        pass

    def _sound(self, character: str) -> Pcm:
        """One character's tone, which starts and ends near zero."""
        if not character.isalnum():
            return np.zeros(self._char_samples, np.float32)
        periods = 10 + ord(character) % 32
        phase = (np.arange(self._char_samples) + 0.5) * (2 * np.pi * periods / self._char_samples)
        return (0.3 * np.sin(phase)).astype(np.float32)
