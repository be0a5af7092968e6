"""Sound at one rate -> the same sound at another, chunk by chunk, as if it had been resampled in one go.

soxr removes its filter's delay itself: output sample k always stands for input sample k * from_hz / to_hz. What the
filter costs is waiting: it holds input back until it can work on a block. `held_samples` says how much.
Units: mono float32; positions are Python ints, which do not overflow. soxr counts in 64 bits (checked past 2**31).
Threads: an object belongs to one caller; `push` computes in place (a 20 ms frame costs well under 0.1 ms).
What it does not know: channels; see pcm.downmix.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import soxr

from antiphon.audio.rate import checked_rate
from antiphon.core.clock import samples_to_ns
from antiphon.core.errors import CallerError
from antiphon.core.flow import AudioFrame

if TYPE_CHECKING:
    from antiphon.core.flow import Pcm

Quality: TypeAlias = Literal["LQ", "HQ"]

# Input held back after a push, the same for frames of 5, 10, 20 and 32 ms (mean / most, ms):
#                  QQ          LQ            MQ            HQ            VHQ
#   48 -> 16 kHz   0.0 / 0.0   11.2 / 20.0   21.4 / 37.6   21.3 / 36.6   42.9 / 76
#   24 -> 48 kHz   0.1 / 0.1   10.7 / 20.4   21.3 / 39.3   21.3 / 38.3   21.2 / 37
#    8 -> 16 kHz   0.2 / 0.3   32.5 / 61.2   64.0 / 118    63.8 / 115    64.1 / 111
# QQ has no filter: what should vanish comes back at -6 dBFS. LQ folds back below -115 dBFS and errs below -40 dBFS
# up to 0.72 of the lower rate's half (5.8 kHz at 16 kHz), below -100 dBFS up to 0.65; above it rolls off. soxr's
# variable-rate mode holds a constant 10 to 15 ms with a flat passband, but is marked experimental and lies 0.1 ms off.
LIVE_QUALITY: Quality = "LQ"
FILE_QUALITY: Quality = "HQ"  # where nobody waits: errs below -65 dBFS up to 0.9 of the lower rate's half


class Resampler:
    """One stream of mono samples; any cut into chunks gives the same samples."""

    def __init__(self, from_hz: int, to_hz: int, *, quality: Quality = LIVE_QUALITY) -> None:
        """Begin a stream.

        Raises:
            CallerError: a rate that no sound has.
        """
        self.from_hz = checked_rate(from_hz)
        self.to_hz = checked_rate(to_hz)
        self._pushed = 0
        self._given = 0
        same = from_hz == to_hz
        self._stream = None if same else soxr.ResampleStream(from_hz, to_hz, 1, dtype="float32", quality=quality)

    @property
    def held_samples(self) -> int:
        """How many input samples are pushed but not yet in any output, rounded down."""
        return self._pushed - -(-self._given * self.from_hz // self.to_hz)

    def push(self, pcm: Pcm) -> Pcm:
        """The next samples at the new rate, possibly none; with equal rates `pcm` itself."""
        self._pushed += len(pcm)
        return self._resampled(pcm, last=False)

    def flush(self) -> Pcm:
        """What was held back; the next push begins a new stream."""
        tail = self._resampled(np.zeros(0, np.float32), last=True)
        if self._stream is not None:
            self._stream.clear()
        self._pushed = self._given = 0
        return tail

    def _resampled(self, pcm: Pcm, *, last: bool) -> Pcm:
        if self._stream is None:
            self._given += len(pcm)
            return pcm
        given: Pcm = self._stream.resample_chunk(np.ascontiguousarray(pcm, np.float32), last=last)
        self._given += len(given)
        return given


@dataclass(frozen=True, slots=True)
class _Anchor:
    """Where an input frame begins, and when it was captured."""

    pos_samples: int
    captured_ns: int


class FrameResampler:
    """The frames of one stream, at another rate.

    Position p at the old rate becomes p * to / from, rounded once where a run of sound begins; inside a run frames lie
    end to end. Where the input's position jumps (sound was lost), the run is flushed and a new one begins at the
    matching position, so that a gap stays a gap. Each frame's `captured_ns` is that of the very sample it begins with,
    counted from the nearest input frame before, so that the capture clock's drift is carried over.
    """

    def __init__(self, from_hz: int, to_hz: int, *, quality: Quality = LIVE_QUALITY) -> None:
        """Begin a stream.

        Raises:
            CallerError: a rate that no sound has.
        """
        self._resampler = Resampler(from_hz, to_hz, quality=quality)
        self._anchors: deque[_Anchor] = deque()  # of the input that is still held, and one before
        self._next_in: int | None = None  # the input position that would join without a gap; None before the first
        self._next_out = 0
        self._run_in = 0  # where the run began, at both rates
        self._run_out = 0

    @property
    def held_ns(self) -> int:
        """How much sound is held back."""
        return samples_to_ns(self._resampler.held_samples, self._resampler.from_hz)

    def push(self, frame: AudioFrame) -> tuple[AudioFrame, ...]:
        """The frames that are complete by now: none, one, or two when a run of sound ends here.

        Raises:
            CallerError: the frame has another rate, or begins before the last one ended.
        """
        if frame.rate_hz != self._resampler.from_hz:
            raise CallerError(
                f"a frame at {frame.rate_hz} Hz in a stream at {self._resampler.from_hz} Hz",
                hint="open one FrameResampler per rate",
            )
        if self._next_in is not None and frame.pos_samples < self._next_in:
            raise CallerError(
                f"a frame at position {frame.pos_samples} where {self._next_in} was due",
                hint="frames of one stream must come in order; open a FrameResampler per stream",
            )
        ended = self.flush() if frame.pos_samples != self._next_in else ()
        if not self._anchors:
            self._begin(frame.pos_samples)
        self._anchors.append(_Anchor(frame.pos_samples, frame.captured_ns))
        self._next_in = frame.end_samples
        return ended + self._framed(self._resampler.push(frame.pcm))

    def flush(self) -> tuple[AudioFrame, ...]:
        """What was held back, as one frame or none; the next push may begin anywhere further on."""
        tail = self._framed(self._resampler.flush()) if self._anchors else ()
        self._anchors.clear()
        return tail

    def _begin(self, pos_samples: int) -> None:
        self._run_in = pos_samples
        scaled = (pos_samples * self._resampler.to_hz + self._resampler.from_hz // 2) // self._resampler.from_hz
        # A run's last sample may be rounded up onto the place where the next run, a sample later, would begin.
        self._run_out = self._next_out = max(scaled, self._next_out)

    def _framed(self, pcm: Pcm) -> tuple[AudioFrame, ...]:
        if not len(pcm):
            return ()
        frame = AudioFrame(pcm, self._resampler.to_hz, self._next_out, self._captured_ns(self._next_out))
        self._next_out = frame.end_samples
        return (frame,)

    def _captured_ns(self, pos_out: int) -> int:
        """When output sample `pos_out` was captured; forgets the input frames before it."""
        from_hz, to_hz = self._resampler.from_hz, self._resampler.to_hz
        ahead = (pos_out - self._run_out) * from_hz  # input samples since the run began, times to_hz
        while len(self._anchors) > 1 and (self._anchors[1].pos_samples - self._run_in) * to_hz <= ahead:
            self._anchors.popleft()
        anchor = self._anchors[0]
        since = ahead - (anchor.pos_samples - self._run_in) * to_hz
        return anchor.captured_ns + samples_to_ns(since, from_hz * to_hz)


def resample(pcm: Pcm, from_hz: int, to_hz: int) -> Pcm:
    """A whole clip at another rate, for files and voices that nobody waits for.

    Raises:
        CallerError: a rate that no sound has.
    """
    resampler = Resampler(from_hz, to_hz, quality=FILE_QUALITY)
    return np.concatenate([resampler.push(pcm), resampler.flush()])
