"""A loop that is held is noticed, and what holds it is named."""

from __future__ import annotations

import asyncio
import time

import pytest

from antiphon.core.clock import MonotonicClock
from antiphon.serve.loop_watch import LagReport, LoopWatch

pytestmark = pytest.mark.e2e  # real time, and a thread that looks at another


def hold_the_loop(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def test_a_stall_is_named_once() -> None:
    """Held for 300 ms: one stall of about that length, one line that names the function, no values."""
    lags: list[float] = []
    stalls: list[float] = []
    held: list[str] = []

    async def main() -> None:
        report = LagReport(lag=lags.append, stall=stalls.append, held=held.append)
        with LoopWatch(report, clock=MonotonicClock(), stall_ns=100_000_000).watching():
            await asyncio.sleep(0.2)
            hold_the_loop(0.3)
            await asyncio.sleep(0.1)

    asyncio.run(main())
    assert max(stalls) > 0.25  # how much more depends on what else the machine does
    assert lags
    (line,) = [line for line in held if "hold_the_loop" in line]
    assert line.endswith("hold_the_loop")
