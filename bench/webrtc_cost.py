"""What a call by WebRTC takes longer than one by WebSocket, on the loopback: from the last sample said to the first.

Both kinds of client say the same tone in real time, in turn, to one server whose ears, mind and voice are scripted
(the tests' own), so that all that differs is the way there and back. Heard is when a packet or an event that sounds has
come; what a browser's own buffer adds, tens of milliseconds by its own measure of jitter, is not in it.
It would be wrong if the server were busy: then loads differ more than ways do. Needs the extra `webrtc`.

    PYTHONPATH=. python bench/webrtc_cost.py --calls 15 --out results/webrtc_cost.json
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import platform
import time
from pathlib import Path

import numpy as np
from tests.serve.doubles import KEY, Place, caller, house, running
from tests.serve.webrtc.caller import AUDIBLE, calling

from antiphon.serve.protocol import pick_up
from antiphon.serve_settings import ServeSettings

SAID_S = 2.0
RATE_HZ = 24_000
SLOT = RATE_HZ // 50


async def by_socket(place: Place) -> float:
    """Seconds from the last sample said to the first heard."""
    said = (0.3 * np.sin(2 * np.pi * 200 * np.arange(round(SAID_S * RATE_HZ)) / RATE_HZ)).astype(np.float32)
    ended = 0.0

    async with caller(place.url) as client:
        start = time.monotonic()

        async def speak() -> None:
            nonlocal ended
            for number in range(2000):
                await asyncio.sleep(max(0, start + (number + 1) * 0.02 - time.monotonic()))
                pcm = said[number * SLOT : (number + 1) * SLOT]
                if len(pcm) == SLOT and (number + 1) * SLOT >= len(said):
                    ended = start + (number + 1) * 0.02
                pcm = np.concatenate([pcm, np.zeros(SLOT - len(pcm), np.float32)])
                audio = base64.b64encode((pcm * 32767).astype("<i2").tobytes()).decode()
                await client.send(json.dumps({"type": "input_audio_buffer.append", "audio": audio}))

        speaking = asyncio.create_task(speak())
        try:
            while True:
                event = json.loads(await client.recv())
                if event["type"] == "response.output_audio.delta":
                    pcm = np.frombuffer(base64.b64decode(event["delta"]), "<i2") / 32768
                    if float(np.abs(pcm).max(initial=0)) > AUDIBLE:
                        return time.monotonic() - ended
        finally:
            speaking.cancel()


async def by_call(place: Place) -> float:
    """The same over tracks."""
    async with calling(place.http) as client:
        microphone = client.microphone
        microphone.say(SAID_S)
        await client.until("output_audio_buffer.started")
        while not client.sounding():  # noqa: ASYNC110 - it is a packet or two behind the event
            await asyncio.sleep(0.002)
        return client.sounding()[0].at_s - microphone.said_by_s


def figures(values: list[float]) -> dict[str, float]:
    ms = np.array(values) * 1000
    return {f"p{p}_ms": round(float(np.percentile(ms, p)), 1) for p in (50, 95)} | {
        "mean_ms": round(float(ms.mean()), 1)
    }


async def measured(calls: int) -> dict[str, object]:
    sockets: list[float] = []
    tracks: list[float] = []
    async with running(house(ServeSettings(keys=(KEY,)), pick_up=pick_up)) as place:
        await by_call(place)  # loads what the first call loads
        for _ in range(calls):
            sockets.append(await by_socket(place))
            tracks.append(await by_call(place))
    socket, track = figures(sockets), figures(tracks)
    return {
        "schema": "antiphon.bench.webrtc_cost/1",
        "calls": calls,
        "machine": platform.machine(),
        "python": platform.python_version(),
        "websocket": socket,
        "webrtc": track,
        "added": {name: round(track[name] - socket[name], 1) for name in socket},
        "websocket_s": [round(value, 4) for value in sockets],
        "webrtc_s": [round(value, 4) for value in tracks],
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--calls", type=int, default=15, help="of each kind (default: %(default)s)")
    options.add_argument("--out", type=Path, help="where to write JSON")
    given = options.parse_args()
    result = asyncio.run(measured(given.calls))
    if given.out:
        given.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({name: result[name] for name in ("websocket", "webrtc", "added")}))


if __name__ == "__main__":
    main()
