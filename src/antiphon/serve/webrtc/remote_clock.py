"""When a client's packets were sent by its clock and came by ours -> when its sound was captured, by ours.

The quickest packets of the last seconds show how the two clocks lie; whatever others took longer is the network's
jitter. As only seconds are looked back, a clock that runs a little fast or slow is followed.
What cannot be seen from packets alone is how long even the quickest took; `set_network` says it, if somebody knows.
Units: ns; of the client's clock since its stream began. Pure.
"""

from __future__ import annotations

from collections import deque

from antiphon.core.clock import MILLISECOND_NS, SECOND_NS

BUCKET_NS = SECOND_NS
LOOKED_BACK = 10  # buckets; a clock 100 ppm slow is followed to within a millisecond
DRIFT_BUCKETS = 120  # from which the drift is read
_DELAYS = 256  # of packets, for the quantile: five seconds at 20 ms
_QUANTILE = 0.95
_LEAST_DRIFT_NS = 20 * SECOND_NS


class RemoteClock:
    """One stream's."""

    def __init__(self) -> None:
        self._quickest: deque[tuple[int, int]] = deque(maxlen=DRIFT_BUCKETS)  # (bucket, least of ours less theirs)
        self._delays: deque[int] = deque(maxlen=_DELAYS)
        self._network_ns = 0

    def see(self, sent_ns: int, came_ns: int) -> None:
        """A packet left at `sent_ns` of its clock, and came at `came_ns` of ours."""
        lies_ns, bucket = came_ns - sent_ns, came_ns // BUCKET_NS
        if self._quickest and self._quickest[-1][0] >= bucket:
            last, least = self._quickest[-1]
            self._quickest[-1] = last, min(least, lies_ns)
        else:
            self._quickest.append((bucket, lies_ns))
        self._delays.append(lies_ns - self._offset_ns)

    def set_network(self, one_way_ns: int) -> None:
        """How long the quickest packets take, as far as it is known."""
        self._network_ns = max(0, one_way_ns)

    def here(self, sent_ns: int) -> int:
        """That moment of theirs, by our clock; `see` has been called before."""
        return sent_ns + self._offset_ns - self._network_ns

    @property
    def jitter_ns(self) -> int:
        """What 19 of 20 packets took at most, more than the quickest; 0 before the first."""
        if not self._delays:
            return 0
        return sorted(self._delays)[int(_QUANTILE * (len(self._delays) - 1))]

    @property
    def drift_ppm(self) -> float:
        """How much slower than ours their clock runs; 0 until 20 s have been seen."""
        if len(self._quickest) < 3:
            return 0.0
        # The edges' minima of a few buckets each: single ones hold more jitter than drift.
        edge = max(1, min(LOOKED_BACK, len(self._quickest) // 3))
        first = min(list(self._quickest)[:edge], key=lambda at: at[1])
        last = min(list(self._quickest)[-edge:], key=lambda at: at[1])
        span_ns = (last[0] - first[0]) * BUCKET_NS
        return (last[1] - first[1]) / span_ns * 1e6 if span_ns >= _LEAST_DRIFT_NS else 0.0

    @property
    def _offset_ns(self) -> int:
        newest = self._quickest[-1][0]
        return min(lies for bucket, lies in self._quickest if bucket > newest - LOOKED_BACK)


LEAST_PATIENCE_NS = 10 * MILLISECOND_NS
MOST_PATIENCE_NS = 120 * MILLISECOND_NS


def patience_ns(jitter_ns: int) -> int:
    """How long to wait for a packet whose successor is there already."""
    return min(max(jitter_ns, LEAST_PATIENCE_NS), MOST_PATIENCE_NS)
