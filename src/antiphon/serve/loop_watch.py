"""The event loop watched from inside and from beside it -> how late it is, and what held it when it was held.

A beat on the loop measures its lag. Beats that could not even become due while the loop was held count too, each as
late as it would have been: else one long stall would weigh no more than one short one. A thread looks at the beats:
one that is overdue by more than the bound means that the loop is held, and the thread notes where, once for each stall.
The beat that ends a stall tells of it, with its length; one that lasts LONG_S is told of at once. A stall that ends
before the thread gets to look, because native code kept Python's lock, has a length and no place. Lateness counts from
when a beat was due, so a stall is sure to be noticed when it lasts the bound and one period more.
Threads: `watching` belongs to the loop; the thread beside it only reads. Values of variables are never looked at.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from antiphon.core.clock import MILLISECOND_NS, SECOND_NS
from antiphon.serve.log_lines import SessionLog, places

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from antiphon.core.clock import Clock

FRAMES = 12  # of a stack, innermost: what is further out is the loop itself
MOST_LINES_PER_S = 4  # a machine without enough cores stalls all the time, and says so often enough
LONG_S = 1.0  # a stall that may never end, of which nobody would hear
MOST_MISSED = 1000  # beats that one stall counts as; ten seconds of them at the default bound's period and more


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """The loop was held, or is."""

    seconds: float  # so far, if it lasts
    at: str | None  # see `where`; None: it was over before the thread could look
    is_over: bool = True
    untold: int = 0  # stalls since the last that was told of, of which there were too many


@dataclass(frozen=True, slots=True, kw_only=True)
class LagReport:
    """Whom the watch tells."""

    lag: Callable[[float], None]  # s, at each beat, those included that a stall left out
    stall: Callable[[float], None]  # s, once it is over
    held: Callable[[Stall], None]  # of as many as may be told; in the watching thread if it lasts


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
        self._seen: tuple[int, str] = (0, "")  # by the thread: when the beat was due, and where the loop was then
        self._told_ns = 0
        self._untold = 0

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
        now_ns = self._clock.now_ns()
        late_ns = max(0, now_ns - self._due_ns)
        for missed in range(min(late_ns // self._period_ns, MOST_MISSED) + 1):
            self._report.lag((late_ns - missed * self._period_ns) / SECOND_NS)
        if late_ns > self._stall_ns:
            due_ns, at = self._seen
            self._report.stall(late_ns / SECOND_NS)
            self._tell(now_ns, Stall(seconds=late_ns / SECOND_NS, at=at if due_ns == self._due_ns else None))
        self._expect()

    def _tell(self, now_ns: int, stall: Stall) -> None:
        if self._told_ns and now_ns - self._told_ns < SECOND_NS // MOST_LINES_PER_S:
            self._untold += 1
            return
        self._told_ns = now_ns
        untold, self._untold = self._untold, 0
        self._report.held(replace(stall, untold=untold))

    def _watch(self, loop_thread: int) -> None:
        told_of = 0
        while not self._over.wait(self._period_ns / SECOND_NS):
            due_ns, late_ns = self._due_ns, self._clock.now_ns() - self._due_ns
            if late_ns <= self._stall_ns:
                continue
            if due_ns != self._seen[0]:  # each stall has a beat of its own that is overdue
                self._seen = due_ns, where(loop_thread)
            if late_ns >= LONG_S * SECOND_NS and due_ns != told_of:
                told_of = due_ns
                self._report.held(Stall(seconds=late_ns / SECOND_NS, at=self._seen[1], is_over=False))


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


def log_stall(stall: Stall) -> None:
    """Say what held the loop, and for how long."""
    fields: dict[str, object] = {"held_ms": round(stall.seconds * 1000, 1)}
    if not stall.is_over:
        fields["is_over"] = False
    if stall.untold:
        fields["untold"] = stall.untold
    if stall.at == "":
        SessionLog().warning("loop.starved", **fields)
    else:
        SessionLog().warning("loop.held", **fields, at="unseen" if stall.at is None else stall.at)
