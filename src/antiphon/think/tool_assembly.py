"""A reply's pieces of tool calls in, as they are streamed -> whole calls out.

Servers differ: a call comes in many pieces or at once; its name whole, in parts, or again with every piece; its id
once, always or never; its number in every piece or in none. A call is whole when another begins or the reply ends.
Threads: pure; one reply has one assembly. What it does not know: which tools there are.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.core.errors import PeerError
from antiphon.core.flow import ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MOST_CALLS = 32  # in one reply
MOST_CHARS = 1 << 16  # of one call's arguments
_ID_CHARS = 9  # letters and digits; some models' templates take ids of this length alone
_LONGEST_ID = 256


@dataclass(slots=True)
class _Growing:
    """A call that is not whole yet."""

    index: int | None  # as the server numbers it; None if it does not
    id: str = ""
    name: str = ""
    arguments: str = ""


class ToolAssembly:
    """The calls of one reply."""

    def __init__(self, used_ids: Iterable[str] = ()) -> None:
        """`used_ids` are those of the conversation so far, which no new call may have."""
        self._used = set(used_ids)
        self._growing: _Growing | None = None
        self._count = 0

    def take(self, delta: Mapping[str, object]) -> ToolCall | None:
        """Add one piece; the call before it, if this begins another.

        Raises:
            PeerError: there are more calls, or longer ones, than any reply has.
        """
        function = delta.get("function")
        part = function if isinstance(function, dict) else {}
        name, arguments = _text(part.get("name")), _arguments(part.get("arguments"))
        number, given_id = delta.get("index"), _text(delta.get("id"))
        index = number if isinstance(number, int) else None
        done = None
        if self._growing is None or _is_other(self._growing, _Growing(index, given_id, name, arguments)):
            done = self.finish()
            self._count += 1
            if self._count > MOST_CALLS:
                raise PeerError(f"the language model made more than {MOST_CALLS} calls in one reply")
            self._growing = _Growing(index)
        growing = self._growing
        assert growing is not None
        growing.id = growing.id or given_id
        if name != growing.name:  # else it is said again with each piece
            growing.name += name
        growing.arguments += arguments
        if len(growing.arguments) > MOST_CHARS:
            raise PeerError(f"the language model made a call with more than {MOST_CHARS} characters of arguments")
        return done

    def finish(self) -> ToolCall | None:
        """The call at work, now whole; None if there is none."""
        growing, self._growing = self._growing, None
        if growing is None:
            return None
        return ToolCall(self._own_id(growing.id), growing.name, growing.arguments.strip() or "{}")

    def _own_id(self, given: str) -> str:
        while not given or given in self._used or len(given) > _LONGEST_ID:
            given = secrets.token_hex(_ID_CHARS)[:_ID_CHARS]
        self._used.add(given)
        return given


def _is_other(growing: _Growing, piece: _Growing) -> bool:
    """Whether `piece` belongs to another call than the one at work."""
    if None not in {piece.index, growing.index} and piece.index != growing.index:
        return True
    if piece.id and growing.id and piece.id != growing.id:
        return True
    if not piece.name or not growing.arguments:
        return False
    return piece.name != growing.name or (is_object(growing.arguments) and bool(piece.arguments))


def is_object(text: str) -> bool:
    """Whether `text` is one whole JSON object."""
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _arguments(value: object) -> str:
    """Some servers send the object itself rather than its text."""
    return json.dumps(value) if isinstance(value, dict) else _text(value)
