"""Bursts of a tone in, an answer after an exact time out: the server against which the ruler tests itself.

A process of its own, as real servers are. It answers a frame that is loud at first and quiet at its end, DELAY_MS after
it came, with silence and then a tone, and says in the event when the frame came and the answer left, by the clock that
all processes share. So what a caller measures beyond that is the ruler's own error. Run it as a module; it prints its
port, and ends when its standard input does.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from base64 import b64decode, b64encode
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from antiphon.audio.pcm import encode
from antiphon.core.clock import MILLISECOND_NS, SECOND_NS
from antiphon.lab import loop

if TYPE_CHECKING:
    from antiphon.core.flow import Pcm

RATE_HZ = 24_000
DELAY_MS = 60
SILENCE_MS = 30  # before the answer's tone
TONE_MS = 60
LOUD = 4000  # of 32768


def tone(ms: int) -> Pcm:
    """Half as loud as can be, beginning and ending at once."""
    return np.where(np.arange(RATE_HZ * ms // 1000) % 24 < 12, 0.5, -0.5).astype(np.float32)


async def converse(socket: ServerConnection) -> None:
    """Answer a caller's bursts until it leaves."""
    numbers = count()
    sound = np.concatenate([np.zeros(RATE_HZ * SILENCE_MS // 1000, np.float32), tone(TONE_MS)])
    delta = b64encode(encode(sound, "int16")).decode("ascii")
    try:
        await socket.send(json.dumps({"type": "session.created", "session": {"type": "realtime"}}))
        async for message in socket:
            came_ns = time.monotonic_ns()
            event = json.loads(message)
            if event["type"] == "session.update":
                await socket.send(json.dumps({"type": "session.updated", "session": event["session"]}))
            elif event["type"] == "input_audio_buffer.append" and _ends_a_burst(event["audio"]):
                await _answer(socket, f"resp_{next(numbers)}", delta, came_ns)
    except ConnectionClosed:
        return


async def _answer(socket: ServerConnection, name: str, delta: str, came_ns: int) -> None:
    await asyncio.sleep((came_ns + DELAY_MS * MILLISECOND_NS - time.monotonic_ns()) / SECOND_NS)
    place = {"response_id": name, "item_id": name, "output_index": 0, "content_index": 0}
    left_ns = time.monotonic_ns()
    sound: dict[str, Any] = {"type": "response.output_audio.delta", **place, "delta": delta}
    await socket.send(json.dumps(sound))
    stages = {"came": came_ns / MILLISECOND_NS, "left": left_ns / MILLISECOND_NS}
    await socket.send(json.dumps({"type": "antiphon.turn.timeline", "stages": stages}))
    done = {"id": name, "status": "completed", "output": []}
    await socket.send(json.dumps({"type": "response.done", "response": done}))


def _ends_a_burst(audio: str) -> bool:
    samples = np.abs(np.frombuffer(b64decode(audio), "<i2").astype(np.int32))
    return bool(len(samples)) and bool(samples[0] > LOUD) and bool(samples[-1] < LOUD)


async def main() -> None:
    """Serve on a free port of this machine until standard input ends."""
    async with serve(converse, "127.0.0.1", 0, compression=None) as server:
        print(next(iter(server.sockets)).getsockname()[1], flush=True)  # noqa: T201 - for who started it
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    loop.run(main())
