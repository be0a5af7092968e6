"""The protocol over a real socket: with doubles behind it, and with the models that ship."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import soundfile
import soxr
from tests.serve.doubles import RATE_HZ, Place, caller, hear, house, running, tone
from tests.serve.test_disappearing import TIMES, reset
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from antiphon.agent import Agent
from antiphon.config import Config
from antiphon.serve.house import build
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


async def until_sound(client: ClientConnection) -> None:
    for event in ASK:
        await client.send(json.dumps(event))
    await hear(client, "response.output_audio.delta")


def test_a_typed_question_is_answered_in_sound() -> None:
    """From session.created, which names the model, the voice and the end, to response.done."""

    async def main() -> None:
        async with running(house(pick_up=pick_up)) as place:
            async with caller(f"{place.url}?model=scripted") as client:
                session = (await hear(client, "session.created"))["session"]
                assert ("scripted", "tones") == (session["model"], session["audio"]["output"]["voice"])
                assert session["expires_at"]
                await until_sound(client)
                done = await hear(client, "response.done", within_s=20)
                assert "completed" == done["response"]["status"]
            await place.settle()

    asyncio.run(main())


def test_spoken_words_are_answered() -> None:
    """Appended sound becomes a turn, and the turn a reply."""

    async def main() -> None:
        async with running(house(pick_up=pick_up)) as place, caller(place.url) as client:
            await client.send(tone(0.7, level=0))
            await client.send(tone(1.5))
            await client.send(tone(1.0, level=0))
            await hear(client, "input_audio_buffer.speech_started")
            await hear(client, "response.output_audio.delta")

    asyncio.run(main())


def test_resets_while_it_speaks_leave_nothing() -> None:
    """The real protocol, twenty times at once."""

    async def visit(place: Place) -> None:
        client = await caller(place.url, ping_interval=None)
        await until_sound(client)
        reset(client)

    async def main() -> None:
        async with running(house(pick_up=pick_up, conversations=TIMES)) as place:
            await visit(place)
            await place.settle()
            tasks = len(asyncio.all_tasks())
            await asyncio.gather(*(visit(place) for _ in range(TIMES)))
            await place.settle()
            assert (0, tasks) == (place.open_sessions, len(asyncio.all_tasks()))

    asyncio.run(main())


def test_malformed_messages_leave_the_reply_whole() -> None:
    """200 a second, while a reply comes: each is an error, every frame is JSON, and the reply is completed."""

    async def main() -> None:
        async with running(house(pick_up=pick_up)) as place, caller(place.url) as client:
            await until_sound(client)

            async def pester() -> None:
                for number in range(400):
                    await client.send([b"\xff\x00", "{", "[]", '{"type": 7}', '{"type": "no.such"}'][number % 5])
                    await asyncio.sleep(0.005)

            pestering = asyncio.create_task(pester())
            errors = 0
            while errors < 400:
                errors += json.loads(await asyncio.wait_for(client.recv(), 5))["type"] == "error"
            await pestering
            for event in ASK:
                await client.send(json.dumps(event))
            await hear(client, "response.done", within_s=20)

    asyncio.run(main())


async def slowest_ping_s(client: ClientConnection) -> float:
    """Of those that were answered until the connection was closed."""
    slowest = 0.0
    while True:
        try:
            slowest = max(slowest, await (await client.ping()))
        except ConnectionClosed:
            return slowest
        await asyncio.sleep(0.1)


@pytest.mark.model
def test_a_recorded_order_is_answered_over_the_network() -> None:
    """The bundled clip in real time, with the models that ship: words, a reply's sound, its end; pings keep working."""
    clip = Path(str(resources.files("antiphon").joinpath("assets/order.flac")))
    sound, rate_hz = soundfile.read(clip, dtype="float32")
    pcm = (soxr.resample(sound, rate_hz, RATE_HZ) * 32767).astype("<i2")
    pcm = np.concatenate([pcm, np.zeros(2 * RATE_HZ, "<i2")])
    agent = Agent(
        instructions="You are a barista. Answer in one short sentence.",
        vocabulary=("cappuccino", "triple shot", "sugar", "milk"),
        max_tokens=24,
    )
    a_house = build(agent, replace(Config(), serve=ServeSettings(port=0)), name="barista")

    async def speak(client: ClientConnection) -> None:
        step, began = RATE_HZ // 50, time.monotonic()
        for start in range(0, len(pcm), step):
            audio = base64.b64encode(pcm[start : start + step].tobytes()).decode()
            await client.send(json.dumps({"type": "input_audio_buffer.append", "audio": audio}))
            await asyncio.sleep(began + (start + step) / RATE_HZ - time.monotonic())

    async def main() -> dict[str, list[dict[str, Any]]]:
        heard: dict[str, list[dict[str, Any]]] = {}
        async with running(a_house) as place:
            async with connect(f"{place.url}?model=gpt-realtime", compression=None) as client:
                session = {
                    "type": "realtime", "audio": {"input": {"transcription": {"model": "whisper-1"}}}
                }  # fmt: skip
                await client.send(json.dumps({"type": "session.update", "session": session}))
                speaking = asyncio.create_task(speak(client))
                pinging = asyncio.create_task(slowest_ping_s(client))
                async with asyncio.timeout(40):
                    while "response.done" not in heard:
                        event = json.loads(await client.recv())
                        heard.setdefault(event["type"], []).append(event)
                await speaking
            assert await pinging < 1.0
            await place.settle()
            assert place.sample("antiphon_voice_to_voice_seconds_count", outcome="heard") >= 1
        return heard

    heard = asyncio.run(main())
    assert "error" not in heard
    words = heard["conversation.item.input_audio_transcription.completed"][-1]["transcript"].lower()
    assert {"cappuccino", "sugar"} <= set(words.replace(".", "").replace(",", "").split()), words
    sound_bytes = sum(len(base64.b64decode(event["delta"])) for event in heard["response.output_audio.delta"])
    assert sound_bytes > RATE_HZ  # half a second
