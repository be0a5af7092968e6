"""The contract of a speech recognizer: frames in, transcripts of the turn so far out.

A `Recognizer` is loaded once and shared; a `Recognition` is one caller's view of it and holds that caller's sound.
Units: positions in samples at HEARING_RATE_HZ. Threads: everything is called on the event loop; `feed` and
`begin` are cheap, `transcribe` computes on the engine's lane.
What it does not know: when a turn begins or ends. It is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from antiphon.core.flow import AudioFrame, Transcript


class Recognition(Protocol):
    """One caller's sound and what was made of it."""

    def feed(self, frame: AudioFrame) -> None:
        """Take the next sound of the stream, at HEARING_RATE_HZ; call for all of it, speech or not.

        Outside a turn only the last second is kept, as a run-up for `begin`.

        Raises:
            CallerError: the frame has another rate.
        """
        ...

    def begin(self, pos_samples: int) -> None:
        """A turn begins at `pos_samples`; forget the turn before.

        That may lie up to a second in the past, or anywhere in the turn before if nothing was fed since that ended.
        """
        ...

    async def transcribe(self, until_samples: int, *, final: bool) -> Transcript:
        """What the turn says up to `until_samples`, of which what was fed so far is used.

        With `final`, the caller has paused there: the result may be answered, and may correct what was stable.
        Without, the text past `stable_chars` may still change. Silence and noise give an empty text.

        Raises:
            EngineError: the model failed; the next call may succeed.
        """
        ...

    def later(self, until_samples: int) -> Callable[[], Awaitable[Transcript]]:
        """A final transcription of the turn under way that is computed when it is asked for, if ever.

        Whatever ends or begins meanwhile, it is of the turn that is under way now.
        """
        ...

    def end(self) -> None:
        """The turn is over: keep no more of its sound than a run-up for the next."""
        ...

    def close(self) -> None:
        """Forget everything."""
        ...


@runtime_checkable
class Foreseeing(Protocol):
    """A recognition that hears a turn so quickly that it may do so at every moment in which the turn could end."""

    async def foresee(self, until_samples: int) -> str:
        """Hear the turn as far as there, so that `transcribe` to the same place has the words at once.

        What comes back are most likely the words that it will have; "" if they are not known. What the turn says so
        far does not change by it.

        Raises:
            EngineError: the model failed; the next call may succeed.
        """
        ...


class Recognizer(Protocol):
    """A loaded model."""

    name: str  # of the model, as it stands in spans
    longest_slice_ns: int  # the longest indivisible call, as measured on the reference machine

    def open(self, vocabulary: Sequence[str] = ()) -> Recognition:
        """Begin to listen to one caller, who is likely to use the words and phrases of `vocabulary`."""
        ...

    async def warm_up(self) -> None:
        """Do once whatever only the first call pays for."""
        ...

    def close(self) -> None:
        """Free the model; open recognitions are useless from here on."""
        ...
