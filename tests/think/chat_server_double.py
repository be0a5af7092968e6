"""Language models' servers that do what a test tells them to: one on loopback, and one without any network.

A script is a function from a request to what is done about it, in order: bytes are sent as they are, a number is
seconds to wait. `reply` and `refusal` make the bytes of proper responses.
"""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Self, TypeAlias

import httpx2

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from types import TracebackType


class Act(Enum):
    """What a script can do besides sending and waiting."""

    CLOSE = "close the connection"
    RESET = "reset the connection"


class _ByScript(Exception):  # noqa: N818 - no error, but the script's wish
    """The connection ends because the script says so."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]  # names in lower case
    body: dict[str, object]


Script: TypeAlias = "Callable[[Asked], Sequence[bytes | float | Act]]"

EVENTS = "text/event-stream"
JSON = "application/json"


def event(data: object) -> bytes:
    """One event of a stream."""
    return b"data: " + (data if isinstance(data, bytes) else json.dumps(data, ensure_ascii=False).encode()) + b"\n\n"


def delta(finish: str | None = None, **fields: object) -> dict[str, object]:
    """A piece of a reply."""
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def said(*pieces: str, finish: str | None = "stop") -> list[bytes]:
    """The events of a whole reply."""
    events = [event(delta(content=piece)) for piece in pieces]
    return [*events, event(delta(finish=finish)), event(b"[DONE]")] if finish else events


def head(status: int = 200, kind: str = EVENTS, **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"Content-Type: {kind}", "Transfer-Encoding: chunked"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def part(data: bytes) -> bytes:
    """One part of a body that comes in parts."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n" if data else b""


LAST_PART = b"0\r\n\r\n"


def reply(*events: bytes | float) -> list[bytes | float | Act]:
    """A streamed response."""
    return [head(), *(one if isinstance(one, float) else part(one) for one in events), LAST_PART]


def whole(body: object, status: int = 200, kind: str = JSON, **headers: str) -> list[bytes | float | Act]:
    """A response in one go."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return [head(status, kind, **headers), part(data), LAST_PART]


MODELS = whole({"object": "list", "data": [{"id": "double"}]})


@dataclass(slots=True)
class LoopbackServer:
    """Runs in a thread of its own, so that a test's loop may come and go; a context manager."""

    script: Script
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0
    heard: threading.Event = field(default_factory=threading.Event)  # a request
    gone: threading.Event = field(default_factory=threading.Event)  # a client left in the middle of a response
    url: str = ""
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    _thread: threading.Thread | None = None
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._loop.run_forever, name="loopback-double")
        self._thread.start()
        starting = asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._server = asyncio.run_coroutine_threadsafe(starting, self._loop).result(10)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._thread is not None
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        at_work: tuple[asyncio.Future[object], ...] = ()
        try:
            first = await reader.read(1)
            while first:
                asked = await _read(reader, first)
                self.asked.append(asked)
                self.heard.set()
                following = asyncio.ensure_future(reader.read(1))
                acting = asyncio.ensure_future(_act(self.script(asked), writer))
                at_work = (following, acting)
                await asyncio.wait({following, acting}, return_when=asyncio.FIRST_COMPLETED)
                if not acting.done():
                    self.gone.set()
                    return
                acting.result()
                first = await following
        except ConnectionError:
            self.gone.set()
        except (_ByScript, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            for one in at_work:
                one.cancel()
            await asyncio.gather(*at_work, return_exceptions=True)
            self._tasks.discard(task)
            writer.close()


async def _read(reader: asyncio.StreamReader, first: bytes) -> Asked:
    lines = (first + await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    method, path, _ = lines[0].split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)}
    content = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(method, path, headers, json.loads(content) if content else {})


async def _act(acts: Sequence[bytes | float | Act], writer: asyncio.StreamWriter) -> None:
    for act in acts:
        match act:
            case bytes():
                writer.write(act)
                await writer.drain()
            case Act.CLOSE:
                writer.close()
                raise _ByScript
            case Act.RESET:
                writer.transport.abort()
                raise _ByScript
            case _:
                await asyncio.sleep(act)


class NoNetwork(httpx2.AsyncBaseTransport):
    """The same scripts without a socket, for a loop of virtual time; the status line is read, parts are not."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.asked: list[Asked] = []
        self.closed = 0  # responses

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        content = await request.aread()
        headers = {name.lower(): value for name, value in request.headers.items()}
        asked = Asked(request.method, request.url.path, headers, json.loads(content) if content else {})
        self.asked.append(asked)
        acts = list(self._script(asked))
        while acts and not isinstance(acts[0], bytes):
            act = acts.pop(0)
            if isinstance(act, Act):
                raise httpx2.RemoteProtocolError("closed")
            await asyncio.sleep(act)
        lines = acts.pop(0).decode().strip().split("\r\n")
        given = [tuple(line.split(": ", 1)) for line in lines[1:] if not line.startswith("Transfer")]
        return httpx2.Response(int(lines[0].split(" ")[1]), headers=given, stream=_Body(self, acts))


class _Body(httpx2.AsyncByteStream):
    def __init__(self, server: NoNetwork, acts: Sequence[bytes | float | Act]) -> None:
        self._server = server
        self._acts = acts

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for act in self._acts:
            if isinstance(act, Act):
                raise httpx2.ReadError("reset") if act is Act.RESET else httpx2.RemoteProtocolError("closed")
            if isinstance(act, bytes):
                if act != LAST_PART:
                    yield act.split(b"\r\n", 1)[1][:-2]
            else:
                await asyncio.sleep(act)

    async def aclose(self) -> None:
        self._server.closed += 1


def parrot(asked: Asked) -> list[bytes | float | Act]:
    """A server as kind as they come: says again what it was told, and judges a sentence by its last word."""
    if asked.path.endswith("/models"):
        return MODELS
    messages = asked.body["messages"]
    assert isinstance(messages, list)
    text = str(messages[-1]["content"])
    if asked.body.get("continue_final_message"):
        likely = (
            [(" a", -0.05)] if text.rsplit(maxsplit=1)[-1] in {"with", "of"} else [(".", -0.3), ("<|im_end|>", -3.0)]
        )
        top = [{"token": token, "logprob": odds} for token, odds in likely]
        return whole({"choices": [{"logprobs": {"content": [{"token": "x", "top_logprobs": top}]}}]})
    words = [f"{' ' if index else ''}{word}" for index, word in enumerate(f"You said: {text}".split(" "))]
    limit = asked.body["max_tokens"]
    assert isinstance(limit, int)
    events = said(*words[:limit])
    return reply(*(act for one in events for act in (0.002, one)))
