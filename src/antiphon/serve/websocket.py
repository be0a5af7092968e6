"""uvicorn's HTTP and WebSocket protocols, and an end to connections whose client does nothing, reads nothing, is gone.

uvicorn closes a connection by letting what is unsent flow off first, which a client that does not read can keep from
ever happening: the socket would stay open for good. Here each such close has an end. The application gets the abrupt
way too, as `scope["extensions"]["antiphon.abort"]`. Threads: the event loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

if TYPE_CHECKING:
    from asyncio import BaseTransport, Transport

    import h11
    from uvicorn._types import ASGISendEvent
    from websockets.http11 import Request

ABORT = "antiphon.abort"
PARTING_S = 3.0  # for the client to answer a close, and to take what was sent before it
READ_BYTES = 16 * 1024  # at once: small messages that fill more would hold the loop for long
MOST_UNSENT_BYTES = 2**20  # of pongs to a client that pings and does not read
FIRST_REQUEST_S = 10.0  # after a connection was made
MOST_CONNECTIONS = 1024  # of all kinds; whoever comes on top is cut off


class HttpProtocol(H11Protocol):
    """One connection until it becomes a WebSocket, if it does."""

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
        self._patience = self.loop.call_later(FIRST_REQUEST_S, self._end_if_silent)

    def connection_lost(self, exc: Exception | None) -> None:
        self._patience.cancel()  # it would keep all of this until it is over
        super().connection_lost(exc)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        self._patience.cancel()
        super().handle_websocket_upgrade(event)

    def _end_if_silent(self) -> None:
        has_asked = getattr(self, "cycle", None) is not None  # typed as if there always were one
        if not has_asked and self.transport.get_protocol() is self:
            self.transport.abort()


class SocketProtocol(WebSocketsSansIOProtocol):
    """One WebSocket connection."""

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)
        if hasattr(transport, "max_size"):  # of asyncio's selector loop; others read as they like
            transport.max_size = READ_BYTES

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if not self.close_sent:  # the handshake was in order, and the application has not run yet
            cast("dict[str, object]", self.scope["extensions"])[ABORT] = self.transport.abort

    def handle_ping(self) -> None:
        super().handle_ping()
        if self.transport.get_write_buffer_size() > MOST_UNSENT_BYTES:
            self.transport.abort()

    def keepalive_timeout(self) -> None:
        super().keepalive_timeout()
        self.transport.abort()

    def handle_parser_exception(self) -> None:
        super().handle_parser_exception()
        self.loop.call_later(PARTING_S, self.transport.abort)

    def shutdown(self) -> None:
        super().shutdown()
        self.loop.call_later(PARTING_S, self.transport.abort)

    async def send(self, message: ASGISendEvent) -> None:
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and self.close_sent:
            self.handshake_complete = True  # by a refusal; uvicorn would report an application that gave no answer
        if message["type"] == "websocket.close" and self.close_timer is not None:
            self.close_timer.cancel()
            self.close_timer = self.loop.call_later(PARTING_S, self.transport.abort)
