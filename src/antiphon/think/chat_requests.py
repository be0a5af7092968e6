"""What all conversations with one server have in common: the model's name, how requests are put, and new tries.

Threads: everything on the event loop.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

from antiphon.core.errors import CallerError, PeerError
from antiphon.think.chat_failure import INSTEAD, ServerFailure, too_slow
from antiphon.think.chat_reply import DONE
from antiphon.think.event_stream import EventStream, SingleEvent
from antiphon.think.tool_assembly import is_object

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    import httpx2

    from antiphon.think.chat_line import ChatLine
    from antiphon.think.chat_reply import ReplyReader
    from antiphon.think.chat_settings import ChatServerSettings
    from antiphon.think.language_model import Written

COMPLETIONS = "/chat/completions"
REFUSED = frozenset({400, 404, 405, 422, 501})  # the server will never take such a request
LONGEST_PAUSE_S = 1.0  # before another try; whoever waits longer than this for a word has been left alone
_FIRST_PAUSE_S = 0.1  # doubled for each further one
_DRAIN_S = 0.1  # for what comes behind a reply's end; read whole, the connection can be used again


class ChatRequests:
    """Puts requests to the server."""

    def __init__(self, line: ChatLine, settings: ChatServerSettings) -> None:
        self.line = line
        self.settings = settings
        self.model = settings.model  # empty until the server was asked
        self._asking = asyncio.Lock()
        self._extra = settings.extra_fields()
        self._limit_name = "max_tokens"
        self._takes_temperature = True

    async def body(self, fields: Mapping[str, object], *, max_tokens: int, deadline: float) -> dict[str, object]:
        """A request's body.

        Raises: as `choose_model`.
        """
        await self.choose_model(deadline)
        sampling = {"temperature": self.settings.temperature} if self._takes_temperature else {}
        return {"model": self.model, **sampling, self._limit_name: max_tokens, **self._extra, **fields}

    async def choose_model(self, deadline: float) -> None:
        """Ask the server for its model, unless it is known.

        Raises:
            CallerError: there are several, and one must be chosen.
            EngineError: the line is closed.
            PeerError: the server does not say.
        """
        async with self._asking:
            if self.model:
                return
            hint = "set chat_server.model to the model's name"
            try:
                told = await self.line.whole("/models", None, deadline=deadline)
            except ServerFailure as failure:
                if failure.status in REFUSED:
                    failure.hint = f"{failure.hint}; or {hint}"
                raise
            listed = told.get("data")
            found = [one.get("id") for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
            names = [name for name in found if isinstance(name, str) and name]
            if not names:
                raise PeerError(f"{self.line.address.base} lists no model", hint=f"load one there, or {hint}")
            if len(names) > 1 and not self.line.address.is_own:
                some = ", ".join(names[:3])
                raise CallerError(f"{self.line.address.base} has {len(names)} models, such as {some}", hint=hint)
            self.model = names[0]

    async def reply(
        self, fields: Mapping[str, object], reader: Callable[[], ReplyReader], *, max_tokens: int, within_s: float
    ) -> AsyncGenerator[Written, None]:
        """A reply; it begins within `within_s`, whatever number of tries that takes.

        Raises:
            CallerError: as `choose_model`.
            EngineError: the line was closed.
            PeerError: the server failed, also in the middle of the reply.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within_s
        tries = 0
        while True:
            reading = reader()
            try:
                async with aclosing(self.attempt(fields, reading, max_tokens=max_tokens, deadline=deadline)) as pieces:
                    async for piece in pieces:
                        yield piece
            except ServerFailure as failure:
                if reading.began or not (self._adapts(failure) or failure.retryable):
                    raise
                pause_s = failure.pause_s if failure.pause_s is not None else _FIRST_PAUSE_S * 2**tries
                if failure.retryable:
                    tries += 1
                    late = loop.time() + pause_s >= deadline
                    if tries > self.settings.retries or pause_s > LONGEST_PAUSE_S or late:
                        raise
                    await asyncio.sleep(pause_s)
            else:
                return

    async def attempt(
        self, fields: Mapping[str, object], reading: ReplyReader, *, max_tokens: int, deadline: float
    ) -> AsyncGenerator[Written, None]:
        """One try; it begins by `deadline` on the loop's clock.

        Raises: as `reply`.
        """
        body = await self.body({**fields, "stream": True}, max_tokens=max_tokens, deadline=deadline)
        try:
            async with (
                self.line.response(COMPLETIONS, body, deadline=deadline) as response,
                aclosing(self._events(response, self._limit(reading, deadline))) as events,
            ):
                async for data in events:
                    for piece in reading.take(data):
                        yield piece
                        self.line.check()
        except TimeoutError:
            if not reading.is_over:
                raise self._silence(reading) from None
        except PeerError:
            if not reading.is_over:  # how the connection ends behind a whole reply does not matter
                raise
        reading.end()

    async def _events(self, response: httpx2.Response, limit: Callable[[], float]) -> AsyncGenerator[str, None]:
        kind = response.headers.get("content-type", "").lower()
        if "html" in kind:
            raise ServerFailure(
                f"{self.line.address.base} answers with a page for people",
                hint="check that it is the address of an OpenAI-compatible server; most want /v1 at its end",
            )
        events = SingleEvent() if "application/json" in kind else EventStream()
        async with aclosing(self.line.chunks(response, limit)) as chunks:
            async for chunk in chunks:
                for data in events.feed(chunk):
                    yield data
        for data in events.finish():
            if data == DONE or is_object(data):  # else the connection was cut within it
                yield data

    def _limit(self, reading: ReplyReader, deadline: float) -> Callable[[], float]:
        """By when the next bytes are due, by how far the reply has come."""
        loop = asyncio.get_running_loop()
        ended: list[float] = []

        def due() -> float:
            if reading.is_over:
                if not ended:
                    ended.append(loop.time())
                return ended[0] + _DRAIN_S
            return loop.time() + self.settings.stall_s if reading.began else deadline

        return due

    def _silence(self, reading: ReplyReader) -> ServerFailure:
        if reading.began:
            return too_slow("fell silent in the middle of a reply", self.settings.stall_s, "stall_s")
        return too_slow("was silent", self.settings.first_token_s, "first_token_s")

    def _adapts(self, failure: ServerFailure) -> bool:
        """Put requests another way from here on, if the server says that it wants that; once each."""
        if failure.status not in REFUSED:
            return False
        if failure.field == INSTEAD and self._limit_name != INSTEAD:
            self._limit_name = INSTEAD
            return True
        if failure.field == "temperature" and self._takes_temperature:
            self._takes_temperature = False
            return True
        return False
