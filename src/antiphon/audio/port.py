"""The two contracts at the door: where sound comes from, and where it goes to.

    Source -> hear ... speak -> Sink

Units: frames as in core/flow. Threads: both live on the event loop; a device that blocks sits on a thread of its own
behind one of them. What they do not know: turns, speech, each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from antiphon.core.flow import AudioFrame


class Source(Protocol):
    """A microphone, a socket or a file that plays as if it were one."""

    @property
    def rate_hz(self) -> int:
        """The rate of every frame; it never changes while the source is open."""
        ...

    def __aiter__(self) -> AsyncIterator[AudioFrame]:
        """Give the frames in order, each once its last sample was captured; the end of the source ends the iteration.

        Frames lie end to end in `pos_samples`, except where sound was lost: there the position jumps forward by
        exactly what is missing, never backward. A frame holds at least one sample, and its pcm is valid until the
        next one is asked for.
        """
        ...


class Sink(Protocol):
    """A loudspeaker, a socket or a recording."""

    @property
    def rate_hz(self) -> int:
        """The rate that it takes."""
        ...

    def play(self, frame: AudioFrame) -> None:
        """Take the next sound of the reply and return at once.

        `frame.captured_ns` is the moment at which its first sample should be heard. A sink that is full drops the
        frame and counts it, because waiting here would delay the microphone's side as well. The pcm is copied or
        used up before the call returns.

        Raises:
            CallerError: the frame has another rate.
        """
        ...
