"""Whether to ask a server how many tokens a reply took.

A streamed reply is counted only where that was asked for, and the count comes behind the last word. A server that does
not know the field is not asked again. Threads: the event loop; shared by all conversations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.think.chat_requests import REFUSED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antiphon.think.chat_failure import ServerFailure

_FIELD = "stream_options"


class UsageWish:
    """Of one server; `extra` are the fields that each request has, and what they say of this stands."""

    def __init__(self, extra: Mapping[str, object]) -> None:
        self._asks = _FIELD not in extra

    def fields(self) -> dict[str, object]:
        """What a request says to have its reply counted."""
        return {_FIELD: {"include_usage": True}} if self._asks else {}

    def is_refused(self, failure: ServerFailure) -> bool:
        """Whether a request failed because of it, and can be put again without."""
        refused = self._asks and failure.status in REFUSED and failure.field in {_FIELD, "include_usage"}
        self._asks = self._asks and not refused
        return refused
