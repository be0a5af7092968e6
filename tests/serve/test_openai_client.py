"""What a user of the protocol's own client library sees when all goes well, and when they are turned away."""

from __future__ import annotations

import asyncio
import json
import ssl
from typing import Any

import openai
import pytest
from tests.serve.doubles import KEY, Place, caller, hear, house, running
from tests.serve.test_shutdown import a_process
from websockets.exceptions import ConnectionClosedError, InvalidStatus

from antiphon.serve.protocol import pick_up
from antiphon.serve_settings import ServeSettings

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

ASKED: Any = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "A latte, please."}]}
ENOUGH = 32_000  # of base64, half a second


def library(url: str, *, key: str = KEY) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(api_key=key, websocket_base_url=url.removesuffix("/realtime"))


async def begin_of_a_reply(client: openai.AsyncOpenAI, **options: Any) -> tuple[str, int]:
    """The response's status and how many characters of sound came, half a second of which are enough."""
    sound = 0
    async with client.realtime.connect(model="barista", **options) as connection:
        await connection.conversation.item.create(item=ASKED)
        await connection.response.create(response={"output_modalities": ["audio"]})
        async for event in connection:
            if event.type == "response.output_audio.delta":
                if sound < ENOUGH <= sound + len(event.delta):
                    await connection.response.cancel()
                sound += len(event.delta)
            if event.type == "response.done":
                return str(event.response.status), sound
    return "", sound


def test_a_full_house_is_told_in_words() -> None:
    """The user reads an error that says so, and the library knows the close for one to try again after."""

    async def main() -> None:
        async with running(house(conversations=1, pick_up=pick_up)) as place:
            first = await caller(place.url)
            await hear(first, "session.created")
            told: list[str] = []
            with pytest.raises(ConnectionClosedError, match="all places are taken; try again later"):  # noqa: PT012
                async with library(place.url).realtime.connect(model="barista") as connection:
                    async for event in connection:
                        assert event.type == "error"
                        told.append(event.error.message)
            assert ["all places are taken; try again later"] == told
            with pytest.raises(openai.OpenAIError, match="all places are taken"):
                async with library(place.url).realtime.connect(model="barista") as connection:
                    await connection.dispatch_events()
            codes = await retried(place, until_free=first.close)
            assert [1013] == codes

    async def retried(place: Place, until_free: Any) -> list[int]:
        """The library tries again by itself, and gets in once there is a place."""
        codes: list[int] = []
        loop = asyncio.get_running_loop()

        def again(event: Any) -> None:
            codes.append(event.close_code)
            loop.create_task(until_free())  # noqa: RUF006 - awaited by the server's end

        async with library(place.url).realtime.connect(
            model="barista", on_reconnecting=again, initial_delay=0.2, max_delay=0.2
        ) as connection:
            async for event in connection:
                if event.type == "session.created":
                    return codes
        return codes

    asyncio.run(main())


def test_a_wrong_key_is_refused_before_the_upgrade() -> None:
    async def main() -> None:
        async with running(house(ServeSettings(keys=(KEY,)), pick_up=pick_up)) as place:
            with pytest.raises(InvalidStatus, match="HTTP 401") as refused:
                async with library(place.url, key="wrong-key-here").realtime.connect(model="barista"):
                    pass
            body = json.loads(refused.value.response.body or b"")
            assert "invalid_api_key" == body["error"]["code"]
            async with library(place.url).realtime.connect(model="barista") as connection:
                assert "session.created" == (await connection.recv()).type

    asyncio.run(main())


def test_a_conversation_over_tls_by_the_commands_flags(certificate: tuple[str, str]) -> None:
    """A process that was started with a certificate, a key to show, and nothing else: the library needs to trust it."""
    cert, key = certificate
    flags = ["--certfile", cert, "--keyfile", key, "--key", KEY]
    with a_process("realtime", *flags) as (process, url):
        assert url.startswith("wss://127.0.0.1:")

        async def main() -> tuple[str, int]:
            trust = ssl.create_default_context(cafile=cert)
            with pytest.raises(ssl.SSLCertVerificationError):
                await begin_of_a_reply(library(url))
            plain = library(url.replace("wss://", "ws://"))
            with pytest.raises(Exception, match=r"valid HTTP response|connection closed|reset"):
                await begin_of_a_reply(plain)
            return await begin_of_a_reply(library(url), websocket_connection_options={"ssl": trust})

        status, sound = asyncio.run(main())
        assert ("cancelled", True) == (status, sound >= ENOUGH)
        process.terminate()
        assert 0 == process.wait(8)
        assert process.stderr is not None
        lines = [json.loads(line) for line in process.stderr.read().splitlines()]
        assert not [line for line in lines if line["level"] in ("error", "critical")]
