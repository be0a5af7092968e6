"""Whole conversations without waiting: an asyncio loop whose time jumps to the next timer when nothing else is due.

`run(coroutine)` runs it on such a loop; `VirtualClock` reads that loop's time in ns. Nothing here may use threads:
a call in a thread is invisible to the loop, which would jump past it.
"""

from __future__ import annotations

import asyncio
import selectors
from typing import TYPE_CHECKING, TypeVar

from antiphon.core.clock import SECOND_NS

if TYPE_CHECKING:
    from collections.abc import Coroutine

Result = TypeVar("Result")


class _JumpingSelector(selectors.SelectSelector):
    def __init__(self) -> None:
        super().__init__()
        self.now_ns = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            raise RuntimeError("nothing is scheduled and nothing is ready: the conversation would hang for ever")
        self.now_ns += max(1, round(timeout * SECOND_NS))
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """A selector loop whose `time()` moves only when all tasks wait for timers."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now_ns / SECOND_NS

    @property
    def now_ns(self) -> int:
        return self._jumping.now_ns

    def stall(self, duration_ns: int) -> None:
        """Let time pass while the loop is busy, as a long synchronous call would."""
        self._jumping.now_ns += duration_ns


class VirtualClock:
    """The running virtual loop's time."""

    def now_ns(self) -> int:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        return loop.now_ns


def run(main: Coroutine[object, object, Result]) -> Result:
    """Run `main` to its end in virtual time."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
