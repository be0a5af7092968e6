"""One caller's recognition, whose vocabulary may change between turns.

A recognizer takes a vocabulary when it is opened. So with another one it is opened anew when the next turn begins, and
hears again the last second, in which that turn may have begun. A turn that begins further back, inside the turn before,
stays with the old vocabulary, for only the old recognition has its sound.
Units: samples at HEARING_RATE_HZ. Threads: the event loop. Bounds: a second and a half of sound and one frame are kept.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

from antiphon.core.flow import HEARING_RATE_HZ
from antiphon.hear.recognizer import Foreseeing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from antiphon.core.flow import AudioFrame, Transcript
    from antiphon.hear.recognizer import Recognition, Recognizer

# A turn begins up to a second before the moment that it is noticed, and sound may come in frames of many milliseconds.
RUN_UP_SAMPLES = HEARING_RATE_HZ * 3 // 2


class HintedRecognition:
    """A `Recognition` like any other."""

    def __init__(self, recognizer: Recognizer, vocabulary: Sequence[str]) -> None:
        self._recognizer = recognizer
        self._present: Recognition = recognizer.open(vocabulary)
        self._vocabulary = self._expected = tuple(vocabulary)
        self._run_up: deque[AudioFrame] = deque()

    def expect(self, vocabulary: Sequence[str]) -> None:
        """Listen for these words and phrases from the next turn on."""
        self._expected = tuple(vocabulary)

    def feed(self, frame: AudioFrame) -> None:
        self._present.feed(frame)
        self._run_up.append(replace(frame, pcm=frame.pcm.copy()))
        while frame.end_samples - self._run_up[0].end_samples >= RUN_UP_SAMPLES:
            self._run_up.popleft()

    def begin(self, pos_samples: int) -> None:
        if self._expected != self._vocabulary and self._reaches(pos_samples):
            self._present.close()
            self._present = self._recognizer.open(self._expected)
            self._vocabulary = self._expected
            for frame in self._run_up:
                self._present.feed(frame)
        self._present.begin(pos_samples)

    async def transcribe(self, until_samples: int, *, final: bool) -> Transcript:
        return await self._present.transcribe(until_samples, final=final)

    @property
    def foresees(self) -> bool:
        """Whether `foresee` does anything."""
        return isinstance(self._present, Foreseeing)

    async def foresee(self, until_samples: int) -> str:
        """As `Foreseeing.foresee`, where the recognition can."""
        return await self._present.foresee(until_samples) if isinstance(self._present, Foreseeing) else ""

    def later(self, until_samples: int) -> Callable[[], Awaitable[Transcript]]:
        return self._present.later(until_samples)

    def end(self) -> None:
        self._present.end()

    def close(self) -> None:
        self._present.close()
        self._run_up.clear()

    def _reaches(self, pos_samples: int) -> bool:
        return not self._run_up or self._run_up[0].pos_samples <= pos_samples
