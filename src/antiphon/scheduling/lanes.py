"""Engine calls in, their results out: a lane is the threads that one engine's calls run on, in order.

Threads: `run` is called on the event loop and never blocks it. A call that has begun cannot be stopped; when its
caller gives up waiting, its result is dropped. One that is still queued is removed.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol, TypeVar

from antiphon.core.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable

    from antiphon.scheduling.job import Job

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

    def close(self) -> None:
        """Accept no more work and wait for the call in progress, if any."""
        ...


class ThreadLane:
    """First come, first served, on threads of its own."""

    def __init__(self, name: str, *, threads: int = 1) -> None:
        self._closed = threading.Event()
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix=f"antiphon-{name}")

    async def run(self, job: Job, call: Callable[[], Result]) -> Result:  # noqa: ARG002 - every job is alike here
        if self._closed.is_set():
            raise EngineError(CLOSED)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, call)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._closed.is_set() and task is not None and not task.cancelling():  # the call was, its task was not
                raise EngineError(CLOSED) from None
            raise

    def close(self) -> None:
        self._closed.set()
        self._pool.shutdown(wait=True, cancel_futures=True)
