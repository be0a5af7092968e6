"""The server's routes -> a Starlette application; conversations go to the reception, the rest is answered here.

Threads: the event loop. What it does not know: sockets, signals, how models are loaded.
"""

from __future__ import annotations

import json
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route, WebSocketRoute

from antiphon import __version__
from antiphon.core.clock import MonotonicClock
from antiphon.core.errors import CallerError, MachineError
from antiphon.serve import ending as endings
from antiphon.serve.body import read_body
from antiphon.serve.calls import Calls
from antiphon.serve.client_secrets import read_request
from antiphon.serve.cross_origin import CrossOrigin
from antiphon.serve.ice_servers import for_clients
from antiphon.serve.metrics import CONTENT_TYPE
from antiphon.serve.reception import RETRY_AFTER_S, refusal
from antiphon.serve.status import status
from antiphon.serve.web_files import WebFiles

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from starlette.requests import Request

    from antiphon.serve.reception import Reception

PAGES = {"/": "index.html", "/status": "status.html"}
CALL_PATHS = ("calls", "calls/{name}", "calls/{name}/hangup")


def make_app(
    reception: Reception, lifespan: Callable[[Starlette], AbstractAsyncContextManager[None]] | None = None
) -> Starlette:
    """The application that serves what `reception` offers."""
    pages, files = _Pages(reception), WebFiles()
    calls = Calls(reception, clock=MonotonicClock())
    routes: list[Route | WebSocketRoute] = [
        Route("/health", pages.health),
        Route("/metrics", pages.metrics),
        Route("/about.json", pages.about),
        Route("/status.json", pages.status),
        *(Route(path, _page(files, name)) for path, name in PAGES.items()),
        Route("/embed.js", lambda _request: RedirectResponse("web/embed.js")),  # where its imports are beside it
        Route("/web/{name:path}", lambda request: files.answer(request, request.path_params["name"])),
        Route("/v1/models", pages.models),
        Route("/v1/models/{name:path}", pages.model),
    ]
    for path in ("/v1/realtime", "/realtime"):
        routes.append(WebSocketRoute(path, reception.receive))
        routes.append(Route(path, pages.upgrade_wanted))
        routes.append(Route(f"{path}/client_secrets", pages.client_secrets, methods=["POST"]))
        routes.append(Route(f"{path}/calls", calls.create, methods=["POST"]))
        routes.append(Route(f"{path}/calls/{{name}}/hangup", calls.hang_up, methods=["POST"]))
        routes.append(Route(f"{path}/calls/{{name}}", calls.hang_up, methods=["DELETE"]))
        routes += [Route(f"{path}/{rest}", calls.preflight, methods=["OPTIONS"]) for rest in CALL_PATHS]
    around = [Middleware(CrossOrigin, allows=reception.allows_page)]
    return Starlette(routes=routes, middleware=around, lifespan=lifespan)


def _page(files: WebFiles, name: str) -> Callable[[Request], Response]:
    return lambda request: files.answer(request, name)


class _Pages:
    """What is answered without a conversation."""

    def __init__(self, reception: Reception) -> None:
        self._reception = reception
        self._since_s = int(time.time())

    async def health(self, _request: Request) -> Response:
        """200 once callers are let in, 503 before and while the server ends."""
        here = self._reception
        is_ready = here.condition == "ready"
        body = {
            "status": "ok" if is_ready else here.condition,
            "version": __version__,
            "sessions": here.open_sessions,
            "capacity": here.capacity,
        }
        headers = {} if is_ready else {"retry-after": str(RETRY_AFTER_S)}
        return JSONResponse(body, status_code=200 if is_ready else 503, headers=headers)

    async def metrics(self, request: Request) -> Response:
        if not self._reception.knows(request.headers):
            return _key_wanted()
        return Response(self._reception.metrics.text(), media_type=None, headers={"content-type": CONTENT_TYPE})

    async def about(self, request: Request) -> Response:
        """What the page has to know before it connects; to whom shows a key, if one is needed, more than that."""
        here = self._reception
        told: dict[str, object] = {
            "key_needed": here.keys.are_needed,
            "condition": here.condition,
            "webrtc": find_spec("aiortc") is not None,
        }
        if here.knows(request.headers):
            told |= {"models": here.offer.models, "voices": here.offer.voices, "version": __version__}
        if here.grant(request.headers) is not None:
            told["ice_servers"] = for_clients(here.settings, now_s=time.time())
        return JSONResponse(told, headers={"cache-control": "no-store"})

    async def status(self, request: Request) -> Response:
        """How the server does, for its own page and for scripts; a key opens it, as it does /metrics."""
        if not self._reception.knows(request.headers):
            return _key_wanted()
        told = status(self._reception, now_s=time.time(), since_s=self._since_s)
        return JSONResponse(told, headers={"cache-control": "no-store"})

    async def models(self, request: Request) -> Response:
        if not self._reception.knows(request.headers):
            return _key_wanted()
        return JSONResponse({"object": "list", "data": [self._model(name) for name in self._reception.offer.models]})

    async def model(self, request: Request) -> Response:
        if not self._reception.knows(request.headers):
            return _key_wanted()
        name = request.path_params["name"]
        if name not in self._reception.offer.models:
            return refusal(404, "model_not_found", "there is no such model; /v1/models lists them")
        return JSONResponse(self._model(name))

    async def upgrade_wanted(self, _request: Request) -> Response:
        answer = refusal(426, "upgrade_required", "this address speaks WebSocket: connect with ws:// or wss://")
        answer.headers["upgrade"] = "websocket"
        return answer

    async def client_secrets(self, request: Request) -> Response:
        """A secret that stands in for a key; only a key gets one."""
        here = self._reception
        if not here.knows(request.headers):
            return _key_wanted()
        try:
            session, seconds = read_request(await _json(request))
            value, grant = here.secrets.make(session, seconds=seconds)
        except CallerError as error:
            return refusal(400, "invalid_value", f"{error.message}; {error.hint}")
        except MachineError as error:
            return refusal(429, "too_many_secrets", f"{error.message}; {error.hint}")
        known = {"type": "realtime", "object": "realtime.session", "model": here.offer.models[0]}
        return JSONResponse({"value": value, "expires_at": grant.expires_at_s, "session": known | grant.session})

    def _model(self, name: str) -> dict[str, object]:
        return {"id": name, "object": "model", "created": self._since_s, "owned_by": "antiphon"}


async def _json(request: Request) -> object:
    """The body as JSON; none is an empty object.

    Raises:
        CallerError: it is too large, too slow, or no JSON.
    """
    body = await read_body(request)
    try:
        return json.loads(body) if body.strip() else {}
    except (ValueError, RecursionError) as error:
        raise CallerError("the body is not JSON", hint='send {"session": {"type": "realtime"}}, or {}') from error


def _key_wanted() -> Response:
    return refusal(401, endings.WRONG_KEY.code, endings.WRONG_KEY.message)
