"""A server with doubles as a process of its own, for tests of signals and flags: prints its address when it is ready.

It takes the flags of `antiphon serve`, and listens at any free port. With the word `loading` it loads for a minute, in
a thread, which nothing can break off; with `realtime` it speaks the protocol itself and not one of a few words.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING

from tests.serve.doubles import PlainLine, house, loaded

from antiphon.cli import parser
from antiphon.cli.serve import with_flags
from antiphon.serve.protocol import pick_up
from antiphon.serve.server import run
from antiphon.serve_settings import ServeSettings

if TYPE_CHECKING:
    from antiphon.runtime import Runtime


async def _slowly() -> Runtime:
    print("loading", flush=True)
    await asyncio.to_thread(time.sleep, 60)
    return await loaded(4)


def main() -> int:
    words = [word for word in sys.argv[1:] if word in ("loading", "realtime")]
    flags = parser().parse_args(["serve", *(word for word in sys.argv[1:] if word not in words)])
    load = _slowly if "loading" in words else None
    line = pick_up if "realtime" in words else PlainLine
    the_house = house(with_flags(ServeSettings(), flags), load=load, pick_up=line)
    return run(the_house, on_ready=lambda url, _capacity: print(url, flush=True))


if __name__ == "__main__":
    sys.exit(main())
