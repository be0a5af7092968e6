"""How a conversation ends while a reply sounds: every message is whole, the reason is the last, nothing is left."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.serve.doubles import caller, hear, house, running
from websockets.exceptions import ConnectionClosed

from antiphon.serve.protocol import pick_up
from antiphon.serve_settings import ServeSettings

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

ASK = (
    {"type": "conversation.item.create", "item": {
        "type": "message", "role": "user", "content": [{"type": "input_text", "text": "A latte, please."}]}},
    {"type": "response.create"},
)  # fmt: skip


async def to_the_end(client: ClientConnection) -> tuple[list[dict[str, Any]], int]:
    """All events, each of them JSON, and the close code."""
    events: list[dict[str, Any]] = []
    try:
        async with asyncio.timeout(8):
            while True:
                events.append(json.loads(await client.recv()))
    except ConnectionClosed as closed:
        return events, closed.rcvd.code if closed.rcvd else 1006


def test_time_is_up_in_the_middle_of_a_reply() -> None:
    """It was announced; then sound comes until the error, which is the last event; the close code is a normal one."""

    async def main() -> None:
        async with running(house(ServeSettings(longest_session_s=1.5), pick_up=pick_up)) as place:
            async with caller(place.url) as client:
                created = await hear(client, "session.created")
                assert created["session"]["expires_at"]
                for event in ASK:
                    await client.send(json.dumps(event))
                events, code = await to_the_end(client)
            assert 1001 == code
            assert "session_expired" == events[-1]["error"]["code"]
            sound = [
                base64.b64decode(event["delta"], validate=True) for event in events if "audio.delta" in event["type"]
            ]
            assert sum(map(len, sound)) > 24_000
            assert "response.done" not in {event["type"] for event in events}
            await place.settle()
            assert (0, 1) == (place.open_sessions, place.sample("antiphon_sessions_ended_total", reason="expired"))

    asyncio.run(main())


def test_ctrl_c_in_the_middle_of_a_reply_is_told_to_everybody() -> None:
    """Those who listen and those who are spoken to read the same reason, as the last of their whole messages."""

    async def main() -> None:
        async with running(house(pick_up=pick_up)) as place:
            clients = [await caller(place.url) for _ in range(3)]
            for client in clients:
                await hear(client, "session.created")
            for event in ASK:
                await clients[0].send(json.dumps(event))
            await hear(clients[0], "response.output_audio.delta")
            place.stop(2)
            ends = await asyncio.gather(*map(to_the_end, clients))
            assert [("server_shutting_down", 1001)] * 3 == [
                (events[-1]["error"]["code"], code) for events, code in ends
            ]
            await place.serving

    asyncio.run(main())
