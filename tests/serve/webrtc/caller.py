"""A client of a call by WebRTC as a browser is one, by aiortc on the loopback; it hears packets as they come."""

from __future__ import annotations

import asyncio
import json
import re
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import httpx2 as httpx
import numpy as np
import pytest
from tests.serve.doubles import KEY

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

aiortc = pytest.importorskip("aiortc", reason="calls by WebRTC need the extra: scripts/setup webrtc")

RATE_HZ = 48_000
SLOT = RATE_HZ // 50
AUDIBLE = 0.01
SEEN_WITHIN_S = 15.0


class Microphone(aiortc.MediaStreamTrack):
    """Silence in real time, until something is to be said; `ppm` sets how much its clock is fast."""

    kind = "audio"

    def __init__(self, ppm: float = 0.0) -> None:
        super().__init__()
        self._said = np.zeros(0, np.float32)
        self._start_s: float | None = None
        self._at = 0
        self.said_by_s = 0.0  # monotonic; when the last of what was said had been captured
        self._pace = 1 - ppm / 1e6

    def say(self, seconds: float, *, level: float = 0.3) -> None:
        time_s = np.arange(round(seconds * RATE_HZ)) / RATE_HZ
        self.play((level * np.sin(2 * np.pi * 200 * time_s)).astype(np.float32))

    def play(self, pcm: np.ndarray) -> None:
        self._said = np.concatenate([self._said, pcm])

    async def recv(self) -> Any:
        import av

        if self._start_s is None:
            self._start_s = time.monotonic()
        due_s = self._start_s + (self._at + SLOT) / RATE_HZ * self._pace  # the last of it was just captured
        await asyncio.sleep(max(0, due_s - time.monotonic()))
        pcm, self._said = self._said[:SLOT], self._said[SLOT:]
        if len(pcm):
            self.said_by_s = due_s
        pcm = np.concatenate([pcm, np.zeros(SLOT - len(pcm), np.float32)])
        frame = av.AudioFrame.from_ndarray((pcm * 32767).astype(np.int16)[None], format="s16", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = RATE_HZ, self._at, Fraction(1, RATE_HZ)
        self._at += SLOT
        return frame


@dataclass
class Heard:
    """A packet that came."""

    at_s: float  # monotonic
    ticks: int
    peak: float


@dataclass
class Caller:
    """One call from the client's side."""

    connection: Any
    channel: Any
    microphone: Microphone
    location: str = ""
    events: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    packets: list[Heard] = field(default_factory=list)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def send(self, **event: Any) -> None:
        self.channel.send(json.dumps(event))

    def count(self, kind: str) -> int:
        return sum(event["type"] == kind for _, event in self.events)

    async def until(
        self, kind: str, *, count: int = 1, within_s: float = SEEN_WITHIN_S
    ) -> tuple[float, dict[str, Any]]:
        """The event that is the `count`th of this type, and when it came."""
        async with asyncio.timeout(within_s):
            while self.count(kind) < count:
                self._news.clear()
                await self._news.wait()
        return [(at_s, event) for at_s, event in self.events if event["type"] == kind][count - 1]

    def take(self, message: str) -> None:
        self.events.append((time.monotonic(), json.loads(message)))
        self._news.set()

    def sounding(self, since_s: float = 0.0) -> list[Heard]:
        return [heard for heard in self.packets if heard.peak > AUDIBLE and heard.at_s >= since_s]


class _Ear:
    def __init__(self, caller: Caller) -> None:
        from antiphon.serve.webrtc.opus import OpusDecoder

        self._caller, self._decoder = caller, OpusDecoder()

    def add(self, packet: Any) -> tuple[bool, None]:
        pcm = self._decoder.decode(packet._data)
        self._caller.packets.append(Heard(time.monotonic(), packet.timestamp, float(np.abs(pcm).max(initial=0))))
        return False, None


async def offered(microphone: Microphone | None = None) -> Caller:
    """A caller whose offer is made."""
    connection = aiortc.RTCPeerConnection(aiortc.RTCConfiguration(iceServers=[]))
    microphone = microphone or Microphone()
    caller = Caller(connection, connection.createDataChannel("oai-events"), microphone)
    caller.channel.on("message", caller.take)
    connection.addTrack(microphone)
    connection.getTransceivers()[0].receiver._RTCRtpReceiver__jitter_buffer = _Ear(caller)
    from antiphon.serve.webrtc.ice import Gathering

    offer = await connection.createOffer()
    ice = connection.getTransceivers()[0].receiver.transport.transport.iceGatherer._connection
    ice.get_component_candidates = Gathering(ice, range(1)).candidates
    await connection.setLocalDescription(offer)
    return caller


async def post(http: str, sdp: str, *, path: str = "/v1/realtime/calls", **headers: str) -> httpx.Response:
    async with httpx.AsyncClient() as web:
        headers = {"authorization": f"Bearer {KEY}", "content-type": "application/sdp"} | headers
        return await web.post(http + path, content=sdp.encode(), headers=headers)


@asynccontextmanager
async def calling(
    http: str,
    *,
    microphone: Microphone | None = None,
    through: Callable[[str], str] = lambda answer: answer,
    hide: bool = False,
    key: str = KEY,
    path: str = "/v1/realtime/calls",
) -> AsyncIterator[Caller]:
    """A call that is connected, until the context is left; `hide` offers no address, `through` changes the answer."""
    caller = await offered(microphone)
    try:
        offer = caller.connection.localDescription.sdp
        if hide:
            offer = re.sub(r"a=candidate:.*\r\n", "", offer)
        answer = await post(http, offer, path=path, authorization=f"Bearer {key}")
        assert answer.status_code == 201, answer.text
        caller.location = answer.headers["location"]
        description = aiortc.RTCSessionDescription(through(answer.text), "answer")
        await caller.connection.setRemoteDescription(description)
        await caller.until("session.created")
        yield caller
    finally:
        await caller.connection.close()
