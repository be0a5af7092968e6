"""A blocking call in, its result on the event loop out: a thread of its own for each, a bounded number at once.

The threads are daemons: a function that never returns keeps neither a conversation nor the process from its end,
as the threads of a pool would. Context variables are those of whoever calls.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_THREADS = 32  # of this process, those that nobody waits for any more included
_free = threading.BoundedSemaphore(MOST_THREADS)


class NoThreadError(Exception):
    """All threads are taken."""


async def run_in_thread(call: Callable[[], object], name: str) -> Any:
    """Run `call` and return what it returns; when cancelled, its result is dropped.

    Raises:
        NoThreadError: as many calls as may be are at work.
        and whatever `call` raises.
    """
    if not _free.acquire(blocking=False):
        raise NoThreadError
    loop = asyncio.get_running_loop()
    context = contextvars.copy_context()
    ended: asyncio.Future[tuple[object, BaseException | None]] = loop.create_future()

    def settle(result: object, error: BaseException | None) -> None:
        if not ended.done():
            ended.set_result((result, error))

    def work() -> None:
        result, failure = None, None
        try:
            result = context.run(call)
        except BaseException as error:  # noqa: BLE001 - raised again on the loop
            failure = error
        finally:
            _free.release()
        try:
            loop.call_soon_threadsafe(settle, result, failure)
        except RuntimeError:  # the loop is closed: nobody waits
            return

    try:
        threading.Thread(target=work, name=f"antiphon-tool-{name}", daemon=True).start()
    except RuntimeError:  # the system gives us no more
        _free.release()
        raise NoThreadError from None
    result, failure = await ended
    if failure is not None:
        raise failure
    return result
