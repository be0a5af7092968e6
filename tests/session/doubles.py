"""Ears without models: the level is the voice, and what is said stands in a script."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from antiphon.core.clock import samples_to_ns
from antiphon.core.errors import EngineError
from antiphon.core.flow import HEARING_RATE_HZ, AudioFrame, Transcript

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from antiphon.core.flow import Pcm


class LevelDetector:
    """Speech is whatever is louder than a whisper."""

    name = "level"
    frame_samples = 512

    def open(self) -> LevelStream:
        return LevelStream()

    def close(self) -> None:
        pass


class LevelStream:
    def probability(self, pcm: Pcm) -> float:
        return 1.0 if float(np.abs(pcm).mean()) > 0.01 else 0.0

    def reset(self) -> None:
        pass


@dataclass(slots=True)
class ScriptedRecognizer:
    """Knows what is said by when: (ms at which a word has been said, word)."""

    script: Sequence[tuple[int, str]]
    delay_ms: float = 200.0
    fails_times: int = 0  # the first transcriptions fail
    name: str = "scripted-ears"
    longest_slice_ns: int = 0
    foresees: bool = False
    opened: list[ScriptedRecognition] = field(default_factory=list)

    def open(self, vocabulary: Sequence[str] = ()) -> ScriptedRecognition:
        kind = ForeseeingRecognition if self.foresees else ScriptedRecognition
        self.opened.append(kind(self, tuple(vocabulary)))
        return self.opened[-1]

    async def warm_up(self) -> None:
        pass

    def close(self) -> None:
        pass


class ScriptedRecognition:
    def __init__(self, ears: ScriptedRecognizer, vocabulary: tuple[str, ...] = ()) -> None:
        self._ears = ears
        self.vocabulary = vocabulary
        self.heard_from: int | None = None  # the first sample that was fed
        self._begin = 0
        self._fed = 0
        self._before = ""
        self.closed = False

    def feed(self, frame: AudioFrame) -> None:
        assert frame.rate_hz == HEARING_RATE_HZ
        if self.heard_from is None:
            self.heard_from = frame.pos_samples
        self._fed = frame.end_samples

    def begin(self, pos_samples: int) -> None:
        self._begin, self._before = pos_samples, ""

    async def transcribe(self, until_samples: int, *, final: bool) -> Transcript:
        return await self._transcribe(min(until_samples, self._fed), self._begin, final=final)

    def later(self, until_samples: int) -> Callable[[], Awaitable[Transcript]]:
        return partial(self._transcribe, min(until_samples, self._fed), self._begin, final=True)

    async def _transcribe(self, until: int, begin: int, *, final: bool) -> Transcript:
        await asyncio.sleep(self._ears.delay_ms / 1000)
        if self._ears.fails_times:
            self._ears.fails_times -= 1
            raise EngineError("the ears broke", hint="they do so when a test wants it")
        words = [word for ms, word in self._ears.script if begin < ms * 16 <= until + 512]
        text = " ".join(words)
        stable = len(self._before) if text.startswith(self._before) else 0
        self._before = text
        return Transcript(text=text, heard_samples=until, stable_chars=len(text) if final else stable, is_final=final)

    def end(self) -> None:
        self._before = ""

    def close(self) -> None:
        self.closed = True


class ForeseeingRecognition(ScriptedRecognition):
    """Says at once what it has heard before."""

    def __init__(self, ears: ScriptedRecognizer, vocabulary: tuple[str, ...] = ()) -> None:
        super().__init__(ears, vocabulary)
        self.foreseen: dict[int, Transcript] = {}  # by where the sound ended

    async def foresee(self, until_samples: int) -> str:
        before = self._before
        transcript = await self._transcribe(min(until_samples, self._fed), self._begin, final=True)
        self._before = before
        self.foreseen[until_samples] = transcript
        return transcript.text

    async def transcribe(self, until_samples: int, *, final: bool) -> Transcript:
        known = self.foreseen.get(until_samples)
        if known is None:
            return await super().transcribe(until_samples, final=final)
        return known if final else replace(known, is_final=False)


@dataclass(slots=True)
class ScriptedJudge:
    """Always of the same opinion."""

    opinion: float = 0.9
    delay_ms: float = 80.0
    name: str = "scripted-judge"
    longest_slice_ns: int = 0
    window_samples: int = 8 * HEARING_RATE_HZ

    async def probability(self, pcm: Pcm) -> float:
        await asyncio.sleep(self.delay_ms / 1000)
        return self.opinion

    async def warm_up(self) -> None:
        pass

    def close(self) -> None:
        pass


def caller(*spoken: tuple[int, int], until_ms: int, rate_hz: int = HEARING_RATE_HZ) -> list[AudioFrame]:
    """A caller's microphone: a tone from each start to each end in ms, silence around, 20 ms a frame."""
    time_ms = np.arange(until_ms * rate_hz // 1000) * 1000 / rate_hz
    voiced = np.zeros(len(time_ms), bool)
    for start_ms, end_ms in spoken:
        voiced |= (time_ms >= start_ms) & (time_ms < end_ms)
    pcm = np.where(voiced, 0.3 * np.sin(2 * np.pi * 0.2 * time_ms), 0.0).astype(np.float32)
    step = rate_hz // 50
    return [
        AudioFrame(pcm[pos : pos + step], rate_hz, pos, samples_to_ns(pos, rate_hz)) for pos in range(0, len(pcm), step)
    ]
