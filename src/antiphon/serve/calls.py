"""Requests for calls by WebRTC in -> an answer for each, and a conversation held over it; hanging up.

A call is refused before it begins, by HTTP status. From the answer on it has a place promised, which it takes when its
client is connected, and gives back if nobody comes. Threads: the event loop.
What it does not know: how a call is carried (`webrtc/`), which is an extra and loaded with the first call.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from typing import TYPE_CHECKING

from starlette.responses import Response

from antiphon.core.clock import SECOND_NS
from antiphon.core.errors import CallerError, MachineError
from antiphon.serve import ending as endings
from antiphon.serve.body import read_body
from antiphon.serve.call_request import SDP, read_call
from antiphon.serve.ice_servers import relay_pass
from antiphon.serve.log_lines import SessionLog
from antiphon.serve.reception import Visit, refusal, traceparent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from antiphon.core.clock import Clock
    from antiphon.serve.client_secrets import Grant
    from antiphon.serve.reception import Reception
    from antiphon.serve.webrtc.ice import Reach
    from antiphon.serve.webrtc.peer import Peer, Toll

INSTALL_WEBRTC = "pip install 'antiphon[webrtc]'"
OPUS_HZ = 48_000
PREFIX, SESSION_PREFIX = "rtc_", "sess_"
PREFLIGHT_S = 600  # that a browser may remember what pages may do


class Calls:
    """Of one server."""

    def __init__(self, reception: Reception, *, clock: Clock) -> None:
        self._reception = reception
        self._clock = clock
        self._answering = 0  # requests whose place is promised by nothing else yet
        self._held: set[asyncio.Task[None]] = set()  # each ends with its call, which the reception ends when it drains

    async def create(self, request: Request) -> Response:
        """An offer: 201 with the answer, and where the call is."""
        return self._for_page(request, await self._create(request))

    async def hang_up(self, request: Request) -> Response:
        """A call is over: 200, or 404 if there is none."""
        return self._for_page(request, self._hang_up(request))

    async def preflight(self, request: Request) -> Response:
        """What a browser asks before a page of another origin may call."""
        if not self._reception.allows_page(request.headers):
            return refusal(403, "origin_not_allowed", "pages of this origin may not connect; see serve.origins")
        headers = {
            "access-control-allow-methods": "POST, DELETE",
            "access-control-allow-headers": "authorization, *",  # clients send marks of their own
            "access-control-max-age": str(PREFLIGHT_S),
        }
        return self._for_page(request, Response(status_code=204, headers=headers))

    async def _create(self, request: Request) -> Response:
        here = self._reception
        refused = here.closed_to(request.headers)
        grant = here.grant(request.headers)
        if refused is None and grant is None:
            refused = 401, endings.WRONG_KEY.code, endings.WRONG_KEY.message
        if refused is None and not here.has_room(besides=self._answering):
            refused = 503, endings.FULL.code, endings.FULL.message
        if refused is not None:
            return self._refuse(request.headers, *refused)
        assert grant is not None
        self._answering += 1
        try:
            return await self._answer(request, grant)
        except CallerError as error:
            return self._refuse(request.headers, 400, "invalid_value", f"{error.message}; {error.hint}")
        except MachineError as error:
            status, code = (503, "call_limit_reached") if error.retryable else (501, "webrtc_not_installed")
            return self._refuse(request.headers, status, code, f"{error.message}; {error.hint}")
        finally:
            self._answering -= 1

    async def _answer(self, request: Request, grant: Grant) -> Response:
        wanted = read_call(request.headers.get("content-type", ""), await read_body(request))
        try:
            from antiphon.serve.webrtc.ice import Reach  # noqa: PLC0415
            from antiphon.serve.webrtc.peer import answer  # noqa: PLC0415
        except ImportError as error:
            raise MachineError("this server holds no calls by WebRTC", hint=INSTALL_WEBRTC) from error
        reach = self._reach(Reach)
        peer, sdp = await answer(wanted.sdp, reach, clock=self._clock, on_toll=self._count)
        session = {**grant.session, **wanted.session}
        name = secrets.token_hex(12)
        visit = Visit(
            begin_with=session,
            model=request.query_params.get("model") or _model(session),
            traceparent=traceparent(request.headers),
            track=peer.track,
            id=SESSION_PREFIX + name,
        )
        task = asyncio.create_task(self._hold(peer, visit), name=f"call {name}")
        self._held.add(task)
        task.add_done_callback(self._held.discard)
        await asyncio.sleep(0)  # from here on the reception knows of it
        where = f"{request.url.path}/{PREFIX}{name}"
        return Response(sdp, status_code=201, media_type=SDP, headers={"location": where})

    async def _hold(self, peer: Peer, visit: Visit) -> None:
        minding = asyncio.create_task(peer.mind(), name=f"mind {visit.id}")
        self._reception.metrics.calls.inc()
        try:
            await self._reception.hold(peer, visit)
        finally:
            minding.cancel()
            await asyncio.gather(minding, return_exceptions=True)
            await peer.end()
            self._reception.metrics.calls.dec()

    def _hang_up(self, request: Request) -> Response:
        here = self._reception
        if here.grant(request.headers) is None:
            return self._refuse(request.headers, 401, endings.WRONG_KEY.code, endings.WRONG_KEY.message)
        name = str(request.path_params["name"])
        if not name.startswith(PREFIX) or not here.hang_up(SESSION_PREFIX + name.removeprefix(PREFIX)):
            return refusal(404, "call_not_found", "there is no such call; it may be over")
        return Response(status_code=200)

    def _reach(self, reach: type[Reach]) -> Reach:
        settings = self._reception.settings
        username, password = relay_pass(settings, now_s=time.time())
        return reach(
            ports=settings.ports_of_calls,
            public_address=settings.webrtc_address,
            stun=settings.webrtc_stun,
            turn=settings.webrtc_turn,
            turn_username=username,
            turn_password=password,
        )

    def _count(self, toll: Toll) -> None:
        metrics, news = self._reception.metrics, toll.receipts
        for fate, count in (("played", news.played), ("lost", news.lost), ("late", news.late)):
            metrics.call_packets.labels(fate).inc(count)
        metrics.call_packets_waited.inc(news.waited)
        metrics.concealed.inc(toll.concealed_samples / OPUS_HZ)
        metrics.call_jitter.observe(toll.jitter_ns / SECOND_NS)

    def _refuse(self, headers: Mapping[str, str], status: int, code: str, message: str) -> Response:
        self._reception.metrics.refused.labels(code).inc()
        SessionLog("", traceparent(headers)).warning("session.refused", reason=code)
        return refusal(status, code, message)

    def _for_page(self, request: Request, response: Response) -> Response:
        """Let the page that asked read the answer, if it may connect."""
        origin = request.headers.get("origin")
        if origin is not None and self._reception.allows_page(request.headers):
            response.headers["access-control-allow-origin"] = origin
            response.headers["access-control-expose-headers"] = "location, retry-after"
            response.headers["vary"] = "origin"
        return response


def _model(session: Mapping[str, object]) -> str:
    model = session.get("model")
    return model if isinstance(model, str) else ""
