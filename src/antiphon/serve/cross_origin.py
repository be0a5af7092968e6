"""Requests of other sites' pages -> answered as browsers want it, for the origins that may connect and for them alone.

That concerns the modules of an embedded talk button. Calls by WebRTC see to it themselves (calls.py), a WebSocket needs
none of it (reception.py looks at its origin), and what only back ends ask for, keys in hand, is not for pages at all.
Threads: the event loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

OPEN_PATHS = ("/web/", "/embed.js", "/about.json")
ALLOWED = {
    "access-control-allow-methods": "GET",
    "access-control-allow-headers": "authorization",
    "access-control-max-age": "600",
}


class CrossOrigin:
    """Around the application."""

    def __init__(self, app: ASGIApp, allows: Callable[[Mapping[str, str]], bool]) -> None:
        self._app = app
        self._allows = allows

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(OPEN_PATHS):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        if origin is None or not self._allows(headers):
            await self._app(scope, receive, send)  # the browser keeps the answer from the page
            return
        told = {"access-control-allow-origin": origin, "vary": "origin"}
        if scope["method"] == "OPTIONS":
            await Response(status_code=204, headers={**told, **ALLOWED})(scope, receive, send)
            return

        async def send_with(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer = MutableHeaders(scope=message)
                answer.update(told)
            await send(message)

        await self._app(scope, receive, send_with)
