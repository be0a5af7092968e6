"""A recognizer without a model: each second of the sound says a word by its pitch. Every call is recorded."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from antiphon.hear.whisper import Hypothesis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.core.flow import Pcm
    from antiphon.hear.mel import Mel

SECOND = 16_000


def spoken(*words: int, pause_s: float = 0.4) -> Pcm:
    """A second per word, which is the mel bin that its pitch lies in; the last `pause_s` of it is silent."""
    time_s = np.arange(SECOND) / SECOND
    top = 15.0 + 27.0 * np.log(8.0) / np.log(6.4)
    mels = [top * (word + 1) / 81 for word in words]
    pitches_hz = [1000 * 6.4 ** ((mel - 15.0) / 27.0) for mel in mels]
    said = [np.sin(2 * np.pi * hz * time_s) * (time_s < 1 - pause_s) * 0.1 for hz in pitches_hz]
    return np.concatenate(said).astype(np.float32)


def text_of(*words: int) -> str:
    """What a transcript of them says."""
    return " ".join(f"w{word}" for word in words)


class WordTokens:
    """Token n is the word "wn"."""

    def encode(self, text: str) -> list[int]:
        return [int(word[1:]) for word in text.split()]

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(f" w{token}" for token in tokens)

    def word_starts(self, tokens: Sequence[int]) -> list[bool]:
        return [True] * len(tokens)


class CharacterTokens:
    """Token n is a Chinese character, which no space parts from the next."""

    def encode(self, text: str) -> list[int]:
        return [ord(character) - 0x4E00 for character in text]

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(chr(0x4E00 + token) for token in tokens)

    def word_starts(self, tokens: Sequence[int]) -> list[bool]:
        return [True] * len(tokens)


@dataclass(frozen=True)
class Call:
    """What one decoding was asked."""

    before: tuple[int, ...]
    prefix: tuple[int, ...]
    sound_s: float
    columns: int


class PitchRecognizer:
    """Hears a word in each second that holds a pitch.

    A test that sets `hold` waits for `encoding` and so stands between encoding and decoding.
    """

    bins = 80

    def __init__(self, tokens: WordTokens | CharacterTokens | None = None) -> None:
        self.tokens = tokens or WordTokens()
        self.calls: list[Call] = []
        self.encoded = 0
        self.encoding = asyncio.Event()
        self.hold: asyncio.Event | None = None

    async def encode(self, logs: Mel) -> Mel:
        self.encoded += 1
        self.encoding.set()
        await asyncio.sleep(0)
        if self.hold is not None:
            await self.hold.wait()
        return logs

    async def decode(self, encoded: Mel, *, before: Sequence[int], prefix: Sequence[int], sound_s: float) -> Hypothesis:
        await asyncio.sleep(0)
        self.calls.append(Call(tuple(before), tuple(prefix), sound_s, len(encoded)))
        return Hypothesis(tokens=tuple(word for word, _ in _heard(encoded, sound_s)), end_probability=0.5)

    async def token_starts_s(self, encoded: Mel, tokens: Sequence[int], *, columns: int) -> list[float]:
        await asyncio.sleep(0)
        return [start for _, start in _heard(encoded, columns / 100)][: len(tokens)]


def _heard(logs: Mel, sound_s: float) -> list[tuple[int, float]]:
    """Runs of at least 0.2 s of one loudest bin: the word that the bin stands for, and when the run begins."""
    bins = np.where(logs.max(axis=1) > -1.5, logs.argmax(axis=1), -1)[: round(sound_s * 100)]
    found: list[tuple[int, float]] = []
    start = 0
    for column in range(1, len(bins) + 1):
        if column == len(bins) or bins[column] != bins[start]:
            if column - start >= 20 and bins[start] >= 0:
                found.append((int(bins[start]), start / 100))
            start = column
    return found
