"""The periods of a blocking, ALSA-like reader in -> frames that lie where and when they were heard.

Positions lie as timeline.py has them: end to end, but for a jump where the device lost sound. `overruns` and
`lost_samples` count it.
Units: samples per channel in Python ints, which do not overflow. Threads: `read` blocks as long as the device's read
and belongs to the capture thread; it neither raises nor logs about faulty data. The counters may be read from anywhere.
What it does not know: which device this is, and when to reopen it; what the device's read raises passes through.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from antiphon.audio.encoding import Encoding
from antiphon.audio.pcm import PcmDecoder
from antiphon.audio.rate import checked_rate
from antiphon.audio.timeline import Timeline
from antiphon.core.flow import AudioFrame

if TYPE_CHECKING:
    from collections.abc import Callable

    from antiphon.core.clock import Clock

OVERRUNS = frozenset({-errno.EPIPE, -86})  # 86 is Linux's ESTRPIPE: suspended; both mean that sound was lost
NOT_YET = -errno.EAGAIN  # nothing to read and nothing lost


class PeriodReader:
    """One opened capture device; `read` is its read, giving (length in samples or a negative errno, bytes)."""

    def __init__(
        self,
        read: Callable[[], tuple[int, bytes]],
        *,
        rate_hz: int,
        clock: Clock,
        encoding: Encoding | str = Encoding.INT16,
        channels: int = 1,
    ) -> None:
        """Take over an opened device.

        Raises:
            CallerError: unknown encoding, impossible rate or number of channels.
        """
        self.rate_hz = checked_rate(rate_hz)
        self.overruns = 0  # events that the device reported
        self.failures = 0  # other negative lengths: the device may be gone
        self.malformed = 0  # periods whose bytes do not fit their length
        self.lost_samples = 0  # by which positions have jumped
        self._read = read
        self._clock = clock
        self._decoder = PcmDecoder(encoding, channels=channels)
        self._timeline = Timeline(self.rate_hz)

    def read(self) -> AudioFrame | None:
        """The next period, or None when this read gave no sound: nothing there yet, or a fault."""
        length, data = self._read()
        if length <= 0:
            self._note(length)
            return None
        place = self._timeline.place(length, self._clock.now_ns())
        block_bytes = self._decoder.block_bytes
        if len(data) != length * block_bytes:
            self.malformed += 1
        # Every period begins with a whole sample, so a dangling byte is junk here, not the first half of the next one.
        pcm = self._decoder.push(data[: min(length, len(data) // block_bytes) * block_bytes])
        self.lost_samples += place.lost_samples + length - len(pcm)
        return AudioFrame(pcm, self.rate_hz, place.pos_samples, place.captured_ns) if len(pcm) else None

    @property
    def nonfinite_samples(self) -> int:
        """NaN and Inf that were replaced by 0."""
        return self._decoder.nonfinite_samples

    @property
    def clipped_samples(self) -> int:
        """Float samples outside [-1, 1] that were clipped."""
        return self._decoder.clipped_samples

    def _note(self, length: int) -> None:
        """A read without sound; what bytes came with it are junk."""
        if length in OVERRUNS:
            self.overruns += 1
            self._timeline.break_off()
        elif length not in {0, NOT_YET}:
            self.failures += 1
            self._timeline.break_off()
