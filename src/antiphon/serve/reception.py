"""Callers in -> each let in, turned away with a reason, or, when the server ends, seen off; one server's whole state.

Three reasons concern the server as a whole, and a balancer in front of it: it still loads, it shuts down, the page's
origin is not allowed; they are told by HTTP status before the upgrade. A wrong key is told by status too, unless a
browser asks, which could not see it. A full house is told inside the protocol, as an `error` event and close code 1013:
clients show that in words, while a status before the upgrade reaches browsers as nothing at all.
Threads: the event loop.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse

from antiphon.core.clock import SECOND_NS
from antiphon.serve import ending as endings
from antiphon.serve.channel import SocketChannel
from antiphon.serve.client_secrets import ClientSecrets, Grant
from antiphon.serve.connection import Connection, Premises, event_id
from antiphon.serve.encoding import encode, error_event
from antiphon.serve.keys import SUBPROTOCOL, Keys, Origins, presented
from antiphon.serve.line import Terms
from antiphon.serve.log_lines import SessionLog
from antiphon.serve.records import Records

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.websockets import WebSocket

    from antiphon.config import Config
    from antiphon.core.clock import Clock
    from antiphon.runtime import Runtime
    from antiphon.serve.channel import Channel
    from antiphon.serve.line import PickUp, Track
    from antiphon.serve.metrics import Metrics
    from antiphon.session import SessionSettings

RETRY_AFTER_S = 5  # that a caller is asked to wait who came too early or too late
FAREWELL_S = 1.0  # for clients to be told why they are closed when the server ends
TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Who is served here."""

    models: tuple[str, ...]  # names for it; the first is the agent's
    voices: tuple[str, ...]
    settings: Callable[[Runtime], SessionSettings]
    language: str = ""  # that is heard, by its code; empty: nothing is said of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One caller who may come in."""

    begin_with: Mapping[str, object]  # the session's configuration, as far as they have one
    model: str = ""  # that they ask for
    traceparent: str = ""
    track: Track | None = None  # that replies sound on, beside the messages
    id: str = field(default_factory=lambda: f"sess_{secrets.token_hex(12)}")


class Reception:
    """Of one server."""

    def __init__(self, offer: Offer, config: Config, *, pick_up: PickUp, metrics: Metrics, clock: Clock) -> None:
        self.offer = offer
        self.metrics = metrics
        self.settings = config.serve
        self.capacity = config.capacity.conversations  # until the runtime has found out how many it can hold
        self.keys = Keys(config.serve.keys)
        self.secrets = ClientSecrets(config.serve.client_secrets, now_s=time.time)
        self._origins = Origins(config.serve.origins, keys_are_needed=self.keys.are_needed)
        self._pick_up = pick_up
        self._clock = clock
        self._records = Records(config.record)
        self._premises: Premises | None = None  # once the models are loaded
        self._is_draining = False
        self._connections: dict[str, Connection] = {}  # by the name of the session
        self._nobody = asyncio.Event()
        self._nobody.set()
        self.hurried = asyncio.Event()  # nobody waits for anything any more
        metrics.open_is(lambda: self.open_sessions)

    @property
    def condition(self) -> str:
        """`loading`, `ready` or `draining`."""
        if self._is_draining:
            return "draining"
        return "ready" if self._premises else "loading"

    @property
    def open_sessions(self) -> int:
        """How many conversations are held."""
        return sum(connection.is_open for connection in self._connections.values())

    def has_room(self, *, besides: int) -> bool:
        """Whether there is a place that is neither taken nor promised: to those on the way, and to so many besides."""
        promised = besides + sum(connection.is_awaited for connection in self._connections.values())
        return self.open_sessions + promised < self.capacity

    def open_doors(self, runtime: Runtime) -> None:
        """The models are loaded and warm: let callers in."""
        self.capacity = runtime.conversations
        self._premises = Premises(
            runtime=runtime,
            settings=self.settings,
            pick_up=self._pick_up,
            metrics=self.metrics,
            clock=self._clock,
            records=self._records,
        )

    @property
    def runtime(self) -> Runtime | None:
        """What conversations share; None while models load."""
        return self._premises.runtime if self._premises else None

    def guests(self) -> list[dict[str, object]]:
        """The conversations that are held, the longest first."""
        return sorted((each.about() for each in self._connections.values() if each.is_open), key=_age_s, reverse=True)

    def knows(self, headers: Mapping[str, str]) -> bool:
        """Whether a request other than a conversation's shows one of the keys, if any are needed."""
        return not self.keys.are_needed or self.keys.know(presented(headers).key)

    async def receive(self, socket: WebSocket) -> None:
        """See to one caller, from the upgrade request to the close."""
        if await self._turn_away(socket):
            return
        shown = presented(socket.headers, socket.scope["subprotocols"])
        grant = self.secrets.find(shown.key)
        if self.keys.are_needed and grant is None and not self.keys.know(shown.key):
            await self._refuse_key(socket, by_browser=shown.by_browser)
            return
        await self._accept(socket)
        visit = Visit(
            begin_with=grant.session if grant else {},
            model=socket.query_params.get("model", ""),
            traceparent=traceparent(socket.headers),
        )
        await self.hold(SocketChannel(socket), visit)

    async def hold(self, channel: Channel, visit: Visit) -> None:
        """Hold one caller's conversation, who was let in."""
        premises = self._premises
        assert premises is not None
        log = SessionLog(visit.id, visit.traceparent)
        terms = Terms(
            id=visit.id,
            model=visit.model,
            track=visit.track,
            models=self.offer.models,
            voices=self.offer.voices,
            language=self.offer.language,
            settings=self.offer.settings(premises.runtime),
            expires_at_s=int(time.time() + self.settings.longest_session_s),
        )
        connection = Connection(channel, terms, premises, log)
        if self._is_draining:  # since the upgrade began
            connection.drain()
        self._connections[visit.id] = connection
        self._nobody.clear()
        started_ns = self._clock.now_ns()
        ending = endings.BROKEN
        try:
            ending = await connection.hold(visit.begin_with)
        finally:
            del self._connections[visit.id]
            if not self._connections:
                self._nobody.set()
            self._count(ending, (self._clock.now_ns() - started_ns) / SECOND_NS, log)

    def _count(self, ending: endings.Ending, seconds: float, log: SessionLog) -> None:
        if ending in (endings.FULL, endings.BUSY):
            self.metrics.refused.labels(ending.label).inc()
            log.warning("session.refused", reason=ending.label)
            return
        self.metrics.sessions.inc()
        self.metrics.ended.labels(ending.label).inc()
        self.metrics.session_seconds.observe(seconds)
        log.info("session.closed", reason=ending.label, close_code=ending.close_code, duration_s=round(seconds, 3))

    def hang_up(self, session_id: str) -> bool:
        """End a conversation because its client says so; whether there was one of this name."""
        connection = self._connections.get(session_id)
        if connection is not None:
            connection.end(endings.HUNG_UP)
        return connection is not None

    async def drain(self, bound_s: float) -> None:
        """Let nobody in any more, let replies end for so long, and close all connections; `hurry` shortens it."""
        self._is_draining = True
        for connection in tuple(self._connections.values()):
            connection.drain()
        waits = [asyncio.create_task(each.wait()) for each in (self._nobody, self.hurried)]
        await asyncio.wait(waits, timeout=bound_s, return_when=asyncio.FIRST_COMPLETED)
        for connection in tuple(self._connections.values()):
            connection.end(endings.DRAINED)
        await asyncio.wait(waits[:1], timeout=FAREWELL_S)
        for wait in waits:
            wait.cancel()

    def hurry(self) -> None:
        """Let `drain` wait no longer, in the midst of a reply too."""
        self.hurried.set()

    async def _turn_away(self, socket: WebSocket) -> bool:
        """Refuse by HTTP status whom no key could help; whether it was done."""
        refused = self.closed_to(socket.headers)
        if refused is not None:
            await self._deny(socket, *refused)
        return refused is not None

    def closed_to(self, headers: Mapping[str, str]) -> tuple[int, str, str] | None:
        """Why nobody with such headers is let in, whatever key they show: status, code and message; None: they may."""
        if not self.allows_page(headers):
            message = "pages of this origin may not connect; the server's serve.origins lists those that may"
            return 403, "origin_not_allowed", message
        condition = self.condition
        if condition != "ready":
            says = "the server loads its models" if condition == "loading" else endings.DRAINED.message
            return 503, f"server_{condition}", says
        return None

    def allows_page(self, headers: Mapping[str, str]) -> bool:
        """Whether the page that asks, if one does, may connect here."""
        return self._origins.allow(headers.get("origin"), headers.get("host", ""))

    def grant(self, headers: Mapping[str, str]) -> Grant | None:
        """What a request for a conversation may have that shows its key or secret in a header; None: nothing."""
        shown = presented(headers)
        grant = self.secrets.find(shown.key)
        if grant is None and self.knows(headers):
            return Grant(expires_at_s=0, session={})
        return grant

    async def _refuse_key(self, socket: WebSocket, *, by_browser: bool) -> None:
        ending = endings.WRONG_KEY
        if not by_browser:
            await self._deny(socket, 401, ending.code, ending.message)
            return
        self.metrics.refused.labels(ending.code).inc()
        await self._accept(socket)
        await socket.send_text(
            encode(error_event(event_id(), ending.code, ending.message, kind="invalid_request_error"))
        )
        await SocketChannel(socket).close(ending)

    async def _deny(self, socket: WebSocket, status: int, code: str, message: str) -> None:
        self.metrics.refused.labels(code).inc()
        SessionLog("", traceparent(socket.headers)).warning("session.refused", reason=code)
        await socket.send_denial_response(refusal(status, code, message))

    async def _accept(self, socket: WebSocket) -> None:
        offered = SUBPROTOCOL in socket.scope["subprotocols"]
        await socket.accept(subprotocol=SUBPROTOCOL if offered else None)


def refusal(status: int, code: str, message: str) -> JSONResponse:
    """An HTTP answer that says no, in the shape that clients of the protocol read."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    headers = {"retry-after": str(RETRY_AFTER_S)} if status in (429, 503) else {}
    if status == 401:
        headers["www-authenticate"] = "Bearer"
    body = {"error": {"message": message, "type": kind, "param": None, "code": code}}
    return JSONResponse(body, status_code=status, headers=headers)


def _age_s(guest: dict[str, object]) -> float:
    age = guest["age_s"]
    assert isinstance(age, float)
    return age


def traceparent(headers: Mapping[str, str]) -> str:
    """The trace that a request belongs to; empty: none, or no valid one."""
    given = headers.get("traceparent", "")
    return given if TRACEPARENT.fullmatch(given) else ""
