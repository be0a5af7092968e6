"""A server with doubles as a process of its own, for tests of signals: prints its address when it is ready.

With the word `loading` it loads for a minute, in a thread, which nothing can break off.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING

from tests.serve.doubles import house, loaded

from antiphon.serve.server import run

if TYPE_CHECKING:
    from antiphon.runtime import Runtime


async def _slowly() -> Runtime:
    print("loading", flush=True)
    await asyncio.to_thread(time.sleep, 60)
    return await loaded(4)


def main() -> int:
    load = _slowly if "loading" in sys.argv else None
    return run(house(load=load), on_ready=lambda url: print(url, flush=True))


if __name__ == "__main__":
    sys.exit(main())
