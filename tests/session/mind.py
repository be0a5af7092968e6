"""Shorthand for what a scripted model says, turn by turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.think.doubles import Piece, ScriptedModel

from antiphon.core.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.core.flow import Message


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


def asked(model: ScriptedModel, call: str) -> list[tuple[Message, ...]]:
    """The messages that one kind of call was made with, in order."""
    return [messages for name, messages in model.calls if name == call]
