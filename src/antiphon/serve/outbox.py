"""A session's events in, in any burst -> one socket's messages out, at the speed of its client.

The only writer of a socket. Bounded in events and bytes; when full, what waits is dropped, `on_full` is told once, and
nothing more is taken but a parting message. Threads: the event loop; one slow client delays nobody else.
What it does not know: sessions, and what events mean.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.serve.encoding import encode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from antiphon.core.clock import Clock

LONGEST_EVENT_BYTES = 2**20 - 1024  # common clients close the connection over a message of more than 1 MiB


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much may wait."""

    events: int
    bytes: int
    one: int = LONGEST_EVENT_BYTES  # bytes of one event; a longer one is left out


class Outbox:
    """What waits for one client."""

    def __init__(
        self,
        bounds: Bounds,
        *,
        clock: Clock,
        on_full: Callable[[], None],
        on_sent: Callable[[int], None] = lambda _age_ns: None,
        on_too_long: Callable[[str], None] = lambda _kind: None,
    ) -> None:
        self._bounds = bounds
        self._clock = clock
        self._on_full = on_full
        self._on_sent = on_sent  # how long the message waited, ns
        self._on_too_long = on_too_long  # the type of an event that no client would take, which was left out
        self._waiting: deque[tuple[int, str]] = deque()
        self._waiting_bytes = 0
        self._news = asyncio.Event()
        self._is_full = False
        self._is_closed = False

    @property
    def waiting(self) -> tuple[int, int]:
        """(events, bytes) that were not handed to the socket yet."""
        return len(self._waiting), self._waiting_bytes

    def put(self, event: Mapping[str, object]) -> None:
        """Send this when its time comes; after `close`, or once it was full, it is dropped.

        Raises: as `encode`.
        """
        if self._is_full or self._is_closed:
            return
        text = encode(event)
        if len(text) > self._bounds.one:
            self._on_too_long(str(event.get("type")))
            return
        if len(self._waiting) >= self._bounds.events or self._waiting_bytes + len(text) > self._bounds.bytes:
            self._is_full = True
            self._clear()
            self._on_full()
            return
        self._append(text)

    def close(self, last: Mapping[str, object] | None = None) -> None:
        """Take nothing more; what waits is still written, and `last` behind it, however full it was."""
        if self._is_closed:
            return
        self._is_closed = True
        if last is not None:
            self._append(encode(last))
        self._news.set()

    async def write(self, send: Callable[[str], Awaitable[None]]) -> None:
        """Write until `close` was called and nothing waits any more.

        Raises: whatever `send` raises.
        """
        while True:
            while self._waiting:
                put_ns, text = self._waiting.popleft()
                self._waiting_bytes -= len(text)
                await send(text)
                self._on_sent(self._clock.now_ns() - put_ns)
            if self._is_closed:
                return
            self._news.clear()
            await self._news.wait()

    def _append(self, text: str) -> None:
        self._waiting.append((self._clock.now_ns(), text))
        self._waiting_bytes += len(text)
        self._news.set()

    def _clear(self) -> None:
        self._waiting.clear()
        self._waiting_bytes = 0
