"""A server whose engines are scripted and whose protocol is a few words long, on a real socket."""

from __future__ import annotations

import asyncio
import base64
import json
import signal
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from tests.session.call import Call as Caller
from tests.session.mind import mind
from websockets.asyncio.client import ClientConnection, connect

from antiphon.config import CapacitySettings, Config
from antiphon.core.flow import AudioFrame
from antiphon.runtime import Runtime
from antiphon.serve.metrics import Metrics
from antiphon.serve.reception import Offer
from antiphon.serve.server import House, Server, serve
from antiphon.serve_settings import ServeSettings
from antiphon.session.events import Event, ReplyAudio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from antiphon.serve.line import Send, Terms
    from antiphon.session import Session

RATE_HZ = 24_000
KEY = "a-key-for-tests"


class PlainLine:
    """A protocol in miniature: sound and texts to say come in, every event goes out by its name."""

    def __init__(self, session: Session, terms: Terms, send: Send) -> None:
        self._session = session
        self._terms = terms
        self._send = send
        self._fed = 0

    def begin(self) -> None:
        about = {"id": self._terms.id, "model": self._terms.model, "expires_at": self._terms.expires_at_s}
        self._send({"type": "session.created", "session": about})

    def take_gently(self, message: str | bytes) -> Iterator[None]:
        self.take(message)
        yield

    def take(self, message: str | bytes) -> None:
        try:
            said = json.loads(message)
            kind = said["type"]
        except (ValueError, TypeError, KeyError):
            self._send({"type": "error", "error": {"code": "invalid_message"}})
            return
        if kind == "session.update":
            self._send({"type": "session.updated", "session": said["session"]})
        elif kind == "input_audio_buffer.append":
            self._feed(base64.b64decode(said["audio"]))
        elif kind == "say":
            self._session.say(said["text"])
        elif kind == "flood":
            for number in range(said["count"]):
                self._send({"type": "flood", "number": number, "ballast": "x" * said["size"]})
        elif kind == "break":
            raise RuntimeError("the line broke over " + said["secret"])

    def tell(self, event: Event) -> None:
        if isinstance(event, ReplyAudio):
            pcm = (event.frame.pcm * 32767).astype("<i2").tobytes()
            self._send({"type": "response.output_audio.delta", "delta": base64.b64encode(pcm).decode()})
        else:
            self._send({"type": type(event).__name__})

    def fail(self, code: str, message: str) -> None:
        self._send({"type": "error", "error": {"code": code, "message": message}})

    def _feed(self, raw: bytes) -> None:
        pcm = np.frombuffer(raw, "<i2").astype(np.float32) / 32768
        self._session.feed(AudioFrame(pcm, RATE_HZ, self._fed, self._fed * 1_000_000_000 // RATE_HZ))
        self._fed += len(pcm)


def engines() -> Caller:
    """Scripted ears, mind and voice: a tone of two seconds is an order, and is answered at length."""
    words = ["Coming ", "right ", "up. ", *["And ", "something ", "more. "] * 8]
    return Caller(frames=[], mind=mind(words, first_s=0.2))


async def loaded(conversations: int) -> Runtime:
    return Runtime(engines().engines, conversations=conversations)


def house(
    settings: ServeSettings | None = None,
    *,
    conversations: int = 4,
    load: Callable[[], Awaitable[Runtime]] | None = None,
    pick_up: Callable[..., Any] = PlainLine,
    port: int = 0,
) -> House:
    """A server with doubles behind it, at any free port."""
    settings = replace(settings or ServeSettings(), port=port)
    return House(
        offer=Offer(models=("barista", "scripted"), voices=("tones",), settings=lambda _runtime: engines().settings),
        config=Config(serve=settings, capacity=CapacitySettings(conversations=conversations)),
        load=load or (lambda: loaded(conversations)),
        pick_up=pick_up,
        metrics=Metrics(),
    )


@dataclass
class Place:
    """A running server."""

    url: str
    server: Server
    house: House
    serving: asyncio.Task[tuple[int, bool]] = field(repr=False)

    @property
    def http(self) -> str:
        return self.url.replace("ws", "http", 1).removesuffix("/v1/realtime")

    def sample(self, name: str, **labels: str) -> float:
        return self.house.metrics.registry.get_sample_value(name, labels) or 0.0

    @property
    def open_sessions(self) -> int:
        return self.server.reception.open_sessions

    def stop(self, sig: int = signal.SIGTERM) -> None:
        self.server.handle_exit(sig, None)

    async def settle(self) -> None:
        """Until no conversation is open and no connection is left."""
        async with asyncio.timeout(8):
            while self.open_sessions or self.server.server_state.connections or self.server.server_state.tasks:  # noqa: ASYNC110
                await asyncio.sleep(0.01)


@asynccontextmanager
async def running(a_house: House) -> AsyncIterator[Place]:
    """Serve until the context is left."""
    ready: asyncio.Future[tuple[Server, str]] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve(a_house, on_ready=lambda server, url: ready.set_result((server, url))))
    await asyncio.wait([ready, serving], return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        serving.result()
    server, url = ready.result()
    place = Place(url, server, a_house, serving)
    try:
        yield place
    finally:
        if not server.should_exit:
            place.stop(signal.SIGINT)
        place.stop(signal.SIGINT)
        await serving


async def hear(client: ClientConnection, *kinds: str, within_s: float = 5.0) -> dict[str, Any]:
    """The client's next message of one of these types."""
    async with asyncio.timeout(within_s):
        while True:
            event: dict[str, Any] = json.loads(await client.recv())
            if event["type"] in kinds:
                return event


def caller(url: str, **options: Any) -> Any:
    """A client as a Python program is one; its key, if any, is the tests' own."""
    return connect(url, additional_headers={"Authorization": f"Bearer {KEY}"}, compression=None, **options)


def tone(seconds: float, *, level: float = 0.3) -> str:
    """An append of a tone, or of silence, that holds this long."""
    time_s = np.arange(round(seconds * RATE_HZ)) / RATE_HZ
    pcm = (level * 32767 * np.sin(2 * np.pi * 200 * time_s)).astype("<i2")
    audio = base64.b64encode(pcm.tobytes()).decode()
    return json.dumps({"type": "input_audio_buffer.append", "audio": audio})


SAY = json.dumps({"type": "say", "text": "Good morning, and welcome to our little shop."})
