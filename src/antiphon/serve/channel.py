"""What a conversation needs of the way its messages travel, and the one by WebSocket.

Threads: the event loop. What it does not know: what the messages say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

from starlette.websockets import WebSocketDisconnect

from antiphon.serve.outbox import LONGEST_EVENT_BYTES
from antiphon.serve.websocket import ABORT

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.websockets import WebSocket

    from antiphon.core.flow import AudioFrame
    from antiphon.serve.ending import Ending

    Incoming: TypeAlias = str | bytes | AudioFrame | None  # a message, sound beside the messages, or the client left


class GoneError(Exception):
    """The client is not there any more."""


class Channel(Protocol):
    """To one client."""

    @property
    def longest_bytes(self) -> int:
        """Of one message, that the client will take."""
        ...

    async def connect(self) -> bool:
        """Wait until messages can travel; False if they never will."""
        ...

    async def receive(self) -> Incoming:
        """The next that comes from the client; None, and nothing after it, once the client has left."""
        ...

    async def send(self, text: str) -> None:
        """Send a message when there is room for it.

        Raises:
            GoneError: the client has left.
        """
        ...

    async def close(self, ending: Ending) -> None:
        """Let what was sent arrive, and say goodbye, as far as somebody is there."""
        ...

    def cut(self) -> None:
        """End it now: what has not arrived is lost."""
        ...


class SocketChannel:
    """An accepted WebSocket."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket

    @property
    def longest_bytes(self) -> int:
        return LONGEST_EVENT_BYTES

    async def connect(self) -> bool:
        return True

    async def receive(self) -> Incoming:
        message = await self._socket.receive()
        if message["type"] == "websocket.disconnect":
            return None
        text: str | None = message.get("text")
        return text if text is not None else message.get("bytes") or b""

    async def send(self, text: str) -> None:
        try:
            await self._socket.send_text(text)
        except WebSocketDisconnect:
            raise GoneError from None

    async def close(self, ending: Ending) -> None:
        try:
            await self._socket.close(ending.close_code, ending.reason)
        except (WebSocketDisconnect, RuntimeError):
            return

    def cut(self) -> None:
        cut: Callable[[], None] | None = self._socket.scope.get("extensions", {}).get(ABORT)
        if cut is not None:
            cut()
