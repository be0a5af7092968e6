"""A reply's frames in -> Opus packets out by the media clock: the track that a client hears.

Threads: the event loop; a packet takes about 0.25 ms to encode. What it does not know: responses.
"""

from __future__ import annotations

import asyncio
from fractions import Fraction
from typing import TYPE_CHECKING

import av
from aiortc.mediastreams import MediaStreamError, MediaStreamTrack

from antiphon.audio.resample import Resampler
from antiphon.core.clock import SECOND_NS
from antiphon.serve.webrtc.opus import RATE_HZ, RATES_HZ, SILENCE, OpusEncoder
from antiphon.serve.webrtc.pacing import SLOT_MS, MediaClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from antiphon.core.clock import Clock
    from antiphon.core.flow import AudioFrame, Pcm
    from antiphon.serve.webrtc.pacing import Slot

OTHER_VOICES_HZ = 24_000  # what a voice is brought to whose rate Opus does not have
FADING_SLOTS = 5  # that the encoder is given behind a reply, before silence is sent ready-made
SLOT_TICKS = RATE_HZ * SLOT_MS // 1000
TICK = Fraction(1, RATE_HZ)


class ReplyTrack(MediaStreamTrack):
    """One call's."""

    kind = "audio"

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._pace = MediaClock(rate_hz=OTHER_VOICES_HZ, start_ns=clock.now_ns())
        self._encoder = OpusEncoder(OTHER_VOICES_HZ)
        self._rate_hz = OTHER_VOICES_HZ
        self._resampler = Resampler(OTHER_VOICES_HZ, OTHER_VOICES_HZ)
        self._fading = 0
        self._news = asyncio.Event()
        self._when_sent: list[Callable[[], None]] = []
        self._has_begun = False

    def play(self, frame: AudioFrame) -> None:
        if frame.rate_hz != self._resampler.from_hz:
            self._change(frame.rate_hz)
        self._pace.push(self._resampler.push(frame.pcm))
        self._news.set()

    def clear(self) -> None:
        self._resampler.flush()
        self._pace.clear()
        self._when_sent.clear()

    def when_sent(self, tell: Callable[[], None]) -> None:
        self._pace.push(self._resampler.flush())
        if self._pace.is_empty:
            tell()
        else:
            self._when_sent.append(tell)

    async def recv(self) -> av.Packet:
        """The next packet, when it is due.

        Raises:
            MediaStreamError: the track has ended.
        """
        if not self._has_begun:  # the far end can hear from here on; nothing was lost before
            self._has_begun = True
            self._pace.start(self._clock.now_ns())
        while True:
            if self.readyState != "live":
                raise MediaStreamError
            self._news.clear()
            slot = self._pace.take(self._clock.now_ns())
            if slot is not None:
                return self._packet(slot)
            await self._sleep_until(self._pace.next_ns)

    def _packet(self, slot: Slot) -> av.Packet:
        packet = av.Packet(self._encoded(slot.pcm))
        packet.pts = slot.number * SLOT_TICKS
        packet.time_base = TICK
        if self._pace.is_empty and self._when_sent:
            waiting, self._when_sent = self._when_sent, []
            for tell in waiting:
                tell()
        return packet

    def _encoded(self, pcm: Pcm | None) -> bytes:
        if pcm is not None:
            self._fading = FADING_SLOTS
            return self._encoder.encode(pcm)
        if self._fading:
            self._fading -= 1
            return self._encoder.silence()
        return SILENCE

    def _change(self, rate_hz: int) -> None:
        self._rate_hz = rate_hz if rate_hz in RATES_HZ else OTHER_VOICES_HZ
        self._resampler = Resampler(rate_hz, self._rate_hz)
        self._encoder = OpusEncoder(self._rate_hz)
        self._pace.change_rate(self._rate_hz)

    async def _sleep_until(self, moment_ns: int) -> None:
        delay_s = max(0.0, (moment_ns - self._clock.now_ns()) / SECOND_NS)
        timer = asyncio.get_running_loop().call_later(delay_s, self._news.set)
        try:
            await self._news.wait()
        finally:
            timer.cancel()
