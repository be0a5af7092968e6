"""How late the audio process woke, and whether sound was lost -> how long periods are, how much is worth waking for.

A buffer holds four periods. Waking for one of them (25 %) leaves three for being late and costs the most wake-ups; for
three (75 %) it is the other way about. So as much is waited for as the deadline permits and four times the worst
lateness of late leaves room for. A period doubles as soon as sound was lost, for then a longer buffer is needed; it
halves again after a calm half minute whose worst lateness a buffer of half the length would have borne as well.
Units: ns; periods in samples at 48 kHz. Threads: one. Pure: time comes in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from antiphon.audio.card.contract import AT_HZ, LONGEST_PERIOD, PERIODS, SHORTEST_PERIOD
from antiphon.core.clock import SECOND_NS

WINDOW_NS = SECOND_NS  # in which the worst lateness is looked for
CALM_NS = 30 * SECOND_NS
RISE_WINDOWS = 5  # quiet ones before more is waited for; less is at once
MARGIN = 4  # times the worst lateness that must fit
MOST_WAITED = PERIODS - 1  # periods, 75 % of the buffer


class Tuning(NamedTuple):
    """What to do now."""

    period: int  # samples at 48 kHz
    wake_periods: int  # 1 to 3 of the buffer's four


@dataclass(slots=True)
class Tuner:
    """Of one way, in or out."""

    deadline_ns: int | None  # how old a sample may be when it is handed on; None: no matter
    period: int = SHORTEST_PERIOD
    wake_periods: int = 1
    adapts: bool = True
    _worst_ns: int = 0  # in this window
    _calm_worst_ns: int = 0  # since the calm began
    _lost: bool = False
    _window_end_ns: int = 0
    _calm_since_ns: int = 0
    _quiet_windows: int = 0
    _grace_until_ns: int = 0

    def begin(self) -> None:
        """The device was opened: what is lost while it starts says nothing of the period."""
        self._window_end_ns = 0

    def note(self, late_ns: int, *, lost: bool = False) -> None:
        """How a wake-up went."""
        self._worst_ns = max(self._worst_ns, late_ns)
        self._lost = self._lost or lost

    def decide(self, now_ns: int) -> Tuning | None:
        """What is to change, if anything; asked at every wake-up."""
        if now_ns < self._grace_until_ns:
            self._lost = False
        if not self.adapts or (now_ns < self._window_end_ns and not self._lost):
            return None
        before = Tuning(self.period, self.wake_periods)
        if not self._window_end_ns:
            self._calm_since_ns, self._grace_until_ns = now_ns, now_ns + WINDOW_NS
        elif self._lost:
            self.period = min(2 * self.period, LONGEST_PERIOD)
            self.wake_periods = 1
            self._calm_since_ns, self._calm_worst_ns, self._quiet_windows = now_ns, 0, 0
        else:
            self._calm_worst_ns = max(self._calm_worst_ns, self._worst_ns)
            self._settle(now_ns)
        self._window_end_ns = now_ns + WINDOW_NS
        self._worst_ns, self._lost = 0, False
        after = Tuning(self.period, self.wake_periods)
        return after if after != before else None

    def _settle(self, now_ns: int) -> None:
        """A window without loss is over."""
        half_buffer_ns = PERIODS * self.period // 2 * SECOND_NS // AT_HZ
        is_calm = now_ns - self._calm_since_ns >= CALM_NS
        if is_calm and self.period > SHORTEST_PERIOD and MARGIN * self._calm_worst_ns <= half_buffer_ns:
            self.period //= 2
            self._calm_since_ns, self._calm_worst_ns = now_ns, 0
            self.wake_periods, self._quiet_windows = 1, 0
            return
        if is_calm:
            self._calm_since_ns, self._calm_worst_ns = now_ns, 0
        wanted = self._wanted()
        if wanted < self.wake_periods:
            self.wake_periods, self._quiet_windows = wanted, 0
        elif wanted > self.wake_periods:
            self._quiet_windows += 1
            if self._quiet_windows >= RISE_WINDOWS:
                self.wake_periods, self._quiet_windows = self.wake_periods + 1, 0
        else:
            self._quiet_windows = 0

    def _wanted(self) -> int:
        period_ns = self.period * SECOND_NS // AT_HZ
        by_slack = PERIODS - -(-MARGIN * self._worst_ns // period_ns)
        by_deadline = MOST_WAITED
        if self.deadline_ns is not None:
            by_deadline = (self.deadline_ns - self._worst_ns) // period_ns
        return max(1, min(by_slack, by_deadline, MOST_WAITED))
