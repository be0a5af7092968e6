"""The contract of voice detection: fixed frames of sound in, a probability of speech for each out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from antiphon.core.flow import Pcm


class VoiceStream(Protocol):
    """One caller's detector; its state is its own."""

    def probability(self, pcm: Pcm) -> float:
        """The probability that this frame of `frame_samples` holds speech, given the frames before it."""
        ...

    def reset(self) -> None:
        """Forget the frames before."""
        ...


class VoiceDetector(Protocol):
    """A loaded model, shared by all callers."""

    name: str
    frame_samples: int  # at HEARING_RATE_HZ

    def open(self) -> VoiceStream: ...

    def close(self) -> None: ...
