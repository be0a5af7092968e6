"""One completion at work on worker threads; its steps come out on the event loop.

It is computed in stretches: at a token, or between two batches of the prompt, it may be asked to make way for
something more urgent, and goes on when its turn comes again. What was read and written by then lies in the model's
cache, so that going on costs one request more and no computing twice.

Threads: `_take` runs on the worker, all else on the loop. The queue between them holds every step that the
completion can have, so the worker never waits for the reader.
"""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from antiphon.scheduling.border import Border
    from antiphon.scheduling.job import Job
    from antiphon.scheduling.lanes import Lane
    from antiphon.think.completion_server import Completed, CompletionServer

_LEAST_TOKENS = 2  # of a stretch of writing: less costs more in requests than it gives away


class Completion:
    """Begins to work when it is made."""

    def __init__(self, server: CompletionServer, lane: Lane, job: Job, request: Mapping[str, object]) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._steps: asyncio.Queue[Completed | None] = asyncio.Queue()
        self._lock = threading.Lock()  # over the two below
        self._stopping = False
        self._at_server = False
        self._stretch: asyncio.Future[None] | None = None
        # awaited by `stop`, which every user calls; the task outlives a reader that was cancelled, until the worker
        # has let go
        self._work = asyncio.ensure_future(self._run(lane, job, request))
        self._work.add_done_callback(self._on_done)

    def when_done(self, release: Callable[[], None]) -> None:
        """Call `release` on the loop once the worker has let go, however that came about."""
        self._work.add_done_callback(lambda _: release())

    async def steps(self) -> AsyncIterator[Completed]:
        """Every step in order.

        Raises:
            EngineError: the model failed.
        """
        while (step := await self._steps.get()) is not None:
            yield step
        await asyncio.shield(self._work)

    def ask_to_stop(self) -> None:
        """The completion ends at its next token or batch, as if it had come to its end; at once while it waits."""
        with self._lock:
            self._stopping = True
            waits = not self._at_server
        if waits and self._stretch is not None:
            self._stretch.cancel()

    async def stop(self) -> None:
        """End it and come back when the worker has let go."""
        self.ask_to_stop()
        await asyncio.wait({self._work})

    async def _run(self, lane: Lane, job: Job, request: Mapping[str, object]) -> None:
        while not self._stopping:
            stretch = _Stretch(can_yield_writing="grammar" not in request)
            self._stretch = asyncio.ensure_future(lane.run_yielding(job, partial(self._compute, stretch, request)))
            await asyncio.wait({self._stretch})
            if self._stretch.cancelled():  # it waited, and nobody wants it any more
                return
            self._stretch.result()
            if not stretch.made_way:
                return
            request = _gone_on(request, stretch)

    def _compute(self, stretch: _Stretch, request: Mapping[str, object], border: Border) -> None:
        with self._lock:
            if self._stopping:
                return
            self._at_server = True
        try:
            self._server.complete(request, partial(self._take, stretch, border))
        finally:
            self._at_server = False

    def _take(self, stretch: _Stretch, border: Border, step: Completed) -> bool:
        if self._stopping:
            return True
        stretch.take(step)
        try:
            self._loop.call_soon_threadsafe(self._steps.put_nowait, step)
        except RuntimeError:  # the loop was closed over our head: nobody is left to read
            return True
        stretch.made_way = border.reached() and stretch.can_end_here
        return stretch.made_way

    def _on_done(self, work: asyncio.Future[None]) -> None:
        if not work.cancelled():
            work.exception()  # seen here, whether or not `steps` is read to its end
        self._steps.put_nowait(None)


class _Stretch:
    """What is done between two times of making way."""

    def __init__(self, *, can_yield_writing: bool) -> None:
        self.text = ""
        self.tokens = 0
        self.made_way = False
        self.can_end_here = False
        self._can_yield_writing = can_yield_writing  # a grammar would begin anew
        self._batches = 0

    def take(self, step: Completed) -> None:
        if step.prompt_tokens is not None and not step.text:
            self._batches += 1
            # The first of these steps comes before anything was read, and the last one when all was: the token that
            # is written next costs nothing more.
            is_read = step.read_tokens >= step.prompt_tokens
            self.can_end_here = self._batches > 1 and not is_read
            return
        self.tokens += 1
        self.text += step.text
        # Text that is held back, half a character or what may become a stop, is written again by who goes on.
        self.can_end_here = self._can_yield_writing and bool(step.text) and self.tokens >= _LEAST_TOKENS


def _gone_on(request: Mapping[str, object], stretch: _Stretch) -> Mapping[str, object]:
    """The request for the rest."""
    if not stretch.text:
        return request
    prompt, most = request["prompt"], request.get("n_predict")
    rest: dict[str, object] = {
        **request,
        "prompt": [*prompt, stretch.text] if isinstance(prompt, list) else f"{prompt}{stretch.text}",
    }
    if isinstance(most, int) and most > 0:
        rest["n_predict"] = max(1, most - stretch.tokens)
    seed = request.get("seed")
    if isinstance(seed, int):
        rest["seed"] = seed + stretch.tokens  # the same seed would draw the same luck again
    return rest
