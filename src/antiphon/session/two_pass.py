"""One caller's sound in, words out, by one recognizer or by two: a quick one now, a careful one afterwards.

With two of them the quick one says what the caller has said so far, and what a pause ends; the careful one hears the
whole turn once more when there is time. With one, that one does both.
Units: samples at HEARING_RATE_HZ. Threads: the event loop; what computes is awaited.
What it does not know: when a turn begins or ends, and who waits for the words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.session.hinted import HintedRecognition

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from antiphon.core.flow import AudioFrame, Transcript
    from antiphon.session.engines import Engines


class TwoPassRecognition:
    """Of one conversation; with one recognizer there is one pass."""

    def __init__(self, engines: Engines, vocabulary: Sequence[str]) -> None:
        self._careful = HintedRecognition(engines.recognizer, vocabulary)
        quick = engines.quick_recognizer
        self._quick = HintedRecognition(quick, vocabulary) if quick is not None else None
        self.name = (quick or engines.recognizer).name  # of what answers `look` and `hear`
        self.second_name = engines.recognizer.name

    @property
    def has_second_pass(self) -> bool:
        """Whether what `hear` says is heard again by a better one."""
        return self._quick is not None

    def expect(self, vocabulary: Sequence[str]) -> None:
        """Listen for these words and phrases from the next turn on."""
        for one in self._all:
            one.expect(vocabulary)

    def feed(self, frame: AudioFrame) -> None:
        """The next sound of the stream, speech or not."""
        for one in self._all:
            one.feed(frame)

    def begin(self, pos_samples: int) -> None:
        """A turn begins there."""
        for one in self._all:
            one.begin(pos_samples)

    def end(self) -> None:
        """The turn is over."""
        for one in self._all:
            one.end()

    def close(self) -> None:
        """Forget everything."""
        for one in self._all:
            one.close()

    @property
    def foresees(self) -> bool:
        """Whether hearing the words at every moment in which the turn may end costs little enough."""
        return (self._quick or self._careful).foresees

    async def foresee(self, until_samples: int) -> str:
        """Make `hear` with the same position quick; nothing else changes. The words that it is likely to have.

        Raises:
            EngineError: the model failed.
        """
        return await (self._quick or self._careful).foresee(until_samples)

    async def look(self, until_samples: int) -> Transcript:
        """What the turn says so far; more may follow.

        Raises:
            EngineError: the model failed.
        """
        return await (self._quick or self._careful).transcribe(until_samples, final=False)

    async def hear(self, until_samples: int) -> Transcript:
        """What the turn says, if the pause lasts.

        Raises:
            EngineError: the model failed.
        """
        return await (self._quick or self._careful).transcribe(until_samples, final=True)

    def second_pass(self, until_samples: int) -> Callable[[], Awaitable[Transcript]]:
        """What the careful one makes of the turn as it is now, for later: whatever turn begins meanwhile."""
        return self._careful.later(until_samples)

    @property
    def _all(self) -> tuple[HintedRecognition, ...]:
        return (self._careful,) if self._quick is None else (self._careful, self._quick)
