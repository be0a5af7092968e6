"""The contract of a language model: messages in, reply text out, piece by piece.

A `LanguageModel` is loaded once and shared; a `Thinking` is one conversation's view of it with its own prompt
cache. Threads: everything is called on the event loop; what computes is awaited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from antiphon.core.flow import Message


class Thinking(Protocol):
    """One conversation with the model."""

    async def prefill(self, messages: Sequence[Message]) -> None:
        """Read `messages` ahead; the last is the user's and still open, more words may follow.

        Makes later calls that begin with the same messages cheaper, and has no other effect.
        """
        ...

    async def sentence_end_mass(self, messages: Sequence[Message]) -> float | None:
        """The probability that the open last message ends its sentence here; None if the model cannot tell.

        Raises:
            EngineError: the model failed.
            PeerError: its server failed.
        """
        ...

    def write(self, messages: Sequence[Message], *, max_tokens: int) -> AsyncGenerator[str, None]:
        """The reply to `messages`, in pieces as they come; whole characters only, none of them empty.

        Closing the generator stops the model at its next token. At most one `write` runs at a time.

        Raises:
            EngineError: the model failed.
            PeerError: its server failed.
        """
        ...

    def close(self) -> None:
        """Give the prompt cache back."""
        ...


class LanguageModel(Protocol):
    """A loaded model, or the server that runs it."""

    name: str
    longest_slice_ns: int

    def open(self) -> Thinking: ...

    async def warm_up(self) -> None: ...

    def close(self) -> None: ...
