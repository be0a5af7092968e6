"""The periods of a blocking, ALSA-like reader in -> frames that lie where and when they were heard.

Positions lie end to end with one exception: where the device lost sound, the next frame's position jumps forward by
what is missing, worked out from the clock, so that the timeline is never silently shortened. `overruns` and
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
from antiphon.core.clock import ns_to_samples, samples_to_ns
from antiphon.core.flow import AudioFrame

if TYPE_CHECKING:
    from collections.abc import Callable

    from antiphon.core.clock import Clock

OVERRUNS = frozenset({-errno.EPIPE, -86})  # 86 is Linux's ESTRPIPE: suspended; both mean that sound was lost
NOT_YET = -errno.EAGAIN  # nothing to read and nothing lost
DRIFT_MAX_PPM = 500  # a sound card's crystal errs by at most 100 to 200


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
        self._pos_samples = 0  # of the next sample
        self._end_ns: int | None = None  # when the last sample before it was captured, as far as we can tell
        self._broken = False  # sound was lost since the last good period

    def read(self) -> AudioFrame | None:
        """The next period, or None when this read gave no sound: nothing there yet, or a fault."""
        length, data = self._read()
        if length <= 0:
            self._note(length)
            return None
        now_ns = self._clock.now_ns()
        start_ns = self._placed(length, now_ns)
        block_bytes = self._decoder.block_bytes
        if len(data) != length * block_bytes:
            self.malformed += 1
        # Every period begins with a whole sample, so a dangling byte is junk here, not the first half of the next one.
        pcm = self._decoder.push(data[: min(length, len(data) // block_bytes) * block_bytes])
        self.lost_samples += length - len(pcm)
        frame = AudioFrame(pcm, self.rate_hz, self._pos_samples, start_ns)
        self._pos_samples += length
        return frame if len(pcm) else None

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
            self._broken = True
        elif length not in {0, NOT_YET}:
            self.failures += 1
            self._broken = True

    def _placed(self, length: int, now_ns: int) -> int:
        """When a period of `length` samples that was read at `now_ns` began; moves the position over what was lost."""
        period_ns = samples_to_ns(length, self.rate_hz)
        if self._end_ns is None:
            end_ns = now_ns
        elif self._broken:
            # The device starts afresh after an overrun, so this period ends now; the time in between has no sound.
            missing_ns = max(0, now_ns - period_ns - self._end_ns)
            lost = ns_to_samples(missing_ns, self.rate_hz)
            self.lost_samples += lost
            self._pos_samples += lost
            end_ns = self._end_ns + missing_ns + period_ns
        else:
            # A read returns at or after the end of its period. Early against our reckoning: the reckoning was late.
            # Late: mostly our thread, rarely a slow crystal; follow as fast as a crystal can err, and no faster.
            due_ns = self._end_ns + period_ns
            slack_ns = period_ns * DRIFT_MAX_PPM // 1_000_000
            end_ns = min(now_ns, due_ns + slack_ns)
        self._end_ns = end_ns
        self._broken = False
        return end_ns - period_ns
