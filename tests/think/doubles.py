"""A language model that says what a test tells it to, at the moments that the test chooses."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from antiphon.core.errors import CallerError, EngineError
from antiphon.core.flow import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from antiphon.core.flow import Message, ToolCall, ToolSpec
    from antiphon.think.language_model import Written


@dataclass(frozen=True, slots=True)
class Piece:
    """A token of a scripted reply, or a call that is made in it."""

    text: str | ToolCall
    delay_s: float = 0.0  # before it, on the loop's clock


def pieces(text: str, *, delay_s: float = 0.0) -> tuple[Piece, ...]:
    """`text` as a model would stream it: word by word, the space before the word."""
    cut = [index for index, char in enumerate(text) if char == " " and index] + [len(text)]
    return tuple(Piece(text[start:end], delay_s) for start, end in zip([0, *cut], cut, strict=False) if start < end)


def behind(begun: str, reply: Sequence[Piece | EngineError]) -> Sequence[Piece | EngineError]:
    """What comes of a scripted reply behind `begun`, which was written before.

    A reply that begins so is gone on with, in the middle of a piece as well; any other is the rest as it stands.
    Behind a beginning no tool is called.
    """
    if not begun:
        return reply
    rest = [piece for piece in reply if isinstance(piece, EngineError) or isinstance(piece.text, str)]
    if not "".join(piece.text for piece in rest if isinstance(piece, Piece)).startswith(begun):
        return rest
    left = len(begun)
    while left and rest:
        first = rest.pop(0)
        if isinstance(first, EngineError):  # it was raised when `begun` was written
            continue
        if len(first.text) > left:
            rest.insert(0, Piece(first.text[left:], first.delay_s))
        left = max(0, left - len(first.text))
    return rest


@dataclass(slots=True)
class ScriptedModel:
    """Answers with `reply(messages)`; `calls` records what was asked of it, in order.

    `mass` gives the probability of a sentence end for the open text. A reply that holds an exception raises it. What
    comes behind a beginning that was written before is told by `behind`; one that cannot go on refuses it.
    """

    reply: Callable[[Sequence[Message]], Sequence[Piece | EngineError]]
    mass: Callable[[str], float | None] = lambda text: 0.0 if text.endswith("with") else 0.9
    prefill_s: float = 0.0
    name: str = "scripted"
    longest_slice_ns: int = 0
    can_go_on: bool = True
    calls: list[tuple[str, tuple[Message, ...]]] = field(default_factory=list)
    offered: list[tuple[tuple[ToolSpec, ...], str]] = field(default_factory=list)  # with each `write`: tools and choice
    begun: list[str] = field(default_factory=list)  # with each `write`: what the reply began with
    writes_ended: int = 0  # by their end, by closing or by an error
    is_closed: bool = False

    def open(self) -> ScriptedThinking:
        return ScriptedThinking(self)

    async def warm_up(self) -> None:
        self.calls.append(("warm_up", ()))

    def close(self) -> None:
        self.is_closed = True


class ScriptedThinking:
    def __init__(self, model: ScriptedModel) -> None:
        self._model = model
        self.usage = Usage()

    async def prefill(self, messages: Sequence[Message], *, tools: Sequence[ToolSpec] = ()) -> None:
        self._note("prefill", messages)
        await asyncio.sleep(self._model.prefill_s)

    async def sentence_end_mass(self, messages: Sequence[Message], *, tools: Sequence[ToolSpec] = ()) -> float | None:
        self._note("sentence_end_mass", messages)
        return self._model.mass(messages[-1].text)

    async def write(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        tools: Sequence[ToolSpec] = (),
        tool_choice: str = "auto",
        begins_with: str = "",
    ) -> AsyncGenerator[Written, None]:
        if begins_with and not self._model.can_go_on:
            raise CallerError("the model cannot go on", hint="leave begins_with out")
        self._note("write", messages)
        self.usage = Usage(input_tokens=sum(len(message.text.split()) for message in messages))
        self._model.offered.append((tuple(tools), tool_choice))
        self._model.begun.append(begins_with)
        try:
            for piece in behind(begins_with, self._model.reply(messages))[:max_tokens]:
                if isinstance(piece, EngineError):
                    raise piece
                await asyncio.sleep(piece.delay_s)
                self._refuse_if_closed()
                self.usage += Usage(output_tokens=1)
                yield piece.text
        finally:
            self._model.writes_ended += 1

    def close(self) -> None:
        self._model.calls.append(("close", ()))

    def _note(self, call: str, messages: Sequence[Message]) -> None:
        self._refuse_if_closed()
        self._model.calls.append((call, tuple(messages)))

    def _refuse_if_closed(self) -> None:
        if self._model.is_closed:
            raise EngineError("the language model is closed")
