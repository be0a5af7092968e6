"""How long steps took and what the moment allows in, how many callers the next step takes out.

Two ways. `SourceRule` doubles and halves by two thresholds of bandwidth and fragmentation. `BandwidthModel` knows that
a step reads the weights once and each caller's context besides: `step = fixed + callers x each`, fitted to what steps
took, bucket by bucket, and takes the size that brings the most tokens a second among those whose step fits between the
deadlines. It also foretells the bandwidth, so that its picture of the GPU can be held against the counters.
Units: ns, bytes, bytes a second; parts from 0 to 1. Threads: pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from antiphon.core.clock import SECOND_NS
from antiphon.core.errors import CallerError

if TYPE_CHECKING:
    from collections.abc import Sequence

NEWEST = 0.2  # of a step's time in what is remembered of its bucket: five steps, so that a change shows at once
SAFETY = 1.02  # a step is planned to be this much longer than remembered: half of them are


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What the moment asks."""

    callers: int  # that want a token
    within_ns: int | None = None  # a step may take so long; None: as long as it likes
    bandwidth: float | None = None  # of the memory's peak, by the counters; None: not known
    fragmentation: float | None = None
    most: int = 64  # that memory holds


class Sizing(Protocol):
    """A way to choose."""

    def choose(self, demand: Demand) -> int:
        """Callers in the next step, one of the buckets."""
        ...

    def learn(self, size: int, took_ns: int) -> None:
        """A step of that bucket took so long."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """Always the same."""

    size: int

    def choose(self, demand: Demand) -> int:  # noqa: ARG002 - that is the point
        return self.size

    def learn(self, size: int, took_ns: int) -> None:
        """Nothing."""


@dataclass(slots=True, kw_only=True)
class SourceRule:
    """Bandwidth above 0.85 and fragmentation above 0.30: half; below 0.60 and 0.15: double.

    It never shrinks on bandwidth alone, and knows no deadlines. What is not known changes nothing.
    """

    buckets: Sequence[int]
    size: int = 1

    def choose(self, demand: Demand) -> int:
        known = demand.bandwidth is not None and demand.fragmentation is not None
        if known and demand.bandwidth is not None and demand.fragmentation is not None:
            if demand.bandwidth > 0.85 and demand.fragmentation > 0.30:
                self.size = max(self.buckets[0], self.size // 2)
            elif demand.bandwidth < 0.60 and demand.fragmentation < 0.15:
                self.size = min(self.buckets[-1], self.size * 2)
        return bucket_of(min(self.size, demand.most), self.buckets)

    def learn(self, size: int, took_ns: int) -> None:
        """It learns nothing."""


@dataclass(slots=True, kw_only=True)
class BandwidthModel:
    """See the module. Until it has seen a bucket, it foretells that from the others, or from bytes and peak.

    Raises:
        CallerError: there are no buckets, or they do not rise.
    """

    buckets: Sequence[int]
    weight_bytes: int  # read once in a step
    caller_bytes: int  # read for each caller in it
    peak_bytes_s: float  # that the memory gives
    _took_ns: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.buckets or list(self.buckets) != sorted(set(self.buckets)) or self.buckets[0] < 1:
            raise CallerError(f"the buckets are {tuple(self.buckets)}", hint="give batch sizes that rise, from 1 on")

    def choose(self, demand: Demand) -> int:
        """The bucket with the most tokens a second that keeps the deadline; the quickest, if none does."""
        allowed = [size for size in self.buckets if size <= demand.most] or [self.buckets[0]]
        enough = bucket_of(max(1, min(demand.callers, demand.most)), self.buckets)
        allowed = [size for size in allowed if size <= enough] or allowed[:1]
        if demand.within_ns is not None:
            fitting = [size for size in allowed if self.step_ns(size) * SAFETY <= demand.within_ns]
            if not fitting:
                return min(allowed, key=lambda size: (self.step_ns(size), size))
            allowed = fitting
        return max(allowed, key=lambda size: (min(size, demand.callers) / self.step_ns(size), -size))

    def learn(self, size: int, took_ns: int) -> None:
        known = self._took_ns.get(size)
        self._took_ns[size] = float(took_ns) if known is None else known + NEWEST * (took_ns - known)

    def step_ns(self, size: int) -> float:
        """How long a step of that bucket takes: as remembered, else by the line through what is, else by its bytes."""
        known = self._took_ns.get(size)
        if known is not None:
            return known
        floor_ns = self._bytes(size) / self.peak_bytes_s * SECOND_NS
        if not self._took_ns:
            return floor_ns
        fixed_ns, each_ns = self._line()
        return max(floor_ns, fixed_ns + each_ns * size)

    def bandwidth(self, size: int) -> float:
        """The part of the peak that steps of that bucket take, one after the other."""
        return self._bytes(size) / (self.step_ns(size) / SECOND_NS) / self.peak_bytes_s

    def _bytes(self, size: int) -> int:
        return self.weight_bytes + size * self.caller_bytes

    def _line(self) -> tuple[float, float]:
        """Least squares over the buckets that were seen; one alone tells how far above its floor the GPU works."""
        sizes, times = list(self._took_ns), list(self._took_ns.values())
        if len(sizes) == 1:
            slower = times[0] / (self._bytes(sizes[0]) / self.peak_bytes_s * SECOND_NS)
            scale = slower / self.peak_bytes_s * SECOND_NS
            return self.weight_bytes * scale, self.caller_bytes * scale
        middle, mean = sum(sizes) / len(sizes), sum(times) / len(times)
        spread = sum((size - middle) ** 2 for size in sizes)
        each = sum((size - middle) * (took - mean) for size, took in zip(sizes, times, strict=True)) / spread
        return mean - each * middle, each


def bucket_of(callers: int, buckets: Sequence[int]) -> int:
    """The smallest bucket that holds so many; the largest, if none does."""
    return next((size for size in buckets if size >= callers), buckets[-1])
