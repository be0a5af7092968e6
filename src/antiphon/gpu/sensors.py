"""A GPU's counters, its allocator's blocks and its lane in; readings at a steady pace out, and background held back.

A thread of its own looks every `period_ms`, since a look at many blocks takes milliseconds and the counters want their
100 ms. What cannot be known is None. The latest KEPT readings are kept.
Threads: its own; `latest` from any.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from antiphon.gpu.fragmentation import Block, HoldBack, worst
from antiphon.gpu.gpm import UNKNOWN, Counters

if TYPE_CHECKING:
    from collections.abc import Callable

    from antiphon.gpu.lane import GpuLane

KEPT = 4096


class Counting(Protocol):
    """`gpm.Gpm` is one."""

    def look(self) -> Counters: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What was seen at one moment."""

    at_ns: int
    counters: Counters = UNKNOWN
    fragmentation: float | None = None  # of the worst pool; None: not known
    holds_background: bool = False
    look_ns: int = 0  # what the look itself took


class Sensors:
    """Looks while it is open."""

    def __init__(
        self,
        *,
        counters: Counting | None = None,
        memory: Callable[[], tuple[tuple[Block, ...], int]] | None = None,  # blocks, and bytes that are still to be had
        hold_back: HoldBack | None = None,
        lane: GpuLane | None = None,
        period_ms: int = 250,
    ) -> None:
        self._counters = counters
        self._memory = memory
        self._hold_back = hold_back or HoldBack()
        self._lane = lane
        self._period_s = period_ms / 1000
        self._stop = threading.Event()
        self.readings: deque[Reading] = deque(maxlen=KEPT)
        self._thread = threading.Thread(target=self._work, name="antiphon-gpu-sensors", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def latest(self) -> Reading | None:
        """The last reading; None before the first."""
        return self.readings[-1] if self.readings else None

    def look(self) -> Reading:
        """Take a reading now, and hold background work back or let it go."""
        began_ns = time.monotonic_ns()
        counters = self._counters.look() if self._counters is not None else UNKNOWN
        pieces: float | None = None
        if self._memory is not None:
            blocks, room_bytes = self._memory()
            pieces = worst(blocks, room_bytes=room_bytes)
        held = self._hold_back.holds
        holds = self._hold_back.look(pieces)
        if self._lane is not None and holds != held:
            self._lane.hold_background(holds)
        ended_ns = time.monotonic_ns()
        reading = Reading(
            at_ns=began_ns,
            counters=counters,
            fragmentation=pieces,
            holds_background=holds,
            look_ns=ended_ns - began_ns,
        )
        self.readings.append(reading)
        return reading

    def close(self) -> None:
        """Look no more, and hold nobody back."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._lane is not None:
            self._lane.hold_background(False)

    def _work(self) -> None:
        while not self._stop.wait(self._period_s):
            self.look()
