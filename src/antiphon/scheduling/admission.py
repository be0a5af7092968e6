"""How busy the callers keep the cores in, whether one more may come out.

A queue's waiting grows with load / (1 - load). So what replies waited lately, and how busy the cores were, foretell
what they would wait with one caller more like those that are there.
Units: ms, shares of all cores. Threads: pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from antiphon.scheduling.settings import SchedulingSettings

_FULL = 0.999  # beyond, the formula has no meaning


@dataclass(frozen=True, slots=True, kw_only=True)
class Pressure:
    """How it went lately."""

    callers: int
    busy: float  # part of all cores that jobs took
    wait_p95_ms: float  # from asking to beginning, of what callers waited for


def foretold(pressure: Pressure) -> Pressure:
    """The same with one caller more."""
    if pressure.callers == 0:
        return Pressure(callers=1, busy=pressure.busy, wait_p95_ms=pressure.wait_p95_ms)
    busy = pressure.busy * (pressure.callers + 1) / pressure.callers
    growth = _odds(busy) / _odds(pressure.busy) if pressure.busy > 0 else 1.0
    return Pressure(callers=pressure.callers + 1, busy=busy, wait_p95_ms=pressure.wait_p95_ms * growth)


def refusal(pressure: Pressure, rules: SchedulingSettings) -> str:
    """Why one more caller may not come now; "" if they may."""
    if pressure.callers == 0:
        return ""
    then = foretold(pressure)
    if then.busy > rules.busy_limit:
        return (
            f"{pressure.callers} conversations keep {pressure.busy:.0%} of the cores busy; "
            f"one more would make it {then.busy:.0%}, and {rules.busy_limit:.0%} is the limit"
        )
    if then.wait_p95_ms > rules.wait_limit_ms:
        return (
            f"replies wait {pressure.wait_p95_ms:.0f} ms for the cores; with one more conversation it would be "
            f"{then.wait_p95_ms:.0f} ms, and {rules.wait_limit_ms} ms is the limit"
        )
    return ""


def _odds(busy: float) -> float:
    bounded = min(busy, _FULL)
    return bounded / (1 - bounded)
