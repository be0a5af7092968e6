"""The contract of a prosody judge: the last seconds of a turn's sound in, the probability that it is over out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from antiphon.core.flow import Pcm


class ProsodyJudge(Protocol):
    """A loaded model without memory: every call stands for itself."""

    name: str
    longest_slice_ns: int
    window_samples: int  # how much sound it looks at, at HEARING_RATE_HZ

    async def probability(self, pcm: Pcm) -> float:
        """How likely the turn is over, given up to `window_samples` of sound that end in the pause.

        Raises:
            EngineError: the model failed.
        """
        ...

    async def warm_up(self) -> None: ...

    def close(self) -> None: ...
