"""Events on their way to the client: a type and fields in, a numbered event out.

Threads: the event loop. What it does not know: who sends the dicts and when.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from antiphon.serve.realtime.ids import Ids

Json: TypeAlias = dict[str, object]


class Outbox:
    """Of one session."""

    def __init__(self, ids: Ids, send: Callable[[Json], None]) -> None:
        self.ids = ids
        self._send = send

    def put(self, kind: str, fields: Mapping[str, object]) -> None:
        """Send an event of this type."""
        self._send({"type": kind, "event_id": self.ids.new("event"), **fields})
