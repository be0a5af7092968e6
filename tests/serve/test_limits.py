"""Limits of one session: time, idleness, size, slowness; each ends it, or not, as documented."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from tests.serve.doubles import SAY, caller, hear, house, running, tone
from websockets.exceptions import ConnectionClosed

from antiphon.serve_settings import ServeSettings

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


async def last_words(client: ClientConnection, *, within_s: float = 8.0) -> tuple[str, int]:
    """The last error's code, and the close code."""
    code = ""
    try:
        async with asyncio.timeout(within_s):
            while True:
                event = json.loads(await client.recv())
                code = event["error"]["code"] if event["type"] == "error" else code
    except ConnectionClosed as closed:
        return code, closed.rcvd.code if closed.rcvd else 1006


def test_a_session_ends_when_it_said_it_would() -> None:
    """The time is announced at the beginning; then come an error and a close code."""

    async def main() -> None:
        async with running(house(ServeSettings(longest_session_s=1.0))) as place:
            async with caller(place.url) as client:
                created = await hear(client, "session.created")
                assert abs(time.time() + 1 - created["session"]["expires_at"]) < 1.5
                assert ("session_expired", 1001) == await last_words(client)
            await place.settle()
            assert 1 == place.sample("antiphon_sessions_ended_total", reason="expired")

    asyncio.run(main())


def test_a_silent_client_is_ended_and_a_talkative_one_is_not() -> None:
    """Idle is whoever sends no message, whatever we say meanwhile."""

    async def main() -> None:
        async with (
            running(house(ServeSettings(idle_s=0.6))) as place,
            caller(place.url) as silent,
            caller(place.url) as talkative,
        ):

            async def talk() -> None:
                for _ in range(6):
                    await talkative.send(tone(0.02, level=0))
                    await asyncio.sleep(0.2)

            talking = asyncio.create_task(talk())
            assert ("session_idle", 1001) == await last_words(silent)
            await talking
            await talkative.send(SAY)
            await hear(talkative, "response.output_audio.delta")

    asyncio.run(main())


def test_a_large_message_is_taken_and_a_larger_one_ends_the_session_alone() -> None:
    """Fifteen MiB of sound fit; beyond the bound the close code is 1009, and others do not notice."""

    async def main() -> None:
        async with running(house()) as place:
            async with caller(place.url) as client, caller(place.url) as other:
                await client.send(json.dumps({"type": "unknown", "audio": "A" * (20 * 2**20)}))
                await client.send(SAY)
                await hear(client, "response.output_audio.delta")
                with suppress(ConnectionClosed):  # it may be closed while it is still sent
                    await client.send("x" * (22 * 2**20))
                assert (await last_words(client))[1] in (1009, 1006)
                await other.send(SAY)
                await hear(other, "response.output_audio.delta")
            await place.settle()

    asyncio.run(main())


def test_a_slow_client_is_ended_and_delays_nobody() -> None:
    """One does not read while much is sent to it: it is cut off; another one's sound flows."""

    async def main() -> None:
        settings = ServeSettings(send_queue_bytes=2**20)
        async with running(house(settings)) as place:
            slow = await caller(place.url, ping_interval=None, max_queue=1)
            async with caller(place.url) as other:
                await hear(slow, "session.created")
                slow.transport.pause_reading()
                await other.send(SAY)
                await hear(other, "response.output_audio.delta")
                # more than the system's own buffers hold
                for _ in range(60):
                    await slow.send(json.dumps({"type": "flood", "count": 4, "size": 60_000}))
                    await hear(other, "response.output_audio.delta", within_s=0.5)
                async with asyncio.timeout(8):
                    while place.open_sessions > 1:  # noqa: ASYNC110
                        await asyncio.sleep(0.05)
                assert 1 == place.open_sessions
                assert place.sample("antiphon_send_queue_age_seconds_count") > 60
            await place.settle()
            assert 1 == place.sample("antiphon_sessions_ended_total", reason="slow_client")
            slow.transport.abort()

    asyncio.run(main())


def test_a_slow_client_that_wakes_up_learns_why() -> None:
    """It reads again at once: behind what was under way stand the error and the policy's close code."""

    async def main() -> None:
        async with running(house(ServeSettings(send_queue_events=100))) as place, caller(place.url) as client:
            await client.send(json.dumps({"type": "flood", "count": 500, "size": 100}))
            assert ("slow_client", 1008) == await last_words(client)

    asyncio.run(main())


def test_malformed_messages_at_200_a_second_leave_the_reply_whole() -> None:
    """Each gets its error, the sound between them stays valid JSON and in time, and the session lives."""

    async def main() -> None:
        async with running(house()) as place:
            async with caller(place.url) as client:
                await client.send(SAY)

                async def pester() -> None:
                    for number in range(400):
                        await client.send([b"\xff\x00", "{", "[]", '{"type": 7}', "\u2028" * 50][number % 5])
                        await asyncio.sleep(0.005)

                pestering = asyncio.create_task(pester())
                kinds: list[str] = []
                while kinds.count("error") < 320 or kinds.count("response.output_audio.delta") < 50:
                    kinds.append(json.loads(await asyncio.wait_for(client.recv(), 5))["type"])
                await pestering
            await place.settle()

    asyncio.run(main())


def test_a_line_that_breaks_ends_its_session_alone() -> None:
    """The client is told that it is our fault; others go on."""

    async def main() -> None:
        async with running(house()) as place:
            async with caller(place.url) as client, caller(place.url) as other:
                await client.send(json.dumps({"type": "break", "secret": "what was said"}))
                assert ("internal_error", 1011) == await last_words(client)
                await other.send(SAY)
                await hear(other, "response.output_audio.delta")
            await place.settle()
            assert 1 == place.sample("antiphon_sessions_ended_total", reason="internal_error")

    asyncio.run(main())


def test_a_client_that_answers_no_ping_is_gone() -> None:
    """Nobody reads at the other end, and no reset comes: two pings later its place is free."""

    async def main() -> None:
        async with running(house(ServeSettings(ping_s=0.3))) as place:
            client = await caller(place.url, ping_interval=None)
            await hear(client, "session.created")
            client.transport.pause_reading()
            async with asyncio.timeout(3):
                while place.open_sessions:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
            await place.settle()
            client.transport.abort()

    asyncio.run(main())


def test_a_client_that_pings_and_does_not_read_is_cut_off() -> None:
    """Its pongs do not pile up without end."""

    async def main() -> None:
        async with running(house()) as place:
            client = await caller(place.url, ping_interval=None)
            await hear(client, "session.created")
            client.transport.pause_reading()
            ping = b"\x89\xfd\x00\x00\x00\x00" + b"p" * 125
            async with asyncio.timeout(20):
                while place.open_sessions:
                    client.transport.write(ping * 500)
                    await asyncio.sleep(0.005)
            await place.settle()

    asyncio.run(main())
