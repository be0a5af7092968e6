"""A client's offer in -> an answer, and a call: its events over a data channel, its sound over two tracks.

aiortc negotiates, encrypts and carries. Its own jitter buffer would hold sound back for 80 ms, and for 320 ms where a
packet was lost, so packets are taken from it before they get there (`incoming.py`).
Threads: the event loop; aiortc keeps a thread per call, which sleeps here.
What it does not know: who may call, and what the events say.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aiortc import (
    RTCConfiguration,
    RTCDataChannel,
    RTCIceServer,
    RTCPeerConnection,
    RTCRtpReceiver,
    RTCRtpTransceiver,
    RTCSessionDescription,
)

from antiphon.core.clock import SECOND_NS
from antiphon.core.errors import CallerError, MachineError
from antiphon.serve.channel import GoneError
from antiphon.serve.outbox import LONGEST_EVENT_BYTES
from antiphon.serve.webrtc.ice import Gathering, Reach, with_public
from antiphon.serve.webrtc.incoming import Incoming
from antiphon.serve.webrtc.jitter import Receipts, Sent
from antiphon.serve.webrtc.opus import LOOKAHEAD_SAMPLES, OpusDecoder, packet_samples
from antiphon.serve.webrtc.track import ReplyTrack

if TYPE_CHECKING:
    from collections.abc import Callable

    from antiphon.core.clock import Clock
    from antiphon.core.flow import AudioFrame
    from antiphon.serve.ending import Ending

CHANNEL = "oai-events"
CONNECT_S = 15.0  # from the answer until the data channel is open
MOST_UNREAD = 3000  # messages and frames of one client; a minute of sound
MOST_UNSENT_BYTES = 256 * 1024  # handed to the data channel; the rest waits outside, where it is bounded
MINDED_S = 1.0  # between two looks at what a call's packets have become
FLUSH_S = 1.0  # for the last events to arrive before the connection is closed
END_S = 3.0  # for the connection to close
USUAL_MESSAGE_BYTES = 65_536  # that a client takes who names no other size
WORKABLE = "offer one audio track and a data channel, as a browser's RTCPeerConnection makes them"


@dataclass(frozen=True, slots=True, kw_only=True)
class Toll:
    """What a call's packets have become since the last time it was told."""

    receipts: Receipts
    concealed_samples: int  # at 48 kHz
    jitter_ns: int


async def answer(offer: str, reach: Reach, *, clock: Clock, on_toll: Callable[[Toll], None]) -> tuple[Peer, str]:
    """A peer that waits for whoever made the offer, and the answer for them.

    Raises:
        CallerError: the offer is no session description, or lacks what a call needs.
        MachineError: no port is free.
    """
    connection = RTCPeerConnection(RTCConfiguration(iceServers=_servers(reach)))
    try:
        voice = await _negotiated(connection, offer)
        peer = Peer(connection, voice, clock=clock, on_toll=on_toll, longest_bytes=_longest_bytes(offer))
        for ice in _transports(connection):
            ice.get_component_candidates = Gathering(ice, reach.ports).candidates
        await connection.setLocalDescription(await connection.createAnswer())
        sdp = with_public(connection.localDescription.sdp, reach.public_address)
        _refuse_unreachable(sdp)
    except BaseException:
        await connection.close()
        raise
    return peer, sdp


async def _negotiated(connection: RTCPeerConnection, offer: str) -> RTCRtpTransceiver:
    """The transceiver of the client's audio."""
    if not offer.lstrip().startswith("v=0"):
        raise CallerError("sdp is no session description", hint="send what createOffer made, from v=0 on")
    if "m=application" not in offer:
        hint = f'call createDataChannel("{CHANNEL}") before createOffer'
        raise CallerError("sdp offers no data channel", hint=hint)
    # Browsers send an offer before they know their addresses. Whatever it lists, they reach us from where they are.
    offer = offer.replace("a=end-of-candidates", "a=x-end-of-candidates")
    try:
        await connection.setRemoteDescription(RTCSessionDescription(offer, "offer"))
    except Exception as error:  # the parser raises whatever it stumbles over
        raise CallerError("sdp cannot be read, or offers nothing that is held here", hint=WORKABLE) from error
    voices = [each for each in connection.getTransceivers() if each.kind == "audio"]
    if not voices:
        raise CallerError("sdp offers no audio", hint='add a microphone\'s track, or addTransceiver("audio")')
    opus = [codec for codec in RTCRtpReceiver.getCapabilities("audio").codecs if codec.mimeType.lower() == "audio/opus"]
    if "opus/48000" not in offer.lower():
        raise CallerError("sdp offers no Opus", hint="leave audio/opus among the codecs")
    voices[0].setCodecPreferences(opus)
    for each in connection.getTransceivers():
        each.direction = "sendrecv" if each is voices[0] else "inactive"
    return voices[0]


class Peer:
    """One client's end of a call: a `Channel`."""

    def __init__(
        self,
        connection: RTCPeerConnection,
        voice: RTCRtpTransceiver,
        *,
        clock: Clock,
        on_toll: Callable[[Toll], None],
        longest_bytes: int,
    ) -> None:
        self.track = ReplyTrack(clock)
        self.longest_bytes = longest_bytes
        self._connection = connection
        self._voice = voice
        self._clock = clock
        self._on_toll = on_toll
        self._told = (Receipts(), 0)
        self._incoming = Incoming(OpusDecoder(), lookahead_samples=LOOKAHEAD_SAMPLES)
        self._unread: asyncio.Queue[str | bytes | AudioFrame | None] = asyncio.Queue()
        self._timer: asyncio.TimerHandle | None = None  # for what waits in the jitter buffer
        self._channel: RTCDataChannel | None = None
        self._opened: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._room = asyncio.Event()
        self._is_gone = False
        voice.sender.replaceTrack(self.track)
        voice.receiver._RTCRtpReceiver__jitter_buffer = _Tap(self._arrive)  # noqa: SLF001 - see above
        connection.on("datachannel", self._meet)
        connection.on("connectionstatechange", self._look)

    # The channel.

    async def connect(self) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(CONNECT_S):
                return await asyncio.shield(self._opened)
        return False

    async def receive(self) -> str | bytes | AudioFrame | None:
        return None if self._is_gone and self._unread.empty() else await self._unread.get()

    async def send(self, text: str) -> None:
        if not await asyncio.shield(self._opened) or self._is_gone or self._channel is None:
            raise GoneError
        while self._channel.bufferedAmount > MOST_UNSENT_BYTES:
            self._room.clear()
            await self._room.wait()
            if self._is_gone:
                raise GoneError
        try:
            self._channel.send(text)
        except Exception as error:  # it closed just now
            raise GoneError from error

    async def close(self, ending: Ending) -> None:  # noqa: ARG002 - the last event has told why
        sctp = self._connection.sctp
        with suppress(TimeoutError):
            async with asyncio.timeout(FLUSH_S):
                while not self._is_gone and (sctp._data_channel_queue or sctp._outbound_queue or sctp._sent_queue):  # noqa: SLF001, ASYNC110 - aiortc tells nobody when all has arrived
                    await asyncio.sleep(0.005)
        await self.end()

    def cut(self) -> None:
        self._leave()

    # The call.

    async def mind(self) -> None:
        """Follow the round trip and tell what packets become, until cancelled."""
        while True:
            await asyncio.sleep(MINDED_S)
            for report in (await self._voice.sender.getStats()).values():
                round_trip_s = getattr(report, "roundTripTime", None)
                if round_trip_s is not None:
                    self._incoming.clock.set_network(round(round_trip_s * SECOND_NS / 2))
            self._tell_toll()

    async def end(self) -> None:
        """Close everything that belongs to the call; again is allowed."""
        self._leave()
        self._tell_toll()
        self.track.stop()
        with suppress(TimeoutError):  # where the loop itself ends, aiortc may wait for tasks that are gone
            async with asyncio.timeout(END_S):
                await self._connection.close()

    def _meet(self, channel: RTCDataChannel) -> None:
        if channel.label != CHANNEL or self._channel is not None:
            channel.close()
            return
        self._channel = channel
        channel.bufferedAmountLowThreshold = MOST_UNSENT_BYTES // 2
        channel.on("message", self._put)
        channel.on("close", self._leave)
        channel.on("bufferedamountlow", self._room.set)
        if not self._opened.done():
            self._opened.set_result(True)

    def _look(self) -> None:
        if self._connection.connectionState in {"failed", "closed"}:
            self._leave()

    def _leave(self) -> None:
        if self._is_gone:
            return
        self._is_gone = True
        if self._timer is not None:
            self._timer.cancel()
        if not self._opened.done():
            self._opened.set_result(False)
        self._room.set()
        self._unread.put_nowait(None)

    def _put(self, came: str | bytes | AudioFrame) -> None:
        if self._is_gone:
            return
        if self._unread.qsize() >= MOST_UNREAD:  # nobody sends so much who means to talk
            self._leave()
            return
        self._unread.put_nowait(came)

    def _arrive(self, seq: int, timestamp: int, payload: bytes) -> None:
        sent = Sent(seq, timestamp, packet_samples(payload), payload)
        if self._opened.done() and not self._is_gone and sent.samples:
            self._hear(self._incoming.arrive(sent, self._clock.now_ns()))

    def _hear(self, frames: list[AudioFrame]) -> None:
        for frame in frames:
            self._put(frame)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due_ns = self._incoming.next_ns
        if due_ns is not None:
            delay_s = max(0, due_ns - self._clock.now_ns()) / SECOND_NS
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._hear_waiting)

    def _hear_waiting(self) -> None:
        if not self._is_gone:
            self._hear(self._incoming.take(self._clock.now_ns()))

    def _tell_toll(self) -> None:
        now, concealed = self._incoming.receipts, self._incoming.concealed_samples
        before, concealed_before = self._told
        self._told = Receipts(now.played, now.lost, now.late, now.waited), concealed
        news = Receipts(
            now.played - before.played, now.lost - before.lost, now.late - before.late, now.waited - before.waited
        )
        jitter_ns = self._incoming.clock.jitter_ns
        self._on_toll(Toll(receipts=news, concealed_samples=concealed - concealed_before, jitter_ns=jitter_ns))


class _Tap:
    """Stands where aiortc keeps its jitter buffer, and lets nothing through to it."""

    def __init__(self, arrive: Callable[[int, int, bytes], None]) -> None:
        self._arrive = arrive

    def add(self, packet: Any) -> tuple[bool, None]:  # aiortc's interface
        self._arrive(packet.sequence_number, packet.timestamp, packet._data)  # noqa: SLF001 - the payload, unpacked
        return False, None


def _refuse_unreachable(sdp: str) -> None:
    if "a=candidate:" not in sdp:
        hint = "widen serve.webrtc_ports, or end calls"
        raise MachineError("no UDP port is free for this call", hint=hint, retryable=True)


def _transports(connection: RTCPeerConnection) -> set[Any]:
    """aioice's connections of a peer."""
    ends = [each.receiver.transport for each in connection.getTransceivers()]
    if connection.sctp is not None:
        ends.append(connection.sctp.transport)
    return {end.transport.iceGatherer._connection for end in ends}  # noqa: SLF001 - aiortc passes no ports on


def _servers(reach: Reach) -> list[RTCIceServer]:
    servers = [RTCIceServer(urls=reach.stun)] if reach.stun else []
    if reach.turn:
        servers.append(RTCIceServer(reach.turn, username=reach.turn_username, credential=reach.turn_password))
    return servers


def _longest_bytes(offer: str) -> int:
    for line in offer.splitlines():
        name, _, size = line.partition(":")
        if name == "a=max-message-size" and size.strip().isdigit():
            return min(int(size), LONGEST_EVENT_BYTES) or LONGEST_EVENT_BYTES  # 0: any size
    return USUAL_MESSAGE_BYTES
