"""A loop that is held is noticed, and what holds it is named."""

from __future__ import annotations

import asyncio
import logging
import time

import pytest

from antiphon.core.clock import MonotonicClock
from antiphon.serve.log_lines import FIELDS, LOGGER
from antiphon.serve.loop_watch import LagReport, LoopWatch, Stall, log_stall

pytestmark = pytest.mark.e2e  # real time, and a thread that looks at another


def hold_the_loop(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def test_a_stall_is_named_once() -> None:
    """Held for 300 ms: one stall of about that length, one line that names the function, no values."""
    lags: list[float] = []
    stalls: list[float] = []
    held: list[Stall] = []

    async def main() -> None:
        report = LagReport(lag=lags.append, stall=stalls.append, held=held.append)
        with LoopWatch(report, clock=MonotonicClock(), stall_ns=100_000_000).watching():
            await asyncio.sleep(0.2)
            hold_the_loop(0.3)
            await asyncio.sleep(0.1)

    asyncio.run(main())
    assert max(stalls) > 0.25  # how much more depends on what else the machine does
    (stall,) = [stall for stall in held if "hold_the_loop" in (stall.at or "")]
    assert stall.at is not None
    assert stall.at.endswith("hold_the_loop")
    assert stall.seconds == max(stalls)
    assert stall.is_over


def test_a_long_stall_counts_as_all_the_beats_it_left_out() -> None:
    """Beats of 50 ms, held for 500 ms: about nine are late, each by 50 ms less than the one before."""
    lags: list[float] = []

    async def main() -> None:
        report = LagReport(lag=lags.append, stall=lambda _s: None, held=lambda _stall: None)
        with LoopWatch(report, clock=MonotonicClock(), stall_ns=100_000_000).watching():
            await asyncio.sleep(0.12)
            hold_the_loop(0.5)
            await asyncio.sleep(0.02)

    asyncio.run(main())
    start = lags.index(max(lags))
    missed = lags[start : start + 9]
    assert len(missed) == 9
    assert [pytest.approx(one - 0.05) for one in missed[:-1]] == missed[1:]


def test_a_stall_that_lasts_is_told_of_at_once() -> None:
    """It may never end: told once while it lasts, and once more when it is over."""
    held: list[Stall] = []

    async def main() -> None:
        report = LagReport(lag=lambda _s: None, stall=lambda _s: None, held=held.append)
        with LoopWatch(report, clock=MonotonicClock(), stall_ns=100_000_000).watching():
            await asyncio.sleep(0.1)
            hold_the_loop(1.4)
            assert [False] == [stall.is_over for stall in held if "hold_the_loop" in (stall.at or "")]
            await asyncio.sleep(0.1)

    asyncio.run(main())
    assert [False, True] == [stall.is_over for stall in held if "hold_the_loop" in (stall.at or "")]


@pytest.mark.parametrize(
    ("stall", "event", "fields"),
    [
        (Stall(seconds=0.0612, at="a.py:1 f"), "loop.held", {"held_ms": 61.2, "at": "a.py:1 f"}),
        (Stall(seconds=0.06, at=""), "loop.starved", {"held_ms": 60.0}),
        (Stall(seconds=0.06, at=None, untold=3), "loop.held", {"held_ms": 60.0, "untold": 3, "at": "unseen"}),
        (Stall(seconds=1.0, at="", is_over=False), "loop.starved", {"held_ms": 1000.0, "is_over": False}),
    ],
)
def test_the_line_of_a_stall(
    stall: Stall, event: str, fields: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    """How long, where, and how many went untold."""
    with caplog.at_level(logging.WARNING, LOGGER.name):
        log_stall(stall)

    (record,) = caplog.records
    assert (event, fields) == (record.msg, getattr(record, FIELDS))
