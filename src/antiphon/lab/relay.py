"""A TCP relay on loopback that is as slow and unsteady as a network -> what callers see of it.

Each direction delays what passes by its own draws: a fixed time, jitter evenly spread on top, and where a packet is
lost the time until it is sent again. Order is kept, as TCP keeps it, so a late piece holds up those behind it. A piece
is what one read gives, which at the pace of speech is a message. Whoever sends faster than the other side reads has to
wait, for a direction holds a bounded amount.
Units: ns of the clock, ms in settings, bytes. Threads: the event loop. It does not know what passes.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from antiphon.core.clock import MILLISECOND_NS, SECOND_NS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from antiphon.core.clock import Clock
    from antiphon.lab.plan import Line

PIECE_BYTES = 16_384
MOST_PIECES = 64  # on their way in one direction: 1 MiB
RESENT_NS = 200 * MILLISECOND_NS  # the least that Linux waits for an acknowledgement before it sends again


class Delays:
    """Of one direction: when a piece arrives that is sent at a given moment."""

    def __init__(self, line: Line, *, seed: int) -> None:
        self._line = line
        self._dice = random.Random(seed)  # noqa: S311 - no secret
        self._newest_ns = 0

    def arrival_ns(self, sent_ns: int) -> int:
        """Never before the piece before it."""
        line = self._line
        delay_ns = round((line.delay_ms + self._dice.uniform(0, line.jitter_ms)) * MILLISECOND_NS)
        if self._dice.random() < line.loss:
            delay_ns += max(RESENT_NS, round(2 * line.delay_ms * MILLISECOND_NS))
        self._newest_ns = max(self._newest_ns, sent_ns + delay_ns)
        return self._newest_ns


@asynccontextmanager
async def relayed(host: str, port: int, line: Line, *, clock: Clock, seed: int = 0) -> AsyncIterator[int]:
    """Relay to that server while the block runs; gives the port on 127.0.0.1 to connect to."""
    connections: set[asyncio.Task[None]] = set()
    dice = random.Random(seed)  # noqa: S311 - no secret

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        try:
            await _join(reader, writer, host, port, (line, clock, dice))
        except asyncio.CancelledError:  # the run is over; asyncio would log it
            writer.transport.abort()
        finally:
            connections.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=PIECE_BYTES)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tuple(connections):
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)


async def _join(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    host: str,
    port: int,
    conditions: tuple[Line, Clock, random.Random],
) -> None:
    line, clock, dice = conditions
    try:
        far_reader, far_writer = await asyncio.open_connection(host, port, limit=PIECE_BYTES)
    except OSError:  # the caller sees the line break, which is what it would see
        writer.transport.abort()
        return
    try:
        async with asyncio.TaskGroup() as tasks:
            for source, sink in ((reader, far_writer), (far_reader, writer)):
                delays = Delays(line, seed=dice.getrandbits(32))
                on_the_way: asyncio.Queue[tuple[int, bytes]] = asyncio.Queue(MOST_PIECES)
                tasks.create_task(_take_in(source, on_the_way, delays, clock))
                tasks.create_task(_give_out(sink, on_the_way, clock))
    except asyncio.CancelledError:
        far_writer.transport.abort()
        raise
    far_writer.close()
    writer.close()


async def _take_in(
    source: asyncio.StreamReader, on_the_way: asyncio.Queue[tuple[int, bytes]], delays: Delays, clock: Clock
) -> None:
    """Until the source ends; its end travels as a piece without bytes."""
    data = b"-"
    while data:
        try:
            data = await source.read(PIECE_BYTES)
        except OSError:
            data = b""
        await on_the_way.put((delays.arrival_ns(clock.now_ns()), data))


async def _give_out(sink: asyncio.StreamWriter, on_the_way: asyncio.Queue[tuple[int, bytes]], clock: Clock) -> None:
    is_open = True
    while True:
        arrival_ns, data = await on_the_way.get()
        if (ahead_ns := arrival_ns - clock.now_ns()) > 0:
            await asyncio.sleep(ahead_ns / SECOND_NS)
        try:
            if is_open and data:
                sink.write(data)
                await sink.drain()
            elif is_open:
                sink.write_eof()
        except OSError:  # what comes later is thrown away, and the source reads to its end
            is_open = False
        if not data:
            return
