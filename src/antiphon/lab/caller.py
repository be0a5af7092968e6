"""One line to a server and clips to say -> exchanges, each from the clip's first sample to the reply's end.

A caller has a microphone that never stops, a loudspeaker that plays what has arrived, and an account of what came when.
When the server says that it hears the caller, playback stops at once, and the server is told how much was heard.
Two tasks: one reads, one sends the microphone's frames. A lost line ends neither with an error: it is noted in the
exchange. Threads: the event loop.
What it does not know: which clip comes next, and when.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from antiphon.core.clock import MILLISECOND_NS, SECOND_NS
from antiphon.lab.dialect import BY_HAND, TIMELINE, read_event
from antiphon.lab.exchange import Exchange
from antiphon.lab.kept import Stop, kept_ms
from antiphon.lab.loudspeaker import Loudspeaker
from antiphon.lab.microphone import Microphone, Said
from antiphon.lab.opening import is_full, open_session
from antiphon.lab.wire import TRY_LATER, LineLostError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from antiphon.core.clock import Clock
    from antiphon.lab.dialect import Json
    from antiphon.lab.lateness import Lateness
    from antiphon.lab.microphone import Speech
    from antiphon.lab.opening import Opened
    from antiphon.lab.patience import Patience
    from antiphon.lab.plan import SessionWishes
    from antiphon.lab.wire import Wire

QUIET_NS = 200 * MILLISECOND_NS  # nobody speaks: a greeting would have begun
LONGEST_GREETING_NS = 60 * SECOND_NS
LEAD_MS = 100  # of a clip's own quiet before its speech, where it is said over a reply


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    """How a caller behaves."""

    wishes: SessionWishes
    wants_stamps: bool = False
    truncates: bool = True  # tells the server how much was heard of a reply that was broken off
    checks_truncation: bool = False  # and asks it how much it kept


@asynccontextmanager
async def opened(
    wire: Wire, manners: Manners, first: Speech, *, clock: Clock, lateness: Lateness
) -> AsyncIterator[Caller]:
    """A caller on a line, which is closed afterwards; `first` is what will be said first.

    Raises:
        FullError: the server takes no more callers.
        PeerError: it is no Realtime server, refuses the session, or closes the line.
    """
    try:
        session = await open_session(wire, manners.wishes, wants_stamps=manners.wants_stamps, clock=clock)
        caller = Caller(wire, manners, session, first, clock=clock, lateness=lateness)
        async with asyncio.TaskGroup() as tasks:
            work = [tasks.create_task(caller.read()), tasks.create_task(caller.speak())]
            yield caller
            for task in work:
                task.cancel()
    finally:
        await wire.close()


class Caller:
    """Of one session; made by `opened`."""

    def __init__(
        self, wire: Wire, manners: Manners, opened: Opened, first: Speech, *, clock: Clock, lateness: Lateness
    ) -> None:
        self.opened = opened
        self.lost = ""  # the line, and why
        self.is_refused = False  # the server said that it is full, or to try later
        self._wire = wire
        self._manners = manners
        self._clock = clock
        self._speaker = Loudspeaker()
        self._microphone = Microphone(first, clock=clock, lateness=lateness, pack=self._pack)
        nowhere = Said(0, 0, clock.now_ns(), 0, 0)
        self._exchange = Exchange(said=nowhere)  # at first one in which nothing is said: a greeting's
        self._next: Exchange | None = None  # begins when its first sample is captured
        self._before: Exchange | None = None  # of which a late event may still come
        self._came = asyncio.Event()
        self._newest_ns = clock.now_ns()

    # The two tasks.

    async def read(self) -> None:
        """Until the line is closed."""
        for came_ns, early in self.opened.early:
            await self._take(early, came_ns)
        self.opened.early.clear()
        while True:
            try:
                text = await self._wire.receive()
            except LineLostError as error:
                self._lose(error)
                return
            at_ns = self._clock.now_ns()
            if (event := read_event(text)) is not None:
                await self._take(event, at_ns)
                self._newest_ns = at_ns
                self._came.set()

    async def speak(self) -> None:
        """Send the microphone's frames until the line is closed."""
        try:
            await self._microphone.run()
        except LineLostError as error:
            self._lose(error)

    def _pack(self, data: bytes) -> Callable[[], Awaitable[None]]:
        sound = b64encode(data).decode("ascii")
        return partial(self._wire.send, f'{{"type":"input_audio_buffer.append","audio":"{sound}"}}')

    async def _send(self, event: Json) -> None:
        try:
            await self._wire.send(json.dumps(event))
        except LineLostError as error:
            self._lose(error)

    def _lose(self, error: LineLostError) -> None:
        self.lost = self.lost or error.message
        self.is_refused = self.is_refused or error.close_code == TRY_LATER
        for exchange in (self._exchange, self._next):
            if exchange is not None:
                exchange.lost = self.lost
        self._came.set()

    # What the server says.

    async def _take(self, event: Json, at_ns: int) -> None:
        self._move_on(at_ns)
        exchange, kind = self._exchange, event["type"]
        self.is_refused = self.is_refused or is_full(event)
        if kind == "input_audio_buffer.speech_started":
            await self._stop_listening(exchange, at_ns)
        if kind == TIMELINE:
            exchange.take_stages(event)
        elif kind in {"conversation.item.truncated", "conversation.item.retrieved"}:
            await self._note_kept(exchange, event)
        elif self._before is not None and self._before.is_known(event):
            self._before.take(event, at_ns, self._speaker, self.opened.heard)
        else:
            exchange.take(event, at_ns, self._speaker, self.opened.heard)

    def _move_on(self, at_ns: int) -> None:
        """An exchange begins with its clip's first sample; what comes from then on belongs to it."""
        if self._next is not None and at_ns >= self._next.said.started_ns:
            self._before, self._exchange, self._next = self._exchange, self._next, None

    async def _stop_listening(self, exchange: Exchange, at_ns: int) -> None:
        """Playback stops, and the server is told how much was heard: all that came, if it had fallen silent before."""
        sound = self._speaker.stop(at_ns)
        if sound is None and exchange.stop is None:
            sound = exchange.broken_off
        if sound is None:
            return
        stop = Stop(at_ns, sound)
        exchange.stop = exchange.stop or stop
        if self._manners.truncates:
            heard_ms = int(stop.heard_ms)
            cut = {"item_id": sound.item, "content_index": 0, "audio_end_ms": heard_ms}
            await self._send({"type": "conversation.item.truncate", **cut})

    async def _note_kept(self, exchange: Exchange, event: Json) -> None:
        """The server has truncated an item, or shows what it has kept of it."""
        stop = exchange.stop
        kept = kept_ms(event, stop.sound.item, self.opened.heard) if stop else None
        if stop is None or kept is None:
            return
        stop.kept_ms = kept
        if self._manners.checks_truncation and event["type"] == "conversation.item.truncated":
            await self._send({"type": "conversation.item.retrieve", "item_id": stop.sound.item})

    # What the caller does.

    async def quiet(self) -> None:
        """Return once the server has nothing to say: its greeting, or the rest of a reply, is over."""
        since_ns = self._clock.now_ns()
        while not self.lost:
            ends_ns = max(self._speaker.ends_ns, since_ns) + QUIET_NS
            over_ns = since_ns + LONGEST_GREETING_NS
            if not self._exchange.active or self._clock.now_ns() > self._newest_ns + 3 * SECOND_NS:
                over_ns = min(over_ns, ends_ns)
            if over_ns <= self._clock.now_ns():
                return
            await self._event_or(min(over_ns, self._clock.now_ns() + SECOND_NS))

    def say(self, speech: Speech, *, at_ns: int, over: bool = False) -> Exchange:
        """Begin to say a clip at that moment; `over`: over the reply that is being played, with a short run-up only."""
        lead_samples = speech.format.rate_hz * LEAD_MS // 1000 if over else None
        by_hand = str(self._manners.wishes.turn_detection) == BY_HAND
        then = self._commit if by_hand else None
        said = self._microphone.say(speech, at_ns=at_ns, lead_samples=lead_samples, then=then)
        talked_over = tuple(self._exchange.replies.values()) if over else ()
        if over:
            self._exchange.talked_over_ns = said.speech_ns
        self._next = Exchange(said=said, over=talked_over, lost=self.lost)
        return self._next

    async def _commit(self) -> None:
        """The caller ends the turn, where the server does not."""
        await self._send({"type": "input_audio_buffer.commit"})
        await self._send({"type": "response.create"})

    async def wait_over(self, exchange: Exchange, patience: Patience, *, until_ns: int | None = None) -> None:
        """Wait until a turn is over; where `until_ns` is given, not longer than that once it is answered."""
        while True:
            now_ns = self._clock.now_ns()
            self._move_on(now_ns)
            over_ns = self._over_ns(exchange, patience)
            answer_ns = exchange.answer.first_ns if exchange.answer else None
            if until_ns is not None and answer_ns is not None:
                over_ns = min(over_ns, max(until_ns, answer_ns))
            if over_ns <= now_ns:
                return
            await self._event_or(over_ns)

    async def wait_heard(self, exchange: Exchange, ms: float, patience: Patience) -> int | None:
        """Wait until so much of the answer was heard: when that was; None if it is over before."""
        while True:
            now_ns = self._clock.now_ns()
            self._move_on(now_ns)
            over_ns = self._over_ns(exchange, patience)
            answer = exchange.answer
            first_ns = answer.first_ns if answer else None
            if answer is not None and first_ns is not None:
                wanted_ns = first_ns + round(ms * MILLISECOND_NS)
                goes_on = answer in exchange.active or self._speaker.is_playing(max(now_ns, wanted_ns))
                if now_ns >= wanted_ns:
                    return wanted_ns if goes_on else None
                over_ns = min(over_ns, wanted_ns)
            if over_ns <= now_ns:
                return None
            await self._event_or(over_ns)

    def _over_ns(self, exchange: Exchange, patience: Patience) -> int:
        return patience.over_ns(exchange, ends_ns=self._speaker.ends_ns, newest_ns=self._newest_ns)

    async def _event_or(self, deadline_ns: int) -> None:
        """Until something comes, or until then."""
        self._came.clear()
        try:
            async with asyncio.timeout(max(0, deadline_ns - self._clock.now_ns()) / SECOND_NS):
                await self._came.wait()
        except TimeoutError:
            return
