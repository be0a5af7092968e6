"""The words so far in; the first chunk of a reply to them out, voiced, while the caller still speaks.

A reply begins alike whether or not the last words are known. Once they are, the reply is written as ever; where the
model begins it like the opening, the opening's sound is there already, and what follows is written behind it. One that
was begun to the very words that the turn turns out to have is the reply's beginning as it stands.
Threads: the event loop.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, replace
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
    messages: Sequence[Message]  # that it was written to
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


class HeadStart:
    """What one draft has of openings, and takes from them once; each piece of text and of sound is asked for here."""

    def __init__(self) -> None:
        self._opening: Opening | None = None

    def take(self, opening: Opening, *, most_tokens: int) -> None:
        """Begin with it, where the reply turns out to begin alike; not with one that is longer than a reply may be."""
        if opening.tokens < most_tokens:
            self._opening = opening

    def at_once(self, messages: Sequence[Message]) -> Opening | None:
        """The opening, if it answers just these."""
        opening = self._opening
        return opening if opening is not None and tuple(opening.messages) == tuple(messages) else None

    def behind(self, raw: str) -> tuple[str, int]:
        """What follows `raw`, of which the model has written every token, and all the tokens of the opening."""
        rest = self._opening.behind(raw) if self._opening is not None else None
        return (rest, self._opening.tokens) if rest and self._opening is not None else ("", 0)

    def sound(self, chunk: TextChunk) -> AsyncGenerator[SpeechPiece, None] | None:
        """A chunk's sound, if it is there."""
        opening = self._opening
        return opening.played() if opening is not None and opening.chunk == chunk else None


async def write_opening(
    shop: Workshop, turn: int, messages: Sequence[Message], before: Opening | None = None
) -> Opening | None:
    """Write and voice it; None where the model says less than a chunk, or wants a tool.

    Where it begins like the one `before`, it is that one, with its sound.

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
            if before is not None and before.behind(raw) is not None:
                return replace(before, messages=messages)
            chunks = chunker.feed("".join(run.text for run in spoken.feed(reasoning.feed(piece))))
            if chunks:
                break
    if not chunks:
        return None
    async with aclosing(shop.engines.synthesizer.speak(chunks[0])) as sound:
        heard = tuple([piece async for piece in sound])
    if not heard:
        return None
    return Opening(turn=turn, messages=messages, raw=raw, tokens=tokens, chunk=chunks[0], sound=heard)
