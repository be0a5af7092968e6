"""The Python API in ten lines: a file is the caller, the events are printed.

python examples/ten_lines.py question.wav
"""

from __future__ import annotations

import asyncio
import sys

from antiphon import Agent
from antiphon.audio.files import FileSource, Playback
from antiphon.core.clock import MonotonicClock


async def main(path: str) -> None:
    async with Agent(instructions="You are a barista.").session() as session:
        caller = FileSource.open(path, clock=MonotonicClock(), playback=Playback(tail_ms=3000))

        async def feed() -> None:
            async for frame in caller:
                session.feed(frame)
            session.hang_up()

        feeding = asyncio.create_task(feed())
        async for event in session:
            print(type(event).__name__, getattr(event, "text", ""))
        await feeding


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
