"""A recognizer without a model: each second of the sound says a word by its pitch. Every call is recorded.

And models for the real recognizer: one that echoes, and one that counts the calls of another.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import ctranslate2
import numpy as np

from antiphon.hear.mel import log_mel
from antiphon.hear.moonshine import Hypothesis as MoonshineHypothesis
from antiphon.hear.whisper import Hypothesis

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.core.flow import Pcm
    from antiphon.hear.mel import Mel
    from antiphon.hear.whisper_tokens import WhisperTokens

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
    column_step = 2

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


class PitchMoonshine:
    """The same in the form of Moonshine, which makes one call for a window and is given a guess."""

    def __init__(self) -> None:
        self.tokens = WordTokens()
        self.calls: list[Call] = []
        self.encoded = 0
        self.encoding = asyncio.Event()
        self.hold: asyncio.Event | None = None

    async def hear(self, pcm: Pcm, *, bias: object, guess: Sequence[int] = ()) -> MoonshineHypothesis:
        self.encoded += 1
        self.encoding.set()
        await asyncio.sleep(0)
        if self.hold is not None:
            await self.hold.wait()
        sound_s = len(pcm) / SECOND
        self.calls.append(Call((), tuple(guess), sound_s, 0))
        heard = _heard(log_mel(pcm, round(sound_s * 100)), sound_s)
        return MoonshineHypothesis(tokens=tuple(word for word, _ in heard), end_probability=0.5)


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


class CountedModel:
    """A model of CTranslate2's make that notes how many callers each call was for."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.compute_type, self.device = model.compute_type, model.device
        self.is_multilingual, self.n_mels = model.is_multilingual, model.n_mels
        self.encoded: list[int] = []
        self.decoded: list[int] = []

    def encode(self, features: Any, *, to_cpu: bool) -> Any:
        self.encoded.append(features.shape[0])
        return self._model.encode(features, to_cpu=to_cpu)

    def generate(self, encoded: Any, prompts: list[list[int]], **asked: Any) -> Any:
        self.decoded.append(len(prompts))
        return self._model.generate(encoded, prompts, **asked)

    def align(self, encoded: Any, opening: Any, tokens: Any, columns: int) -> Any:
        return self._model.align(encoded, opening, tokens, columns)


class EchoModel:
    """Encodes sound into the number of its loudest bin and says that number, with what the test has for it.

    As CTranslate2, it takes only prompts together that begin their task at the same place, and stops at half of
    `max_length`, or where prompt and text fill it.
    """

    compute_type = "int8"
    n_mels = 80

    def __init__(self, tokens: WhisperTokens, *, device: str = "cpu", is_multilingual: bool = False) -> None:
        self.tokens = tokens
        self.device = device
        self.is_multilingual = is_multilingual
        self.no_speech: dict[int, float] = {}  # by number; else 0.01
        self.endless: set[int] = set()  # numbers that are said until the decoder is stopped
        self.fails = False

    def encode(self, features: Any, *, to_cpu: bool) -> Any:
        loudest = np.asarray(features).max(axis=2).argmax(axis=1)  # (callers,)
        frames = np.zeros((len(loudest), features.shape[2] // 2, 4), np.float32)
        frames[:, :, 0] = loudest[:, None]
        return ctranslate2.StorageView.from_array(frames)

    def generate(self, encoded: Any, prompts: list[list[int]], *, max_length: int, **asked: Any) -> list[Any]:
        if self.fails:
            raise RuntimeError("out of memory")
        assert len({prompt.index(self.tokens.start) for prompt in prompts}) == 1
        numbers = np.asarray(encoded)[:, 0, 0].astype(int)
        opening = len(prompts[0]) - 1
        return [self._said(number, min(max_length // 2, max_length - opening)) for number in numbers.tolist()]

    def _said(self, number: int, limit: int) -> Any:
        ids = self.tokens.encode(f"w{number}")
        if number in self.endless:  # other words each time, which are no loop
            ids = self.tokens.encode("".join(f" w{number + place}" for place in range(limit)))
        ids = ids[:limit]
        score = -0.1 - len(ids) / 1000
        no_speech = self.no_speech.get(number, 0.01)
        logits = [np.zeros(300, np.float32)] * (len(ids) + 1)
        return SimpleNamespace(sequences_ids=[ids], scores=[score], no_speech_prob=no_speech, logits=[logits])
