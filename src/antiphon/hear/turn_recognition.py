"""One caller's frames in, growing transcripts of the turn out: what every engine's recognition has in common.

A turn is heard through a window that begins where settled text ends, so that a turn of any length costs what its last
seconds cost. How a window becomes text is the engine's.
Units: samples at HEARING_RATE_HZ since the stream opened; inside a window, samples since it began. Threads: the event
loop. Only one transcription of a caller is under way at a time.
What it does not know: models and tokens, whether a voice is there, and when a turn is over.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import numpy as np

from antiphon.core.flow import HEARING_RATE_HZ, Transcript
from antiphon.hear.agreement import Agreement
from antiphon.hear.intake import Intake
from antiphon.hear.words import joined

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from antiphon.core.flow import AudioFrame, Certainty, Pcm
    from antiphon.hear.intake import Run

RUN_UP_SAMPLES = HEARING_RATE_HZ  # how far back a turn may begin
LONGEST_GAP_SAMPLES = 30 * HEARING_RATE_HZ  # lost inside a turn, heard as silence; after more a window begins anew
LONGEST_UNHEARD_SAMPLES = (
    300 * HEARING_RATE_HZ
)  # of a turn that nobody transcribes; 29 MB with columns, then its beginning goes
QUIET_PEAK = 10 ** (-70 / 20)  # no microphone in use is as quiet as this: nothing to recognise


class Sound(Protocol):
    """What a window's sound is kept in, with whatever is computed of it as it comes."""

    def __len__(self) -> int:
        """How many samples there are."""
        ...

    @property
    def pcm(self) -> Pcm:
        """All sound there is; a view."""
        ...

    def feed(self, pcm: Pcm) -> None:
        """Append sound."""
        ...

    def drop(self, columns: int, /) -> None:
        """Forget the first `columns` columns, each of the recognition's `hop_samples`."""
        ...


SoundT = TypeVar("SoundT", bound=Sound)


class Turn(Generic[SoundT]):
    """What is known of the turn under way."""

    def __init__(self, start_samples: int, new_sound: Callable[[], SoundT], *, hop_samples: int) -> None:
        self.window_samples = start_samples  # where the window begins
        self._new_sound = new_sound
        self._hop_samples = hop_samples
        self.sound = new_sound()
        self.settled = ""
        self.agreement = Agreement()  # about the window's text
        self.heard_samples = start_samples
        self.end_probability: float | None = None
        self.certainty: Certainty | None = None
        self.guess: tuple[int, ...] = ()  # tokens of the window's last hypothesis, for engines that go on from it

    @property
    def end_samples(self) -> int:
        return self.window_samples + len(self.sound)

    def take(self, run: Run) -> None:
        """Take sound that follows, or what lies behind a gap too long to be filled."""
        if run.restarted:
            self.settled = joined(self.settled, self.agreement.previous)
            self.agreement = Agreement()
            self.guess = ()
            self.window_samples = max(self.window_samples, run.pos_samples)
            self.sound = self._new_sound()
        ahead = max(0, self.window_samples - run.pos_samples) if not len(self.sound) else 0  # before the turn begins
        self.sound.feed(run.pcm[ahead:])
        surplus = len(self.sound) - LONGEST_UNHEARD_SAMPLES
        if surplus > 0:
            self.shorten(surplus + HEARING_RATE_HZ)

    def shorten(self, samples: int) -> None:
        """Let the window begin at least `samples` later."""
        columns = -(-samples // self._hop_samples)
        self.sound.drop(columns)
        self.window_samples += columns * self._hop_samples

    def settle(self, chars: int, border_samples: int) -> None:
        """The window's text up to `chars` is settled, and its sound up to `border_samples` heard for good."""
        self.settled = joined(self.settled, self.agreement.previous[:chars])
        self.agreement = self.agreement.after(chars)
        self.shorten(border_samples)

    def is_quiet(self, samples: int) -> bool:
        """Whether the window's first `samples` are too quiet to hold anything."""
        return not np.any(np.abs(self.sound.pcm[:samples]) > QUIET_PEAK)

    def transcript(self, *, final: bool) -> Transcript:
        return Transcript(
            text=joined(self.settled, self.agreement.previous),
            heard_samples=self.heard_samples,
            stable_chars=len(joined(self.settled, self.agreement.stable)),
            is_final=final,
            end_probability=self.end_probability,
            certainty=self.certainty,
        )


class TurnRecognition(ABC, Generic[SoundT]):
    """One caller's sound and what was made of it. An engine's recognition says how a window is heard."""

    longest_window_samples: int  # heard at once
    hop_samples = 1  # a window begins at a multiple of it behind where it began before

    def __init__(self) -> None:
        self._intake = Intake(LONGEST_GAP_SAMPLES)
        self._run_up = np.zeros(0, np.float32)
        self._end_samples = 0
        self._turn: Turn[SoundT] | None = None
        self._ended: Turn[SoundT] | None = None  # the turn before, until more is fed: the next may begin in its sound
        self._busy = asyncio.Lock()

    @abstractmethod
    def _new_sound(self) -> SoundT:
        """Where a window's sound goes."""

    @abstractmethod
    async def _hear(self, turn: Turn[SoundT], samples: int, *, is_rest: bool, final: bool) -> None:
        """Offer the turn a hypothesis of the window's first `samples`, and shorten the window if it is long.

        Where they are not all that is to be heard (`is_rest`), the window must be shortened.
        """

    def feed(self, frame: AudioFrame) -> None:
        """Take the next sound of the stream; see the contract.

        Raises:
            CallerError: the frame has another rate, or more than one channel.
        """
        run = self._intake.take(frame)
        if run is None:
            return
        self._ended = None
        before = self._run_up[:0] if run.restarted else self._run_up
        self._run_up = np.concatenate((before, run.pcm))[-RUN_UP_SAMPLES:]
        self._end_samples = run.end_samples
        if self._turn is not None:
            self._turn.take(run)

    def begin(self, pos_samples: int) -> None:
        """A turn begins; what lies before the run-up and the turn before is not there any more."""
        kept, kept_from = self._run_up, self._end_samples - len(self._run_up)
        before = self._turn or self._ended
        if before is not None and before.end_samples == self._end_samples and before.window_samples < kept_from:
            kept, kept_from = before.sound.pcm, before.window_samples
        start = max(pos_samples, kept_from)
        run_up = kept[len(kept) - max(0, self._end_samples - start) :].copy()
        self._ended = None
        self._turn = Turn(start, self._new_sound, hop_samples=self.hop_samples)
        self._turn.sound.feed(run_up)

    def end(self) -> None:
        """The turn is over; a transcription under way still finishes."""
        self._ended, self._turn = self._turn or self._ended, None

    async def transcribe(self, until_samples: int, *, final: bool) -> Transcript:
        """What the turn says up to `until_samples`; see the contract.

        A final transcript may correct the stable text, for it has heard more.

        Raises:
            EngineError: the model failed; the turn is as it was, so that the next call may succeed.
        """
        return await self._transcribe(self._turn, until_samples, final=final)

    def later(self, until_samples: int) -> Callable[[], Awaitable[Transcript]]:
        """A final transcription of the turn under way, computed when it is asked for; see the contract."""
        until_samples = min(until_samples, self._end_samples)
        return partial(self._transcribe, self._turn, until_samples, final=True)

    async def _transcribe(self, turn: Turn[SoundT] | None, until_samples: int, *, final: bool) -> Transcript:
        """Of that turn, even if another one has begun: its result harms nobody."""
        if turn is None:
            return Transcript(text="", heard_samples=min(until_samples, self._end_samples), is_final=final)
        async with self._busy:
            while True:
                whole = min(until_samples, turn.end_samples) - turn.window_samples
                window = min(whole, self.longest_window_samples)
                is_rest = window == whole
                if window > 0:
                    await self._hear(turn, window, is_rest=is_rest, final=final and is_rest)
                if is_rest:
                    return turn.transcript(final=final)

    def close(self) -> None:
        """Forget everything."""
        self._turn = self._ended = None
        self._run_up = np.zeros(0, np.float32)
