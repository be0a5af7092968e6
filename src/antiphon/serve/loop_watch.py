"""The event loop watched from inside and from beside it -> how late it is, and what held it when it was held.

A beat on the loop measures its lag. A thread looks at the beats: one that is overdue by more than the bound means that
the loop is held, and the thread notes where, once for each stall. A stall that ends before the thread gets to look,
because native code kept Python's lock, is still counted by the beat after it. Lateness counts from when a beat was due,
so a stall is sure to be noticed when it lasts the bound and one period more.
Threads: `watching` belongs to the loop; the thread beside it only reads. Values of variables are never looked at.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from antiphon.core.clock import MILLISECOND_NS, SECOND_NS
from antiphon.serve.log_lines import SessionLog, places

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from antiphon.core.clock import Clock

FRAMES = 12  # of a stack, innermost: what is further out is the loop itself
MOST_LINES_PER_S = 2  # a machine without enough cores stalls all the time, and says so often enough


@dataclass(frozen=True, slots=True, kw_only=True)
class LagReport:
    """Whom the watch tells."""

    lag: Callable[[float], None]  # s, at each beat
    stall: Callable[[float], None]  # s, once it is over
    held: Callable[[str], None]  # where, while it lasts; called in the watching thread


class LoopWatch:
    """Of one event loop."""

    def __init__(self, report: LagReport, *, clock: Clock, stall_ns: int) -> None:
        self._report = report
        self._clock = clock
        self._stall_ns = stall_ns
        self._period_ns = max(5 * MILLISECOND_NS, stall_ns // 2)  # five times as many would cost 3 % of a core
        self._due_ns = 0
        self._next: asyncio.TimerHandle | None = None
        self._over = threading.Event()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch the running loop until the context is left."""
        self._expect()
        thread = threading.Thread(
            target=self._watch, args=(threading.get_ident(),), name="antiphon-loop-watch", daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            if self._next is not None:
                self._next.cancel()

    def _expect(self) -> None:
        self._due_ns = self._clock.now_ns() + self._period_ns
        self._next = asyncio.get_running_loop().call_later(self._period_ns / SECOND_NS, self._beat)

    def _beat(self) -> None:
        late_ns = max(0, self._clock.now_ns() - self._due_ns)
        self._report.lag(late_ns / SECOND_NS)
        if late_ns > self._stall_ns:
            self._report.stall(late_ns / SECOND_NS)
        self._expect()

    def _watch(self, loop_thread: int) -> None:
        told_of, told_ns = 0, 0
        while not self._over.wait(self._period_ns / SECOND_NS):
            due_ns, now_ns = self._due_ns, self._clock.now_ns()
            if now_ns - due_ns <= self._stall_ns or due_ns == told_of:
                continue
            told_of = due_ns  # each stall has a beat of its own that is overdue
            if now_ns - told_ns >= SECOND_NS // MOST_LINES_PER_S:
                told_ns = now_ns
                self._report.held(where(loop_thread))


def where(thread: int) -> str:
    """Where a thread's loop is held: the code below the loop itself, outermost first; empty: it holds nothing up.

    Then it waits to be run: other threads have the cores, or Python's lock.
    """
    frame = sys._current_frames().get(thread)  # noqa: SLF001 - there is no other way to see another thread's stack
    if frame is None:
        return ""
    below: list[tuple[FrameType, int]] = []
    for held in traceback.walk_stack(frame):  # innermost first
        if held[0].f_code.co_name == "_run_once":
            break
        below.append(held)
    if below and below[0][0].f_code.co_name == "select":
        return ""
    return places(below[FRAMES - 1 :: -1] if len(below) > FRAMES else below[::-1])


def log_stall(at: str) -> None:
    """Say what holds the loop."""
    if at:
        SessionLog().warning("loop.held", at=at)
    else:
        SessionLog().warning("loop.starved")
