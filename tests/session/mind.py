"""Shorthand for what a scripted model says, turn by turn."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

from tests.think.doubles import Piece, ScriptedModel, ScriptedThinking, behind

from antiphon.core.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from antiphon.core.flow import Message, ToolSpec, Usage
    from antiphon.think.language_model import Written


def mind(
    *replies: Sequence[str] | EngineError, masses: Sequence[float] = (0.99,), first_s: float = 0.03
) -> ScriptedModel:
    """A model that gives each reply once, in pieces of 10 ms after `first_s`; the last one for ever.

    `masses` are the probabilities of a sentence end that it measures, in order, the last one for ever.
    """
    replies_left, masses_left = list(replies), list(masses)

    def reply(_: Sequence[Message]) -> list[Piece | EngineError]:
        said = replies_left.pop(0) if len(replies_left) > 1 else replies_left[0]
        if isinstance(said, EngineError):
            return [said]
        return [Piece(text, 0.01 if place else first_s) for place, text in enumerate(said)]

    def mass(_: str) -> float:
        return masses_left.pop(0) if len(masses_left) > 1 else masses_left[0]

    return ScriptedModel(reply=reply, mass=mass)


class TellingModel(ScriptedModel):
    """One that also tells whether a reply ended at its limit."""

    def open(self) -> TellingThinking:
        return TellingThinking(self)


class TellingThinking(ScriptedThinking):
    reached_limit = False

    async def write(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        tools: Sequence[ToolSpec] = (),
        tool_choice: str = "auto",
        begins_with: str = "",
    ) -> AsyncGenerator[Written, None]:
        self.reached_limit = False
        offered = {"tools": tools, "tool_choice": tool_choice}
        async with aclosing(super().write(messages, max_tokens=max_tokens, **offered, begins_with=begins_with)) as all_:
            async for piece in all_:
                yield piece
        self.reached_limit = self.usage.output_tokens >= max_tokens


class LateModel(ScriptedModel):
    """One that counts as a server does: behind the last word, or not at all."""

    counted: Usage | None = None

    def open(self) -> LateThinking:
        return LateThinking(self)


class LateThinking(ScriptedThinking):
    _told: Usage | None = None

    @property
    def usage(self) -> Usage | None:
        return self._told

    @usage.setter
    def usage(self, own: Usage) -> None:
        """What the model counts by itself is not told."""

    async def write(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        tools: Sequence[ToolSpec] = (),
        tool_choice: str = "auto",
        begins_with: str = "",
    ) -> AsyncGenerator[Written, None]:
        self._told = None
        self._note("write", messages)
        for piece in behind(begins_with, self._model.reply(messages))[:max_tokens]:
            await asyncio.sleep(piece.delay_s)
            yield piece.text
        assert isinstance(self._model, LateModel)
        self._told = self._model.counted


def counting_late(model: ScriptedModel, counted: Usage | None) -> LateModel:
    """The same model with this count."""
    late = LateModel(reply=model.reply, mass=model.mass)
    late.counted = counted
    return late


def telling(model: ScriptedModel) -> TellingModel:
    """The same model, which tells."""
    return TellingModel(reply=model.reply, mass=model.mass)


def asked(model: ScriptedModel, call: str) -> list[tuple[Message, ...]]:
    """The messages that one kind of call was made with, in order."""
    return [messages for name, messages in model.calls if name == call]
