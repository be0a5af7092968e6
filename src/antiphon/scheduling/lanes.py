"""Engine calls in, their results out: a lane is the threads that one engine's calls run on, in order.

Threads: `run` is called on the event loop and never blocks it. A call that has begun cannot be stopped; when its
caller gives up waiting, its result is dropped. One that is still queued is removed.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from antiphon.scheduling.job import Job

Result = TypeVar("Result")


class Lane(Protocol):
    """Somewhere to run an engine's indivisible calls."""

    async def run(self, job: Job, call: Callable[[], Result]) -> Result:
        """Run `call` off the event loop and return what it returns.

        Raises: whatever `call` raises.
        """
        ...

    def close(self) -> None:
        """Accept no more work and wait for the call in progress, if any."""
        ...


class ThreadLane:
    """First come, first served, on threads of its own."""

    def __init__(self, name: str, *, threads: int = 1) -> None:
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix=f"antiphon-{name}")

    async def run(self, job: Job, call: Callable[[], Result]) -> Result:  # noqa: ARG002 - every job is alike here
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
