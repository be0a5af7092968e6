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


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """Of one reply."""

    turn: int  # of the caller's, that it answers
    messages: Sequence[Message]  # that it was written to
    pieces: tuple[str, ...]  # as the model wrote it, as far as to the token that completed the chunk
    chunk: TextChunk
    sound: tuple[SpeechPiece, ...] = ()  # none: it is not voiced yet

    @property
    def raw(self) -> str:
        """The text of all its tokens."""
        return "".join(self.pieces)

    @property
    def tokens(self) -> int:
        """How many they are."""
        return len(self.pieces)

    def behind(self, raw: str) -> str | None:
        """What it says behind `raw`; None unless those are its first tokens, one or more.

        One is enough, for a second tells hardly more: of openings to orders whose last one to four words were withheld
        41 % of those that shared one token with the reply were its first chunk, and 42 % of those that shared two
        (results/opening_alike.json). What follows is written behind the opening either way.
        """
        length = 0
        for at, piece in enumerate(self.pieces, start=1):
            length += len(piece)
            if length >= len(raw):
                whole = "".join(self.pieces[:at])
                return "".join(self.pieces[at:]) if raw and whole == raw else None
        return None

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
        opening = self._opening
        rest = opening.behind(raw) if opening is not None else None
        return (rest, opening.tokens) if rest and opening is not None else ("", 0)

    def sound(self, chunk: TextChunk) -> AsyncGenerator[SpeechPiece, None] | None:
        """A chunk's sound, if it is there."""
        opening = self._opening
        return opening.played() if opening is not None and opening.sound and opening.chunk == chunk else None


async def write_opening(
    shop: Workshop, turn: int, messages: Sequence[Message], before: Opening | None = None
) -> Opening | None:
    """Write it, without a sound; None where the model says less than a chunk, or wants a tool.

    Where it begins like the one `before`, it is that one, with its sound.

    Raises:
        EngineError: an engine failed.
        CallerError: the messages do not fit the model.
    """
    settings = shop.settings
    reasoning = ReasoningFilter(starts_inside=settings.starts_thinking)
    spoken, chunker = SpokenForm(settings.spoken_form), Chunker(settings.chunker)
    written = list[str]()
    async with aclosing(shop.thinking.write(messages, max_tokens=MOST_TOKENS)) as pieces:
        async for piece in pieces:
            if isinstance(piece, ToolCall):
                return None
            written.append(piece)
            if before is not None and before.behind("".join(written)) is not None:
                return replace(before, messages=messages)
            chunks = chunker.feed("".join(run.text for run in spoken.feed(reasoning.feed(piece))))
            if chunks:
                return Opening(turn=turn, messages=messages, pieces=tuple(written), chunk=chunks[0])
    return None


async def voice_opening(shop: Workshop, opening: Opening) -> Opening | None:
    """The same with its sound; None if the voice has nothing to say.

    Raises:
        EngineError: the voice failed.
    """
    async with aclosing(shop.engines.synthesizer.speak(opening.chunk)) as sound:
        heard = tuple([piece async for piece in sound])
    return replace(opening, sound=heard) if heard else None
