"""The contract of a voice: a chunk of reply text in, pieces of sound out, each knowing what it says when.

Edges are the engine's business: a piece begins with its first audible sample and ends with its last, both faded,
unless the chunk ends in a pause, which then belongs to the piece's end. Pieces of one reply lie end to end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from antiphon.core.flow import SpeechPiece, TextChunk


class Synthesizer(Protocol):
    """A loaded voice, shared by all conversations."""

    name: str
    rate_hz: int
    longest_slice_ns: int

    def speak(self, chunk: TextChunk) -> AsyncGenerator[SpeechPiece, None]:
        """The sound of `chunk`, in order. A chunk with nothing to say yields nothing.

        The same chunk sounds the same every time. Closing the generator stops the work at the next piece.

        Raises:
            EngineError: the voice failed on this chunk; others may succeed.
        """
        ...

    async def warm_up(self) -> None: ...

    def close(self) -> None: ...
