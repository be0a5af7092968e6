"""A reply's frames in when they are due -> slots of 20 ms out by the media clock, silent ones between replies.

Slot k is due at start + k slots, so the far end hears a stream without gaps whose clock is ours. When the loop was
late, silent slots that nobody waits for are left out, and sound that waits goes at once, a little ahead of its slots:
so a stall costs its own length once, and no delay stays.
Units: samples at the track's rate, ns. Pure.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from antiphon.core.clock import MILLISECOND_NS

if TYPE_CHECKING:
    from antiphon.core.flow import Pcm

SLOT_MS = 20
SLOT_NS = SLOT_MS * MILLISECOND_NS
MOST_WAITING = 2  # slots; more go at once
MOST_AHEAD = 250  # slots that may be sent before they are due, 5 s; more wait


@dataclass(frozen=True, slots=True)
class Slot:
    """What is to be sent."""

    number: int  # since the track began; the media clock counts them
    pcm: Pcm | None  # (slot,) float32; None: silence


class MediaClock:
    """One track's."""

    def __init__(self, *, rate_hz: int, start_ns: int) -> None:
        self._slot_samples = rate_hz * SLOT_MS // 1000
        self._start_ns = start_ns
        self._next = 0
        self._waiting: deque[Pcm] = deque()
        self._waiting_samples = 0
        self.silences_left_out = 0

    def start(self, now_ns: int) -> None:
        """The first slot is due now."""
        self._start_ns = now_ns

    def change_rate(self, rate_hz: int) -> None:
        """What is pushed from here on has another rate; what waits is forgotten."""
        self.clear()
        self._slot_samples = rate_hz * SLOT_MS // 1000

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not self._waiting_samples

    def push(self, pcm: Pcm) -> None:
        """This is to be sent behind what waits."""
        if len(pcm):
            self._waiting.append(pcm)
            self._waiting_samples += len(pcm)

    def clear(self) -> int:
        """Forget what waits; how many samples that was."""
        cleared, self._waiting_samples = self._waiting_samples, 0
        self._waiting.clear()
        return cleared

    def take(self, now_ns: int) -> Slot | None:
        """The next slot if it is to be sent now; ask again until there is none."""
        behind = (now_ns - self._due_ns) // SLOT_NS  # whole slots; negative: it is not due
        if self._waiting:
            too_much = self._waiting_samples > MOST_WAITING * self._slot_samples and behind >= -MOST_AHEAD
            return self._hand_out(self._filled()) if behind >= 0 or too_much else None
        if behind < 0:
            return None
        self._next += behind
        self.silences_left_out += behind
        return self._hand_out(None)

    @property
    def next_ns(self) -> int:
        """When the next slot is due."""
        return self._due_ns

    @property
    def _due_ns(self) -> int:
        return self._start_ns + self._next * SLOT_NS

    def _hand_out(self, pcm: Pcm | None) -> Slot:
        slot = Slot(self._next, pcm)
        self._next += 1
        return slot

    def _filled(self) -> Pcm:
        pcm = np.zeros(self._slot_samples, np.float32)
        filled = 0
        while self._waiting and filled < len(pcm):
            part = self._waiting.popleft()
            take = min(len(part), len(pcm) - filled)
            pcm[filled : filled + take] = part[:take]
            if take < len(part):
                self._waiting.appendleft(part[take:])
            filled += take
        self._waiting_samples -= filled
        return pcm
