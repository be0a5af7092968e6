"""The words so far in; the first chunk of a reply to them out, voiced, while the caller still speaks.

A reply begins alike whether or not the last words are known. Once they are, the reply is written as ever; where the
model begins it like the opening, the opening's sound is there already, and what follows is written behind it.
Threads: the event loop.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.core.flow import TextChunk, ToolCall
from antiphon.think.chunker import Chunker
from antiphon.think.reasoning import ReasoningFilter
from antiphon.think.spoken_form import SpokenForm

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from antiphon.core.flow import Message, SpeechPiece
    from antiphon.session.workshop import Workshop

MOST_TOKENS = 24  # of a first chunk, which has six words at most; a model that has none by then is left alone
ALIKE_WORDS = 2  # that model and opening must have begun alike: what follows is then mostly the same for a few more


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """Of one reply."""

    turn: int  # of the caller's, that it answers
    raw: str  # as the model wrote it, as far as to the token that completed the chunk
    tokens: int
    chunk: TextChunk
    sound: tuple[SpeechPiece, ...]

    def behind(self, raw: str) -> str | None:
        """What it says behind `raw`; None if the reply has not begun like it, or has not shown that yet."""
        if not self.raw.startswith(raw) or len(raw.split()) < ALIKE_WORDS:
            return None
        return self.raw[len(raw) :]

    async def played(self) -> AsyncGenerator[SpeechPiece, None]:
        """Its sound, as the voice would give it."""
        for piece in self.sound:
            yield piece


async def write_opening(shop: Workshop, turn: int, messages: Sequence[Message]) -> Opening | None:
    """Write and voice it; None where the model says less than a chunk, or wants a tool.

    Raises:
        EngineError: an engine failed.
        CallerError: the messages do not fit the model.
    """
    settings = shop.settings
    reasoning = ReasoningFilter(starts_inside=settings.starts_thinking)
    spoken, chunker = SpokenForm(settings.spoken_form), Chunker(settings.chunker)
    raw, tokens, chunks = "", 0, list[TextChunk]()
    async with aclosing(shop.thinking.write(messages, max_tokens=MOST_TOKENS)) as pieces:
        async for piece in pieces:
            if isinstance(piece, ToolCall):
                return None
            raw, tokens = raw + piece, tokens + 1
            chunks = chunker.feed("".join(run.text for run in spoken.feed(reasoning.feed(piece))))
            if chunks:
                break
    if not chunks:
        return None
    async with aclosing(shop.engines.synthesizer.speak(chunks[0])) as sound:
        heard = tuple([piece async for piece in sound])
    return Opening(turn=turn, raw=raw, tokens=tokens, chunk=chunks[0], sound=heard) if heard else None
