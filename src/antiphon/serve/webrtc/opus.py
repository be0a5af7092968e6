"""Opus packets to samples and back, by libopus as PyAV brings it.

Units: float32 mono; a packet of ours holds 20 ms. Threads: an object belongs to one caller; encoding 20 ms takes about
0.25 ms, decoding 0.1 ms.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import av
import numpy as np

from antiphon.audio.encoding import to_int16

if TYPE_CHECKING:
    from antiphon.core.flow import Pcm

RATE_HZ = 48_000  # that RTP counts Opus by, and that it is decoded to
RATES_HZ = (8_000, 12_000, 16_000, 24_000, 48_000)  # that it can be made from
SILENCE = b"\xf8\xff\xfe"  # 20 ms of it
LOOKAHEAD_SAMPLES = 312  # the encoder's: a packet's sound lies so far behind its timestamp
_BITS_PER_S = 32_000  # a voice, full band
_LONGEST_SAMPLES = 5760  # of a packet: 120 ms


class OpusDecoder:
    """One stream's packets to 48 kHz."""

    def __init__(self) -> None:
        self._codec = av.CodecContext.create("libopus", "r")
        self._codec.format = "s16"
        self._codec.layout = "mono"
        self._codec.sample_rate = RATE_HZ

    def decode(self, payload: bytes) -> Pcm:
        """(samples,) that a packet holds.

        Raises:
            ValueError: it is no Opus.
        """
        try:
            frames = self._codec.decode(av.Packet(payload))
        except av.FFmpegError as error:
            raise ValueError("no Opus packet") from error
        pcm = [frame.to_ndarray().reshape(-1) for frame in frames]
        whole: Pcm = np.concatenate(pcm).astype(np.float32) / np.float32(2**15) if pcm else np.zeros(0, np.float32)
        return whole


class OpusEncoder:
    """A voice's 20 ms at a time to packets."""

    def __init__(self, rate_hz: int) -> None:
        self._rate_hz = rate_hz
        self._at = 0
        self._codec = av.CodecContext.create("libopus", "w")
        self._codec.bit_rate = _BITS_PER_S
        self._codec.format = "s16"
        self._codec.layout = "mono"
        self._codec.sample_rate = rate_hz
        self._codec.options = {"application": "voip", "frame_duration": "20", "compression_level": "5"}

    def encode(self, pcm: Pcm) -> bytes:
        """A packet of `pcm`, (20 ms,)."""
        frame = av.AudioFrame.from_ndarray(to_int16(pcm).reshape(1, -1), format="s16", layout="mono")
        frame.sample_rate = self._rate_hz
        frame.pts, self._at = self._at, self._at + len(pcm)
        frame.time_base = Fraction(1, self._rate_hz)
        packets = self._codec.encode(frame)
        return bytes(packets[0]) if packets else SILENCE

    def silence(self) -> bytes:
        """A packet of silence, in which what sounded before fades."""
        return self.encode(np.zeros(self._rate_hz // 50, np.float32))


def packet_samples(payload: bytes) -> int:
    """How much a packet holds, at 48 kHz; 0 if it is no Opus."""
    if not payload:
        return 0
    kind, code = payload[0] >> 3, payload[0] & 3
    if kind < 12:
        one = (480, 960, 1920, 2880)[kind % 4]
    elif kind < 16:
        one = (480, 960)[kind % 2]
    else:
        one = (120, 240, 480, 960)[kind % 4]
    count = (1, 2, 2, payload[1] & 0x3F if len(payload) > 1 else 0)[code]
    return one * count if one * count <= _LONGEST_SAMPLES else 0
