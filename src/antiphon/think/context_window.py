"""A conversation that outgrew the model's context in, the part of it that still fits out.

The system message always stays; the oldest exchanges go first, a user's message together with its answer. When
something must go, a quarter of the room is made free at once: every drop changes the prompt's beginning and so
costs a fresh reading of all of it. Units: tokens, or any upper bound of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.core.flow import Message

KEPT_SHARE = 0.75


@dataclass(frozen=True, slots=True)
class Window:
    """What of a conversation is read."""

    dropped: int  # messages left out after the system message
    fits: bool  # False: even the last message alone is too much


def choose_window(messages: Sequence[Message], sizes: Sequence[int], *, room: int, dropped: int) -> Window:
    """Leave out as little as needed of `messages`, beginning with the `dropped` that were left out before.

    `messages` alternate as `join_messages` leaves them; `sizes` are theirs, in order.
    """
    head = head_length(messages)
    if dropped > len(messages) - head - 1:
        dropped = 0  # another conversation than before
    if sum(sizes[:head]) + sum(sizes[head + dropped :]) <= room:
        return Window(dropped, fits=True)
    goal = int(room * KEPT_SHARE)
    for start in range(head + dropped + 1, len(messages)):
        if messages[start].role == "user" and sum(sizes[:head]) + sum(sizes[start:]) <= goal:
            return Window(start - head, fits=True)
    last = max(0, len(messages) - head - 1)
    return Window(last, fits=sum(sizes[:head]) + sum(sizes[head + last :]) <= room)


def head_length(messages: Sequence[Message]) -> int:
    """How many messages are the system's, at the beginning."""
    return 1 if messages and messages[0].role == "system" else 0


def last_words(text: str, *, share: float) -> str:
    """The end of `text`, whole words, at most `share` of its characters."""
    kept = text[len(text) - int(len(text) * share) :]
    _, blank, words = kept.partition(" ")
    return words if blank and words else kept
