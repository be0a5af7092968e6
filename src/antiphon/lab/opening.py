"""A line that has just been opened -> a session that is set up as wished.

Threads: the event loop. What it does not know: what is said afterwards.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from antiphon.core.errors import PeerError
from antiphon.lab.dialect import STAMPS, is_beta, read_event, session_update
from antiphon.lab.exchange import shown_error
from antiphon.lab.sound_format import echoed, format_named
from antiphon.lab.wire import TRY_LATER, FullError, LineLostError

if TYPE_CHECKING:
    from antiphon.core.clock import Clock
    from antiphon.lab.dialect import Json
    from antiphon.lab.plan import SessionWishes
    from antiphon.lab.sound_format import SoundFormat
    from antiphon.lab.wire import Wire

CREATED_S = 10.0  # for session.created
UPDATED_S = 5.0  # for the answer to session.update; some servers give none
MOST_EARLY = 2000  # events that are kept from before the session is set up: a greeting's
FULL_CODES = {"session_limit_reached", "rate_limit_exceeded", "insufficient_capacity", "server_overloaded"}
ASK_FOR_LESS = "ask for less: leave out --eagerness, --silence-ms, --vocabulary or --format"


@dataclass(slots=True)
class Opened:
    """What the server made of it."""

    session: Json  # its echo
    sent: SoundFormat  # what it wants to hear
    heard: SoundFormat  # what it says its replies come in
    early: list[tuple[int, Json]] = field(default_factory=list)  # (when, event) that came meanwhile
    has_stamps: bool = False


async def open_session(wire: Wire, wishes: SessionWishes, *, wants_stamps: bool, clock: Clock) -> Opened:
    """Wait for the session, and ask for what is wished.

    Raises:
        FullError: the server takes no more callers.
        PeerError: it says nothing, refuses the session, or closes the line.
    """
    steps = _Steps(wire, clock)
    created = await steps.next("session.created", within_s=CREATED_S)
    if created is None:
        raise PeerError("no session.created came", hint="is it a Realtime server?", retryable=True)
    session = _session(created)
    wanted = session_update(wishes, beta=is_beta(session))
    answer = await steps.ask(wanted)
    if answer is not None and answer["type"] == "error":
        raise PeerError(f"the server refuses the session: {shown_error(answer.get('error'))}", hint=ASK_FOR_LESS)
    session |= _session(answer)
    has_stamps = False
    if wants_stamps:
        # By itself, and as a whole: a server may refuse what it does not know, or forget what it was told before.
        wanted["session"]["include"] = [STAMPS]
        answer = await steps.ask(wanted)
        has_stamps = answer is not None and answer["type"] != "error"
        session |= _session(answer)
    asked = format_named(wishes.format)
    sent, heard = echoed(session, "input", asked), echoed(session, "output", asked)
    return Opened(session, sent, heard, steps.early, has_stamps)


class _Steps:
    """Questions and answers on a line that nobody else reads yet."""

    def __init__(self, wire: Wire, clock: Clock) -> None:
        self._wire = wire
        self._clock = clock
        self.early: list[tuple[int, Json]] = []

    async def ask(self, event: Json) -> Json | None:
        """The answer to a session.update; None if there is none, which some servers leave it at."""
        await self._wire.send(json.dumps(event))
        return await self.next("session.updated", "error", within_s=UPDATED_S)

    async def next(self, *kinds: str, within_s: float) -> Json | None:
        """The next event of these kinds; None if none came."""
        try:
            async with asyncio.timeout(within_s):
                while (event := await self._one()) is None or event["type"] not in kinds:
                    if event is not None and event["type"] == "error":
                        raise PeerError(f"the server says {shown_error(event.get('error'))}", hint="read its log")
                    if event is not None and len(self.early) < MOST_EARLY:
                        self.early.append((self._clock.now_ns(), event))
        except TimeoutError:
            return None
        return event

    async def _one(self) -> Json | None:
        try:
            event = read_event(await self._wire.receive())
        except LineLostError as error:
            if error.close_code == TRY_LATER:
                raise FullError("the server closed the line: try later", retryable=True) from error
            raise
        if event is not None and is_full(event):
            raise FullError(f"the server says {shown_error(event.get('error'))}", retryable=True)
        return event


def is_full(event: Json) -> bool:
    """Whether an event says that the server takes no more callers."""
    error = event.get("error") if event["type"] == "error" else None
    return isinstance(error, dict) and not FULL_CODES.isdisjoint((str(error.get("code")), str(error.get("type"))))


def _session(event: Json | None) -> Json:
    session = event.get("session") if event else None
    return dict(session) if isinstance(session, dict) else {}
