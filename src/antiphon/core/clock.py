"""Time as int nanoseconds of one monotonic clock, and the only conversion between time and samples.

Units: ns and samples, both int. Threads: every function may be called from any thread.
Wall-clock time is deliberately unknown here: it steps, and a step must not bend a latency.
"""

from __future__ import annotations

import time
from typing import Protocol

SECOND_NS = 1_000_000_000
MILLISECOND_NS = 1_000_000


class Clock(Protocol):
    """The one source of time; tests put a virtual one in its place."""

    def now_ns(self) -> int:
        """Nanoseconds since an arbitrary origin, never decreasing."""
        ...


class MonotonicClock:
    """The machine's monotonic clock, the same for all processes since boot."""

    def now_ns(self) -> int:
        return time.monotonic_ns()


def samples_to_ns(samples: int, rate_hz: int) -> int:
    """How long `samples` last at `rate_hz`, rounded to the nearest nanosecond."""
    return (samples * SECOND_NS + rate_hz // 2) // rate_hz


def ns_to_samples(ns: int, rate_hz: int) -> int:
    """How many samples fit into `ns` at `rate_hz`, rounded to the nearest sample."""
    return (ns * rate_hz + SECOND_NS // 2) // SECOND_NS
