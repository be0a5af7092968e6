"""Clients that vanish, at any stage, leave nothing behind."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.serve.doubles import SAY, Place, caller, hear, house, running, tone

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from websockets.asyncio.client import ClientConnection

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

TIMES = 20


def reset(client: ClientConnection) -> None:
    """As when a machine crashes and comes back: the other side gets a TCP reset."""
    raw = client.transport.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.transport.abort()


async def idle(client: ClientConnection) -> None:
    await hear(client, "session.created")


async def mid_append(client: ClientConnection) -> None:
    """Half of a message is there, and will stay alone."""
    await hear(client, "session.created")
    await client.send(tone(0.3))
    client.transport.write(b"\x81\xfe\x10\x00" + os.urandom(4) + b"x" * 100)
    await asyncio.sleep(0.02)


async def speak(client: ClientConnection) -> None:
    await client.send(tone(1.6))
    await client.send(tone(0.8, level=0.0))


async def in_recognition(client: ClientConnection) -> None:
    """The scripted ears take 200 ms."""
    await speak(client)
    await hear(client, "TurnStarted")
    await asyncio.sleep(0.1)


async def while_writing(client: ClientConnection) -> None:
    """The words are heard, and the scripted mind takes its time."""
    await speak(client)
    await asyncio.sleep(0.4)


async def while_speaking(client: ClientConnection) -> None:
    await client.send(SAY)
    await hear(client, "response.output_audio.delta")


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files as Linux shows them")
@pytest.mark.parametrize("stage", [idle, mid_append, in_recognition, while_writing, while_speaking])
def test_a_reset_leaves_nothing(stage: Callable[[ClientConnection], Awaitable[None]]) -> None:
    """Twenty callers vanish at one stage: no conversation, task or file is left, and the next caller is served."""

    async def visit(place: Place) -> None:
        client = await caller(place.url, ping_interval=None)
        await stage(client)
        reset(client)

    async def main() -> None:
        async with running(house(conversations=TIMES)) as place:
            await visit(place)  # what is opened once, such as the loop's own files, is open now
            await place.settle()
            files, tasks = open_files(), len(asyncio.all_tasks())
            await asyncio.gather(*(visit(place) for _ in range(TIMES)))
            await place.settle()
            await asyncio.sleep(0.1)
            assert (0, files, tasks) == (place.open_sessions, open_files(), len(asyncio.all_tasks()))
            assert 0 == place.house.metrics.registry.get_sample_value("antiphon_sessions_open")
            assert TIMES + 1 == place.sample("antiphon_sessions_ended_total", reason="client_left")
            async with caller(place.url) as client:
                await while_speaking(client)

    asyncio.run(main())


def test_a_reset_frees_the_only_place_at_once() -> None:
    """The next caller gets in within a tenth of a second."""

    async def main() -> None:
        async with running(house(conversations=1)) as place:
            for _ in range(5):
                client = await caller(place.url)
                await while_speaking(client)
                reset(client)
                await asyncio.sleep(0.1)
            assert 0 == place.sample("antiphon_sessions_refused_total", reason="full")

    asyncio.run(main())
