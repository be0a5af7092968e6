"""How many samples a device gave, and when it was asked -> where they lie in its stream, and when they were captured.

Positions lie end to end with one exception: where the device lost sound, the next position jumps forward by what is
missing, worked out from the clock, so that the stream is never silently shortened.
Units: samples per channel, ns. Threads: one at a time. Pure: time comes in.
"""

from __future__ import annotations

from typing import NamedTuple

from antiphon.core.clock import ns_to_samples, samples_to_ns

DRIFT_MAX_PPM = 500  # a sound card's crystal errs by at most 100 to 200


class Place(NamedTuple):
    """Where a period lies."""

    pos_samples: int
    captured_ns: int  # of its first sample
    lost_samples: int  # that are missing before it


class Timeline:
    """One stream, from its first period on."""

    def __init__(self, rate_hz: int) -> None:
        self.rate_hz = rate_hz
        self.pos_samples = 0  # of the next sample
        self._end_ns: int | None = None  # when the last sample before it was captured, as far as we can tell
        self._broken = False  # sound was lost since the last good period

    def break_off(self) -> None:
        """The device lost sound: the next period ends when it is there, and what is missing before it is a gap."""
        self._broken = True

    def place(self, length: int, now_ns: int) -> Place:
        """Of the next `length` samples, whose last one was there by `now_ns`."""
        period_ns = samples_to_ns(length, self.rate_hz)
        lost = 0
        if self._end_ns is None:
            end_ns = now_ns
        elif self._broken:
            # The device starts afresh after it lost sound, so this period ends now; the time in between has no sound.
            missing_ns = max(0, now_ns - period_ns - self._end_ns)
            lost = ns_to_samples(missing_ns, self.rate_hz)
            end_ns = self._end_ns + missing_ns + period_ns
        else:
            # A read returns at or after the end of its period. Early against our reckoning: the reckoning was late.
            # Late: mostly our thread, rarely a slow crystal; follow as fast as a crystal can err, and no faster.
            due_ns = self._end_ns + period_ns
            slack_ns = period_ns * DRIFT_MAX_PPM // 1_000_000
            end_ns = min(now_ns, due_ns + slack_ns)
        place = Place(self.pos_samples + lost, end_ns - period_ns, lost)
        self.pos_samples += lost + length
        self._end_ns = end_ns
        self._broken = False
        return place

    def move_to(self, rate_hz: int) -> None:
        """The device came back at another rate: positions go on at that rate from the same moment."""
        self.pos_samples = -(-self.pos_samples * rate_hz // self.rate_hz)
        self.rate_hz = rate_hz
        self._broken = True
