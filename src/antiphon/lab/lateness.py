"""How late things were, one by one -> percentiles and the most, in bounded memory.

Values fall into bins of 0.05 ms, so a percentile is good to that; the most is exact. Beyond half a second all share
the last bin. Units: ns in, ms out. Threads: one at a time.
"""

from __future__ import annotations

from math import ceil
from typing import Final

from antiphon.core.clock import MILLISECOND_NS

BIN_NS: Final = MILLISECOND_NS // 20
BINS: Final = 10_000


class Lateness:
    """Of any number of events."""

    def __init__(self) -> None:
        self._bins = [0] * (BINS + 1)
        self.count = 0
        self.most_ns = 0

    def add(self, late_ns: int) -> None:
        """One more; earlier than due counts as on time."""
        late_ns = max(0, late_ns)
        self._bins[min(BINS, late_ns // BIN_NS)] += 1
        self.count += 1
        self.most_ns = max(self.most_ns, late_ns)

    def percentile_ms(self, percent: float) -> float:
        """The upper edge of the bin that holds the nearest rank, never above the most; 0 of nothing."""
        rank, seen = max(1, ceil(percent * self.count / 100)), 0
        for place, count in enumerate(self._bins):
            seen += count
            if seen >= rank and place < BINS:
                return min((place + 1) * BIN_NS, self.most_ns) / MILLISECOND_NS
        return self.most_ns / MILLISECOND_NS
