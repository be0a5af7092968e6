"""Engine calls in, their results out: a lane is the threads that one engine's calls run on, in order.

Calls of one kind that wait together may run as one call for all of them. Nobody waits for company: what is taken
together had been asked for by the time a thread was free.
Threads: `run` and `run_batch` are called on the event loop and never block it. A call that has begun cannot be
stopped; when its caller gives up waiting, its result is dropped. One that is still queued is removed.
Bounds: none of its own. An engine asks for one call at a time for each of its conversations, which are counted.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from antiphon.core.errors import EngineError
from antiphon.scheduling.border import Border
from antiphon.scheduling.job import Errand, current_claim, doing

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from antiphon.scheduling.job import Job

Item = TypeVar("Item")
Result = TypeVar("Result")
CLOSED = "the engine's lane is closed"


class Lane(Protocol):
    """Somewhere to run an engine's indivisible calls."""

    async def run(self, job: Job, call: Callable[[], Result]) -> Result:
        """Run `call` off the event loop and return what it returns.

        Raises:
            EngineError: the lane is closed.
            and whatever `call` raises.
        """
        ...

    async def run_yielding(self, job: Job, call: Callable[[Border], Result]) -> Result:
        """Run a call that can end early off the event loop: at each of its borders it asks whether to make way.

        Whoever made way calls again for the rest.

        Raises:
            EngineError: the lane is closed.
            and whatever `call` raises.
        """
        ...

    async def run_batch(
        self, job: Job, item: Item, call: Callable[[Sequence[Item]], Sequence[Result]], *, kind: Hashable, most: int
    ) -> Result:
        """Run `call` off the event loop on this item and on those of the same kind that wait for the lane with it.

        `call` gives one result for each item, in order; the first one's is used for all, so jobs of one `kind` must
        have calls that do the same. At most `most` items go together. Nothing waits for company: whoever finds the
        lane free runs at once, alone. An item whose caller gives up while it waits is left out. If `call` raises, all
        of its items get that error.

        Raises:
            EngineError: the lane is closed.
            and whatever `call` raises.
        """
        ...

    async def load(self, call: Callable[[], Result]) -> Result:
        """Run what is no job, such as reading a model, on the lane's own thread.

        The threads that a library starts there are treated by the system as the lane's calls are.

        Raises:
            whatever `call` raises.
        """
        ...

    def close(self) -> None:
        """Accept no more work and wait for the call in progress, if any."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    """A caller who waits, and what for."""

    item: Any
    call: Callable[[Sequence[Any]], Sequence[Any]]
    kind: Hashable
    most: int
    loop: asyncio.AbstractEventLoop
    result: asyncio.Future[Any]
    errand: Errand


@dataclass(slots=True, eq=False)
class _Batch:
    """Callers whose call is with a thread."""

    callers: list[_Waiting]
    has_ended: bool = False

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self.callers[0].loop


class ThreadLane:
    """First come, first served, on threads of its own.

    The loop hands calls to threads, and a thread is given its next one only after everybody whose call has just ended
    had their turn on the loop: those whose calls of one kind ended one after the other, or together, so meet again in
    their next one.
    """

    def __init__(self, name: str, *, threads: int = 1) -> None:
        self._lock = threading.Lock()  # over all below: a call ends on its thread, and anyone may close
        self._threads = threads
        self._waiting: list[_Waiting] = []  # in the order in which they came
        self._running: list[_Batch] = []
        self._closed = False
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix=f"antiphon-{name}")

    async def run(self, job: Job, call: Callable[[], Result]) -> Result:
        return await self.run_batch(job, None, lambda _: (call(),), kind=object(), most=1)

    async def run_yielding(self, job: Job, call: Callable[[Border], Result]) -> Result:
        border = Border()  # nothing here is more urgent than another; only who gives up asks for the end
        try:
            return await self.run(job, lambda: call(border))
        except asyncio.CancelledError:
            border.ask()
            raise

    async def load(self, call: Callable[[], Result]) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)

    async def run_batch(
        self,
        job: Job,
        item: Item,
        call: Callable[[Sequence[Item]], Sequence[Result]],
        *,
        kind: Hashable,
        most: int,
    ) -> Result:
        loop = asyncio.get_running_loop()
        errand = Errand(job=job, claim=current_claim())
        waiting = _Waiting(item, call, kind, most, loop, loop.create_future(), errand)
        with self._lock:
            if self._closed:
                raise EngineError(CLOSED)
            self._waiting.append(waiting)
        loop.call_soon(self._hand_out)
        try:
            result: Result = await waiting.result
        finally:
            with self._lock, suppress(ValueError):  # it began, as mostly
                self._waiting.remove(waiting)
        return result

    def close(self) -> None:
        with self._lock:
            self._closed = True
            refused, self._waiting = self._waiting, []
        for waiting in refused:
            _on_loop(waiting.loop, _settle, waiting, None, EngineError(CLOSED))
        self._pool.shutdown(wait=True)

    def _hand_out(self) -> None:
        """Give every free thread the next call; on a loop."""
        with self._lock:
            self._waiting = [each for each in self._waiting if not each.result.cancelled()]
            # Whose loop was closed before it heard of the end does not free its thread there.
            self._running = [each for each in self._running if not (each.has_ended and each.loop.is_closed())]
            while self._waiting and len(self._running) < self._threads:
                batch = self._taken()
                self._running.append(batch)
                self._pool.submit(self._work, batch)

    def _taken(self) -> _Batch:
        """The first one that waits, and those that go with it, removed from the queue."""
        first = self._waiting[0]
        callers = [each for each in self._waiting if each.kind == first.kind and each.loop is first.loop][: first.most]
        self._waiting = [each for each in self._waiting if each not in callers]
        return _Batch(callers)

    def _work(self, batch: _Batch) -> None:
        """Make the call and report to the loop; on a thread."""
        results: Sequence[Any] = ()
        error: BaseException | None = None
        try:
            with doing(tuple(each.errand for each in batch.callers)):
                results = batch.callers[0].call([each.item for each in batch.callers])
            assert len(results) == len(batch.callers), "a call has one result for each item"
        except BaseException as raised:  # noqa: BLE001 - it is the callers'
            error = raised
        with self._lock:
            batch.has_ended = True
            loops = {each.loop for each in self._waiting}
        if not _on_loop(batch.loop, self._report, batch, results, error):
            for loop in loops:  # that came after one which had left us its call
                _on_loop(loop, self._hand_out)

    def _report(self, batch: _Batch, results: Sequence[Any], error: BaseException | None) -> None:
        """Wake who waited, and free the thread behind them, so that what they ask for next is in the queue by then."""
        for place, waiting in enumerate(batch.callers):
            _settle(waiting, None if error else results[place], error)
        batch.loop.call_soon(self._release, batch)

    def _release(self, batch: _Batch) -> None:
        with self._lock:
            self._running.remove(batch)
        self._hand_out()


def _settle(waiting: _Waiting, result: Any, error: BaseException | None) -> None:
    if waiting.result.done():  # given up meanwhile
        return
    if error is None:
        waiting.result.set_result(result)
    else:
        waiting.result.set_exception(error)


def _on_loop(loop: asyncio.AbstractEventLoop, call: Callable[..., None], *arguments: Any) -> bool:
    """Have the loop make the call, unless it is closed: then nobody waits there any more."""
    try:
        loop.call_soon_threadsafe(call, *arguments)
    except RuntimeError:
        return False
    return True
