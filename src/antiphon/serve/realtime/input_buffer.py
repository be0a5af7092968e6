"""The caller's bytes in, frames at the rate of hearing out; and the last minute of them, to be looked up again.

The timeline is one for the whole session, whatever formats follow each other: positions count the samples at
HEARING_RATE_HZ of all that was ever appended. When a sample was captured is not known; it is taken to have been as
late as it can have been: the newest one of an append when the append arrived, those before it as much earlier as they
are long, but none before the newest one of the append before. So a client that sends in real time gets the times of
its microphone, a network that stalls and then catches up as well, and a client that sends a recording faster than it
plays gets the moment of sending, not times long gone.
Units: samples at HEARING_RATE_HZ, ns of the session's clock. Threads: the event loop.
What it does not know: turns.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from antiphon.audio.encoding import to_int16
from antiphon.audio.pcm import PcmDecoder
from antiphon.audio.resample import Resampler
from antiphon.core.clock import ns_to_samples, samples_to_ns
from antiphon.core.flow import HEARING_RATE_HZ, AudioFrame

if TYPE_CHECKING:
    import numpy.typing as npt

    from antiphon.core.clock import Clock
    from antiphon.core.flow import Pcm
    from antiphon.serve.realtime.formats import WireFormat

FRAME_SAMPLES = HEARING_RATE_HZ // 50
KEPT_SAMPLES = 60 * HEARING_RATE_HZ
_MOST_STAMPS = 8192  # frames; at 20 ms each well over a minute
_TICKS_PER_SAMPLE = 3  # 48 kHz holds a whole number of each rate's samples
SAMPLES_PER_MS = HEARING_RATE_HZ // 1000


class InputBuffer:
    """One caller's stream."""

    def __init__(self, wire_format: WireFormat, clock: Clock) -> None:
        self._clock = clock
        self._newest_ns = clock.now_ns()  # when the newest sample was captured
        self.end_samples = 0
        self._ticks = 0  # of TICKS_PER_SAMPLE, appended so far: exact for every rate, held back or not
        self._stamps: deque[tuple[int, int, int]] = deque(maxlen=_MOST_STAMPS)  # (captured_ns, position, length)
        self._kept: deque[tuple[int, npt.NDArray[np.int16]]] = deque()  # (position, samples)
        self._begin(wire_format)

    def duration_samples(self, size_bytes: int) -> int:
        """How much sound so many bytes are."""
        return size_bytes // self._decoder.block_bytes * HEARING_RATE_HZ // self._resampler.from_hz

    @property
    def appended_samples(self) -> int:
        """How much was appended, that included which the resampler holds back."""
        return self._ticks // _TICKS_PER_SAMPLE

    def push(self, data: bytes) -> list[AudioFrame]:
        """The frames that these bytes complete."""
        pcm = self._decoder.push(data)
        self._ticks += len(pcm) * (_TICKS_PER_SAMPLE * HEARING_RATE_HZ // self._resampler.from_hz)
        return self._framed(self._resampler.push(pcm))

    def take(self, frame: AudioFrame) -> list[AudioFrame]:
        """The same of a frame at HEARING_RATE_HZ whose moment of capture is known."""
        self._ticks += len(frame.pcm) * _TICKS_PER_SAMPLE
        frames = []
        for start in range(0, len(frame.pcm), FRAME_SAMPLES):
            run = frame.pcm[start : start + FRAME_SAMPLES]
            captured_ns = frame.captured_ns + samples_to_ns(start, HEARING_RATE_HZ)
            frames.append(self._placed(run, captured_ns))
        self._newest_ns = max(self._newest_ns, frame.end_ns)
        if len(frame.pcm):
            self._keep(frame.pcm)
        return frames

    def flush(self) -> list[AudioFrame]:
        """What was held back; the sound goes on behind it."""
        return self._framed(self._resampler.flush())

    def change(self, wire_format: WireFormat) -> list[AudioFrame]:
        """What follows is written otherwise; return what was held back of what went before."""
        self._decoder.finish()
        rest = self.flush()
        self._begin(wire_format)
        return rest

    def position_at(self, ns: int) -> int:
        """Which sample was captured at that moment, as far back as is remembered."""
        for captured_ns, position, length in reversed(self._stamps):
            if captured_ns <= ns:
                return position + min(length, ns_to_samples(ns - captured_ns, HEARING_RATE_HZ))
        return self._stamps[0][1] if self._stamps else 0

    def sound(self, start_samples: int, end_samples: int) -> npt.NDArray[np.int16]:
        """(samples,) what was heard between two positions, as far as it is kept."""
        runs = [
            pcm[max(0, start_samples - position) : max(0, end_samples - position)]
            for position, pcm in self._kept
            if position < end_samples and position + len(pcm) > start_samples
        ]
        return np.concatenate(runs) if runs else np.zeros(0, np.int16)

    def _begin(self, wire_format: WireFormat) -> None:
        self._decoder = PcmDecoder(wire_format.encoding)
        self._resampler = Resampler(wire_format.rate_hz, HEARING_RATE_HZ)

    def _framed(self, pcm: Pcm) -> list[AudioFrame]:
        floor_ns = self._newest_ns
        held_ns = samples_to_ns(self._resampler.held_samples, self._resampler.from_hz)
        self._newest_ns = max(floor_ns, self._clock.now_ns() - held_ns)
        frames = []
        for start in range(0, len(pcm), FRAME_SAMPLES):
            run = pcm[start : start + FRAME_SAMPLES]
            captured_ns = max(floor_ns, self._newest_ns - samples_to_ns(len(pcm) - start, HEARING_RATE_HZ))
            frames.append(self._placed(run, captured_ns))
        if len(pcm):
            self._keep(pcm)
        return frames

    def _placed(self, run: Pcm, captured_ns: int) -> AudioFrame:
        """A run with its place behind what went before."""
        frame = AudioFrame(run, HEARING_RATE_HZ, self.end_samples, captured_ns)
        self._stamps.append((captured_ns, self.end_samples, len(run)))
        self.end_samples += len(run)
        return frame

    def _keep(self, pcm: Pcm) -> None:
        self._kept.append((self.end_samples - len(pcm), to_int16(pcm)))
        while self._kept and self.end_samples - self._kept[0][0] - len(self._kept[0][1]) >= KEPT_SAMPLES:
            self._kept.popleft()


def to_ms(samples: int) -> int:
    """A position in the session's timeline, in milliseconds."""
    return samples // SAMPLES_PER_MS
