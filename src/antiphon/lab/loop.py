"""An event loop whose timers are as fine as the system's -> coroutines run on it.

asyncio's usual loop on Linux waits with epoll, which counts in whole milliseconds and is late by half of one on the
average; select counts in microseconds. It can watch file descriptors below 1024 only, so many callers get the usual
loop. Windows has its own, whose timers tick every 15.6 ms: latencies measured there are as coarse.
"""

from __future__ import annotations

import asyncio
import selectors
import sys
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

Result = TypeVar("Result")

MOST_ON_SELECT = 100  # callers: with a relay each has four descriptors, and select looks through all of them


def run(main: Coroutine[Any, Any, Result], *, callers: int = 1) -> Result:
    """Run a coroutine to its end, with timers as fine as so many callers allow."""
    is_fine = callers <= MOST_ON_SELECT and sys.platform != "win32"
    with asyncio.Runner(loop_factory=_fine_loop if is_fine else None) as runner:
        return runner.run(main)


def _fine_loop() -> asyncio.AbstractEventLoop:
    return asyncio.SelectorEventLoop(selectors.SelectSelector())
