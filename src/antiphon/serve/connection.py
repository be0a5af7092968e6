"""One client's channel in -> a conversation held over it, until either side ends it or a limit is met.

Three tasks belong to a conversation: one reads the channel, one tells the session's events, one minds the limits. A
fourth writes, and lives a little longer, to say why it ended. All are gone when `hold` returns; the place in the
runtime is free a moment before, as soon as the conversation is over. Threads: the event loop.
What it does not know: the protocol (`Line`), who may come in (`reception.py`).
"""

from __future__ import annotations

import asyncio
import json
import secrets
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from antiphon.core.clock import SECOND_NS
from antiphon.core.errors import BusyError, MachineError
from antiphon.core.flow import AudioFrame
from antiphon.serve import ending as endings
from antiphon.serve.channel import GoneError
from antiphon.serve.encoding import error_event
from antiphon.serve.observer import Observer
from antiphon.serve.outbox import Bounds, Outbox
from antiphon.serve.records import NOT_RECORDED
from antiphon.serve.websocket import PARTING_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from antiphon.core.clock import Clock
    from antiphon.dialogue.commands import Command
    from antiphon.dialogue.stimuli import Stimulus
    from antiphon.runtime import Runtime
    from antiphon.serve.channel import Channel
    from antiphon.serve.ending import Ending
    from antiphon.serve.line import Line, PickUp, Terms
    from antiphon.serve.log_lines import SessionLog
    from antiphon.serve.metrics import Metrics
    from antiphon.serve.records import Record, Records
    from antiphon.serve_settings import ServeSettings
    from antiphon.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Premises:
    """What all connections of a server share."""

    runtime: Runtime
    settings: ServeSettings
    pick_up: PickUp
    metrics: Metrics
    clock: Clock
    records: Records


class Connection:
    """One client's; `hold` it once."""

    def __init__(self, channel: Channel, terms: Terms, premises: Premises, log: SessionLog) -> None:
        self._channel = channel
        self._is_awaited = True
        self._terms = terms
        self._premises = premises
        self._log = log
        self._observer = Observer(premises.metrics, log)
        self._session: Session | None = None  # while it is open
        self._record: Record = NOT_RECORDED
        self._ended: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self._is_draining = False
        self._heard_ns = self._begun_ns = premises.clock.now_ns()
        self._outbox = Outbox(
            Bounds(
                events=premises.settings.send_queue_events,
                bytes=premises.settings.send_queue_bytes,
                one=channel.longest_bytes,
            ),
            clock=premises.clock,
            on_full=lambda: self.end(endings.SLOW),
            on_sent=lambda age_ns: premises.metrics.send_age.observe(age_ns / SECOND_NS),
            on_too_long=self._left_out,
        )

    @property
    def is_awaited(self) -> bool:
        """Whether its client is not there yet; it will take a place."""
        return self._is_awaited

    @property
    def is_open(self) -> bool:
        """Whether a conversation is held, which takes a place."""
        return self._session is not None

    def about(self) -> dict[str, object]:
        """What may be known of the conversation by whoever runs the server: no words, no address."""
        now_ns, session = self._premises.clock.now_ns(), self._session
        return {
            "id": self._terms.id,
            "model": self._terms.model,
            "age_s": round((now_ns - self._begun_ns) / SECOND_NS, 1),
            "turns": session.dialogue.turn if session else 0,
            "phase": session.dialogue.phase.value if session else "",
            "waiting_events": self._outbox.waiting[0],
        }

    def end(self, ending: Ending) -> None:
        """End the conversation; the first reason given is the one told."""
        if not self._ended.done():
            self._ended.set_result(ending)

    def drain(self) -> None:
        """End as soon as no reply sounds."""
        self._is_draining = True
        self._end_if_drained()

    async def hold(self, begin_with: Mapping[str, object]) -> Ending:
        """Hold the conversation, and say what ended it; `begin_with` is a session's configuration."""
        async with asyncio.TaskGroup() as tasks:
            writing = tasks.create_task(self._write())
            try:
                ending = await self._reach() or await self._converse(begin_with)
            except Exception as error:  # noqa: BLE001 - whatever failed, this client is told, and others go on
                self._log.error("session.failed", error)
                ending = endings.BROKEN
            self._observer.end()
            if ending is endings.LEFT or self._is_awaited:
                writing.cancel()
            else:
                await self._part(ending, writing)
        return ending

    async def _reach(self) -> Ending | None:
        """Wait for the client; why there is nobody, or None."""
        connecting = asyncio.ensure_future(self._channel.connect())
        waits: tuple[asyncio.Future[Any], ...] = connecting, self._ended
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        if self._ended.done():
            connecting.cancel()
            return self._ended.result()
        if not connecting.result():
            return endings.LEFT
        self._is_awaited = False
        self._heard_ns = self._premises.clock.now_ns()
        return None

    async def _converse(self, begin_with: Mapping[str, object]) -> Ending:
        """Hold the conversation; its place is free again on return."""
        here = self._premises
        try:
            opened = here.runtime.open(self._terms.settings, clock=here.clock, watch=self._watch)
        except BusyError as error:
            self._log.warning("session.busy", why=error.message)
            return endings.BUSY
        except MachineError as error:
            if error.retryable:
                return endings.FULL
            raise
        self._record = here.records.begin(self._terms.id, opened.dialogue)
        with closing(self._record):
            async with opened as session:
                self._session = session
                self._log.info("session.opened", model=self._terms.model)
                try:
                    line = here.pick_up(session, self._terms, self._outbox.put)
                    line.begin()
                    if begin_with:
                        for _ in line.take_gently(json.dumps({"type": "session.update", "session": begin_with})):
                            await asyncio.sleep(0)
                    return await self._until_ended(session, line)
                finally:
                    self._session = None

    def _watch(self, stimulus: Stimulus, commands: tuple[Command, ...]) -> None:
        self._observer.commands(stimulus, commands)
        self._record.watch(stimulus, commands)

    async def _until_ended(self, session: Session, line: Line) -> Ending:
        async with asyncio.TaskGroup() as tasks:
            work = [
                tasks.create_task(self._read(line)),
                tasks.create_task(self._tell(session, line)),
                tasks.create_task(self._mind_limits()),
            ]
            ending = await asyncio.shield(self._ended)
            for task in work:
                task.cancel()
        if ending.code:
            line.fail(ending.code, ending.message)
        return ending

    async def _read(self, line: Line) -> None:
        while True:
            came = await self._channel.receive()
            if came is None:
                self.end(endings.LEFT)
                return
            self._heard_ns = self._premises.clock.now_ns()
            if isinstance(came, AudioFrame):
                line.hear(came)
            else:
                for _ in line.take_gently(came):
                    await asyncio.sleep(0)
            await asyncio.sleep(0)  # a burst of messages leaves the others their turn

    async def _tell(self, session: Session, line: Line) -> None:
        async for event in session:
            self._observer.event(event)
            line.tell(event)
            if self._is_draining:
                self._end_if_drained()
            await asyncio.sleep(0)  # nor does a reply that comes all at once
        self.end(endings.OVER)

    async def _mind_limits(self) -> None:
        settings, clock = self._premises.settings, self._premises.clock
        expires_ns = clock.now_ns() + round(settings.longest_session_s * SECOND_NS)
        while True:
            now_ns = clock.now_ns()
            idle_ns = self._heard_ns + round(settings.idle_s * SECOND_NS)
            if now_ns >= expires_ns:
                self.end(endings.expired(settings.longest_session_s))
                return
            if now_ns >= idle_ns:
                self.end(endings.idle(settings.idle_s))
                return
            await asyncio.sleep((min(expires_ns, idle_ns) - now_ns) / SECOND_NS)

    async def _write(self) -> None:
        try:
            await self._outbox.write(self._channel.send)
        except GoneError:
            self.end(endings.LEFT)

    async def _part(self, ending: Ending, writing: asyncio.Task[None]) -> None:
        """Tell the client why, and close; one that does not read has a moment, then the connection is cut."""
        untold = ending in (
            endings.SLOW,
            endings.FULL,
            endings.BUSY,
            endings.BROKEN,
        )  # the line is gone, or was not heard
        last = error_event(event_id(), ending.code, ending.message) if untold else None
        self._outbox.close(last)
        try:
            async with asyncio.timeout(PARTING_S):
                await asyncio.wait([writing])
                await self._channel.close(ending)
        except TimeoutError:
            writing.cancel()
            self._channel.cut()

    def _left_out(self, kind: str) -> None:
        """An event was too long for common clients, and this is told in its place."""
        self._log.error("event.too_long", kind=kind)
        most = self._channel.longest_bytes
        message = f"an event of type {kind} would have been longer than {most} bytes, and was left out"
        self._outbox.put(error_event(event_id(), "event_too_long", message))

    def _end_if_drained(self) -> None:
        if self._session is None or not self._session.is_replying:
            self.end(endings.DRAINED)


def event_id() -> str:
    return f"event_{secrets.token_hex(10)}"
