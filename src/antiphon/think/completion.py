"""One completion at work on a worker thread; its steps come out on the event loop.

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

    from antiphon.scheduling.job import Job
    from antiphon.scheduling.lanes import Lane
    from antiphon.think.llama_server import Completed, LlamaServer


class Completion:
    """Begins to work when it is made."""

    def __init__(self, server: LlamaServer, lane: Lane, job: Job, request: Mapping[str, object]) -> None:
        self._loop = asyncio.get_running_loop()
        self._steps: asyncio.Queue[Completed | None] = asyncio.Queue()
        self._stopping = threading.Event()
        # awaited by `stop`, which every user calls; the task outlives a reader that was cancelled, until the worker
        # has let go
        self._work = asyncio.ensure_future(lane.run(job, partial(server.complete, request, self._take)))
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
        """The completion ends at its next token or batch, as if it had come to its end."""
        self._stopping.set()

    async def stop(self) -> None:
        """End it and come back when the worker has let go."""
        self.ask_to_stop()
        await asyncio.wait({self._work})

    def _take(self, step: Completed) -> bool:
        if self._stopping.is_set():
            return True
        try:
            self._loop.call_soon_threadsafe(self._steps.put_nowait, step)
        except RuntimeError:  # the loop was closed over our head: nobody is left to read
            return True
        return False

    def _on_done(self, work: asyncio.Future[None]) -> None:
        if not work.cancelled():
            work.exception()  # seen here, whether or not `steps` is read to its end
        self._steps.put_nowait(None)
